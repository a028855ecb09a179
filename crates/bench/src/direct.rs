//! Times reads that bypass the page cache, to measure the device's service times.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::OFlags;
use sys::realtime::now;
use units::{Bytes, Nanos};

use crate::probe::nameless;
use crate::{BenchError, Cancel};

/// Alignment of buffers for direct reads, in bytes; sufficient for every device.
const ALIGNMENT_BYTES: usize = 4096;

/// A file or block device that is opened for direct reads and never written.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    path: PathBuf,
    size: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectTimes {
    /// Time from the start of the first read to the end of the last.
    pub elapsed: Nanos,
    /// Latency of each read, in the order of the offsets.
    pub latencies: Vec<Nanos>,
}

impl DirectFile {
    /// Opens an existing file or device.
    ///
    /// # Errors
    ///
    /// If the path is neither a file nor a block device, if the file has holes (reads of holes do
    /// not reach the device), or if direct reads are not supported.
    pub fn open(path: &Path) -> Result<Self, BenchError> {
        let metadata = std::fs::metadata(path).map_err(BenchError::io("look at", path))?;
        let device = metadata.file_type().is_block_device();
        if !device && !metadata.is_file() {
            return Err(BenchError::NotReadable { path: path.to_owned() });
        }
        // Some file systems also count metadata blocks, so even a few missing blocks mean a hole.
        if !device && metadata.blocks() * 512 < metadata.len() {
            return Err(BenchError::Holes { path: path.to_owned() });
        }
        Self::new(path, path)
    }

    /// Creates an unnamed file of this size in a directory; it is removed with this value.
    ///
    /// # Errors
    ///
    /// If the file cannot be written there, or if direct reads are not supported.
    pub fn in_directory(dir: &Path, size: Bytes) -> Result<Self, BenchError> {
        let made = nameless(dir, size)?;
        Self::new(Path::new(&format!("/proc/self/fd/{}", made.as_raw_fd())), dir)
    }

    fn new(path: &Path, shown: &Path) -> Result<Self, BenchError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
        let opened = options.open(path);
        let mut file = opened.map_err(BenchError::io("open for direct reads", shown))?;
        let size = file.seek(SeekFrom::End(0)).map_err(BenchError::io("find the end of", shown))?;
        Ok(Self { file, path: shown.to_owned(), size: Bytes::new(size) })
    }

    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Reads `length` bytes at each offset, with `depth` concurrent reads, and times each read.
    ///
    /// # Errors
    ///
    /// If a read is short, or if `cancel` is set during the reads.
    pub fn time(
        &self,
        offsets: &[Bytes],
        length: Bytes,
        depth: usize,
        cancel: &Cancel,
    ) -> Result<DirectTimes, BenchError> {
        let next = AtomicUsize::new(0);
        let begun = now();
        let reader = || self.read_some(offsets, length, &next, cancel);
        let parts: Vec<_> = if depth <= 1 {
            vec![reader()]
        } else {
            thread::scope(|scope| {
                let readers: Vec<_> = (0..depth).map(|_| scope.spawn(reader)).collect();
                readers
                    .into_iter()
                    .map(|reader| reader.join().unwrap_or(Err(BenchError::Cancelled)))
                    .collect()
            })
        };
        let elapsed = now().saturating_sub(begun);
        let mut latencies = vec![Nanos::ZERO; offsets.len()];
        for part in parts {
            for (place, latency) in part? {
                latencies[place] = latency;
            }
        }
        Ok(DirectTimes { elapsed, latencies })
    }

    /// Runs one of several readers; each reader takes the next offset as soon as it is free.
    fn read_some(
        &self,
        offsets: &[Bytes],
        length: Bytes,
        next: &AtomicUsize,
        cancel: &Cancel,
    ) -> Result<Vec<(usize, Nanos)>, BenchError> {
        let wanted = usize::try_from(length.get()).unwrap_or(ALIGNMENT_BYTES);
        let mut room = vec![0; wanted + ALIGNMENT_BYTES];
        let skip = room.as_ptr().align_offset(ALIGNMENT_BYTES);
        let buffer = &mut room[skip..skip + wanted];
        let mut times = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(offset) = offsets.get(place) else { return Ok(times) };
            if cancel.is_cancelled() {
                return Err(BenchError::Cancelled);
            }
            let begun = now();
            self.file.read_exact_at(buffer, offset.get()).map_err(|source| BenchError::Read {
                path: self.path.clone(),
                offset: *offset,
                source,
            })?;
            times.push((place, now().saturating_sub(begun)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_is_timed_once_at_any_depth() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = match DirectFile::in_directory(dir.path(), Bytes::from_mib(4)) {
            Ok(file) => file,
            Err(why) => return eprintln!("SKIP every_read_is_timed_once_at_any_depth: {why}"),
        };
        let offsets: Vec<Bytes> = (0..64).map(|at| Bytes::from_kib(at * 64)).collect();
        for depth in [1, 4] {
            let times = file.time(&offsets, Bytes::from_kib(4), depth, &Cancel::new()).unwrap();
            assert_eq!(times.latencies.len(), offsets.len());
            assert!(times.latencies.iter().all(|latency| *latency > Nanos::ZERO));
            assert!(times.elapsed >= *times.latencies.iter().max().unwrap());
        }
        assert_eq!(file.size(), Bytes::from_mib(4));
        let beyond = file.time(&[Bytes::from_mib(4)], Bytes::from_kib(4), 1, &Cancel::new());
        assert!(beyond.unwrap_err().to_string().contains("cannot read"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_no_device_would_be_asked_for_is_refused() {
        let sparse = tempfile::NamedTempFile::new().unwrap();
        sparse.as_file().set_len(1 << 20).unwrap();
        let why = DirectFile::open(sparse.path()).unwrap_err().to_string();
        assert!(why.contains("holes"), "{why}");
        assert!(DirectFile::open(Path::new("/")).is_err());
        assert!(DirectFile::open(Path::new("/no/such/file")).is_err());
    }
}
