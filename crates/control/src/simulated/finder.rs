//! Finds directories in a simulated file system, as a thread of the live back end does.

use policy::{FileId, FileTree, OpenFileId, TreeWalk};
use units::Nanos;

use super::file_key;
use crate::control_loop::Listing;
use crate::inputs::FileKey;

/// Device number in the keys of files that no reader of the simulation reads.
const UNREAD_DEVICE_NUMBER: u64 = 1;
/// Reads of the disk to list a directory that the reader has not reached: its inode, its entries.
const READS_PER_DIRECTORY: u64 = 2;

/// Lists a directory in one step, and returns it in a later one.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedFinder {
    /// The directories that were listed.
    walk: TreeWalk,
    /// The result, and when it is complete.
    found: Option<(Nanos, Listing)>,
}

impl SimulatedFinder {
    /// Requests the directory of an open file, with those that follow it if true, unless an earlier
    /// request has not been answered. Returns the answer to that request, once it is complete.
    /// `read_time` is the time of a read.
    pub fn find(
        &mut self,
        tree: &FileTree,
        wanted: Option<(OpenFileId, FileId, bool)>,
        now: Nanos,
        read_time: Nanos,
    ) -> Option<Listing> {
        if let Some((at, found)) = self.found.take() {
            let is_complete = at <= now;
            self.found = (!is_complete).then(|| (at, found.clone()));
            return is_complete.then_some(found);
        }
        let (open_file, file, with_next) = wanted?;
        let directory = tree.directory(file)?;
        let before = self.walk.go(directory).filter(|_| with_next);
        let orders = tree.listed.reading_orders(directory, before.as_deref()).into_iter();
        let key = |inode| tree.file(inode).map_or(FileKey(UNREAD_DEVICE_NUMBER, inode), file_key);
        let orders = orders.map(|order| order.into_iter().map(key).collect()).collect();
        let others =
            before.map_or_else(Vec::new, |it| tree.listed.next_directories(directory, &it));
        let at = now + read_time * (READS_PER_DIRECTORY * others.len() as u64);
        self.found = Some((at, Listing { file: open_file, orders }));
        None
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use policy::ListedTree;

    use super::*;

    #[test]
    fn a_directory_is_known_a_step_after_the_request() {
        let files = [(7, "b".into()), (8, "a".into()), (9, "c".into())].to_vec();
        let mut listed = ListedTree::default();
        listed.files.insert("/data".into(), files);
        let read = [(0, 7), (1, 8)];
        let read = read.map(|(file, inode)| (FileId(file), PathBuf::from("/data"), inode));
        let tree = FileTree::new(listed, read);
        let mut finder = SimulatedFinder::default();
        let mut find = |wanted| finder.find(&tree, wanted, Nanos::ZERO, Nanos::from_millis(1));
        assert_eq!(find(Some((OpenFileId::new(4), FileId(1), true))), None);
        let found = find(None).unwrap();
        assert_eq!(found.file, OpenFileId::new(4));
        let [b, a, c] = [FileKey(0, 0), FileKey(0, 1), FileKey(UNREAD_DEVICE_NUMBER, 9)];
        assert_eq!(found.orders, [[b, a, c], [a, b, c], [b, a, c], [c, b, a]]);
        assert_eq!(find(None), None);
        assert_eq!(find(Some((OpenFileId::new(4), FileId(2), true))), None);
        assert_eq!(find(None), None, "a file without a directory");
    }

    #[test]
    fn directories_that_the_reader_has_not_reached_take_time() {
        let mut listed = ListedTree::default();
        listed.directories.insert("/t".into(), ["a", "b", "c"].map(Into::into).to_vec());
        for (path, inode) in [("/t/a", 1), ("/t/b", 2), ("/t/c", 3)] {
            listed.files.insert(path.into(), vec![(inode, "file".into())]);
        }
        let read = [(0, "/t/a", 1), (1, "/t/b", 2)];
        let read = read.map(|(file, path, inode)| (FileId(file), PathBuf::from(path), inode));
        let tree = FileTree::new(listed, read);
        let mut finder = SimulatedFinder::default();
        let mut find = |file: Option<u32>, millis| {
            let wanted = file.map(|file| (OpenFileId::new(4), FileId(file), true));
            let found =
                finder.find(&tree, wanted, Nanos::from_millis(millis), Nanos::from_millis(10));
            found.map(|found| found.orders[0].len())
        };
        assert_eq!([find(Some(0), 1), find(None, 2)], [None, Some(1)]);
        // Two reads for directory c.
        assert_eq!([find(Some(1), 3), find(None, 22), find(None, 23)], [None, None, Some(2)]);
    }
}
