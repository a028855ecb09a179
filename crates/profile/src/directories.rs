//! The directories of the files that were read: `auto` prefetches the next files of a directory.

use std::collections::BTreeSet;
use std::fs::{DirEntry, ReadDir};
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};

use policy::{FileId, FileTree, ListedTree};

use crate::recording::ProfileRecording;

/// Maximum number of listed directories, and of entries in one of them.
const MAX_DIRECTORIES: usize = 4096;
const MAX_ENTRIES: usize = 1 << 16;

/// Lists the directories of the files that were read, and the directories next to them.
pub(crate) fn listed_directories(recording: &ProfileRecording) -> ListedTree {
    let read: BTreeSet<u32> = recording.accesses.iter().map(|access| access.inode).collect();
    let places = read.into_iter().filter_map(|inode| directory(recording, inode));
    let places: BTreeSet<&Path> = places.take(MAX_DIRECTORIES).collect();
    let above: BTreeSet<&Path> = places.iter().filter_map(|place| place.parent()).collect();
    let mut tree = ListedTree::default();
    for place in places {
        let files = entries(place).filter(|entry| entry.file_type().is_ok_and(|it| it.is_file()));
        let files = files.map(|entry| (entry.ino(), entry.file_name())).collect();
        tree.files.insert(place.to_owned(), files);
    }
    for place in above {
        let inner = entries(place).filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        tree.directories.insert(place.to_owned(), inner.map(|entry| entry.file_name()).collect());
    }
    tree
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let entries = std::fs::read_dir(directory).into_iter().flat_map(ReadDir::into_iter);
    entries.filter_map(Result::ok).take(MAX_ENTRIES)
}

/// Returns the directory of a file; `None` if its path is unknown.
fn directory(recording: &ProfileRecording, inode: u32) -> Option<&Path> {
    let path = Path::new(&recording.files.get(inode as usize)?.path);
    path.parent().filter(|_| path.is_absolute())
}

/// Returns the directories of these files, which are those of the simulation in this order. A
/// directory that was not listed has only the recorded files.
pub(crate) fn file_tree(recording: &ProfileRecording, inodes: BTreeSet<u32>) -> FileTree {
    let mut listed = recording.directories.clone();
    let mut files: Vec<(FileId, PathBuf, u64)> = Vec::new();
    for (number, inode) in (0..).zip(inodes) {
        let Some(directory) = directory(recording, inode) else { continue };
        let file = &recording.files[inode as usize];
        files.push((FileId(number), directory.to_owned(), file.id.inode));
        if !recording.directories.files.contains_key(directory) {
            let name = Path::new(&file.path).file_name().unwrap_or_default().to_owned();
            listed.files.entry(directory.to_owned()).or_default().push((file.id.inode, name));
        }
    }
    FileTree::new(listed, files)
}

#[cfg(test)]
mod tests {
    use host::DevNo;
    use observe::InodeId;
    use units::{Bytes, Nanos};

    use super::*;
    use crate::recording::{FileAccess, ProfiledFile};

    fn recording(paths: &[&Path]) -> ProfileRecording {
        let mut recording = ProfileRecording::default();
        for (path, inode) in paths.iter().zip(0..) {
            let id =
                InodeId { device: DevNo { major: 7, minor: 1 }, inode: 100 + u64::from(inode) };
            let (path, size) = (path.display().to_string(), Bytes::ZERO);
            recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
            let access = FileAccess::cached(Nanos::ZERO, Nanos::ZERO);
            recording.accesses.push(FileAccess { inode, ..access });
        }
        recording
    }

    #[test]
    fn a_directory_is_listed_with_files_that_were_not_read_and_its_siblings() {
        let home = tempfile::tempdir().unwrap();
        let [own, other] = ["own", "other"].map(|name| home.path().join(name));
        for directory in [&own, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(own.join("read"), "1").unwrap();
        std::fs::write(own.join("unread"), "2").unwrap();
        let listed = listed_directories(&recording(&[&own.join("read"), Path::new("inode 7")]));
        assert_eq!(listed.files.len(), 1);
        let mut names: Vec<_> = listed.files[&own].iter().map(|(_, name)| name.clone()).collect();
        names.sort();
        assert_eq!(names, ["read", "unread"]);
        let mut inner = listed.directories[home.path()].clone();
        inner.sort();
        assert_eq!(inner, ["other", "own"]);
    }

    #[test]
    fn a_directory_that_was_not_listed_has_the_recorded_files() {
        let paths = ["/a/2", "/b/3", "/a/1", "unknown"].map(Path::new);
        let tree = file_tree(&recording(&paths), (0..4).collect());
        let own = tree.directory(FileId(2)).unwrap();
        assert_eq!(tree.listed.reading_orders(own, None)[..2], [[100, 102], [102, 100]]);
        assert_eq!((tree.file(101), tree.directory(FileId(3))), (Some(FileId(1)), None));
    }
}
