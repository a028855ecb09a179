//! The ranges that a run read, to be prefetched before the next run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, fadvise};
use units::Bytes;

use crate::recording::ProfileRecording;
use crate::spans::merged;

/// Bytes that the kernel submits per advice call at the default window.
pub(crate) const ADVICE_BYTES: u64 = 128 << 10;

/// A range of a file, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileRange {
    path: PathBuf,
    start: u64,
    end: u64,
}

/// Ranges to prefetch, in device order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefetchList(Arc<Vec<FileRange>>);

/// Merges ranges (file index, offset, length) to disjoint ones (file index, start, end), cut at the
/// end of the file, in device order.
pub(crate) fn in_place_order(
    recording: &ProfileRecording,
    ranges: impl Iterator<Item = (u32, u64, u64)>,
) -> Vec<(u32, u64, u64)> {
    let mut of_file: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for (inode, offset, length) in ranges {
        of_file.entry(inode).or_default().push((offset, offset + length));
    }
    let mut placed = Vec::new();
    for (inode, ranges) in of_file {
        let file = &recording.files[inode as usize];
        // Programs may ask for more than a small file contains.
        let within = |end: u64| end.min(file.size.get());
        let ranges = merged(ranges).into_iter().map(|range| (range.start, within(range.end)));
        placed.extend(ranges.filter(|(start, end)| start < end).map(|(start, end)| {
            let place = file.start.map_or(u64::MAX, |at| at.get() + start);
            (place, (inode, start, end))
        }));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, range)| range).collect()
}

impl PrefetchList {
    /// Returns the ranges that were read of these files.
    pub(crate) fn of(recording: &ProfileRecording, inodes: &BTreeSet<u32>) -> Self {
        let submitted = recording.submitted.iter().map(|it| (it.inode, it.offset, it.length));
        let accesses = recording.accesses.iter().map(|it| (it.inode, it.offset, it.length));
        let path = |inode: u32| Path::new(&recording.files[inode as usize].path);
        let wanted = submitted
            .chain(accesses)
            .filter(|(inode, ..)| inodes.contains(inode) && path(*inode).is_absolute())
            .map(|(inode, offset, length)| (inode, offset.get(), length.get()));
        let ranges = in_place_order(recording, wanted).into_iter();
        let ranges = ranges.map(|(inode, start, end)| FileRange {
            path: path(inode).to_owned(),
            start,
            end,
        });
        Self(Arc::new(ranges.collect()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::new(self.0.iter().map(|range| range.end - range.start).sum())
    }

    /// Reads the ranges into the page cache until `stop` is set. Skips files that are gone.
    pub(crate) fn prefetch(&self, stop: &AtomicBool) {
        let mut open: Option<(&PathBuf, File)> = None;
        for range in self.0.iter() {
            if open.as_ref().is_none_or(|(path, _)| *path != &range.path) {
                open = File::open(&range.path).ok().map(|file| (&range.path, file));
            }
            let Some((_, file)) = &open else { continue };
            for start in (range.start..range.end).step_by(ADVICE_BYTES as usize) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let length = ADVICE_BYTES.min(range.end - start);
                let _ = fadvise(file, start, std::num::NonZeroU64::new(length), Advice::WillNeed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{FileAccess, ProfiledFile};
    use units::Nanos;

    #[test]
    fn what_was_read_is_in_memory_after_it() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("library.so");
        std::fs::write(&path, vec![1_u8; 1 << 20]).unwrap();
        let mut recording = ProfileRecording::default();
        let id = observe::InodeId { device: host::DevNo { major: 7, minor: 1 }, inode: 1 };
        let path = path.display().to_string();
        let size = Bytes::from_mib(1);
        recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
        for offset in [0, 4096, 16384] {
            let access = FileAccess::cached(Nanos::ZERO, Nanos::ZERO);
            recording.accesses.push(FileAccess { offset: Bytes::new(offset), ..access });
        }
        let list = PrefetchList::of(&recording, &BTreeSet::from([0]));
        assert_eq!((list.len(), list.bytes()), (2, Bytes::from_kib(12)));
        list.prefetch(&AtomicBool::new(false));
        assert_eq!(PrefetchList::of(&recording, &BTreeSet::from([1])).len(), 0);
    }

    #[test]
    fn the_order_is_that_of_the_device() {
        let mut recording = ProfileRecording::default();
        for start in [1 << 30, 1 << 20] {
            recording.files.push(ProfiledFile {
                id: observe::InodeId { device: host::DevNo { major: 7, minor: 1 }, inode: start },
                path: String::new(),
                size: Bytes::new(10_000),
                start: Some(Bytes::new(start)),
                jumps: Vec::new(),
            });
        }
        let ranges = [(0, 0, 4096), (1, 8192, 4096), (1, 0, 4096), (1, 4000, 96)];
        let placed = in_place_order(&recording, ranges.into_iter());
        assert_eq!(placed, [(1, 0, 4096), (1, 8192, 10_000), (0, 0, 4096)]);
    }
}
