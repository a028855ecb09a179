//! Measures how much the kernel reads ahead. One reader reads cold data page by page; after each
//! page, the probe determines where the cached data ends.
//!
//! The kernel adds the folios of a window to the cache when it submits the window, so each step of
//! the cached end is exactly one window. The device's counters show the resulting requests.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use host::{BlockStat, Root, Storage, StorageKind};
use rustix::fs::{Advice, OFlags, fadvise};
use serde::Serialize;
use sys::cachestat::cachestat;
use sys::page_size;
use units::{Bytes, Pages};

use crate::BenchError;

/// Minimum amount to read, so that windows reach their full size.
const MIN_READ: Bytes = Bytes::from_mib(4);
/// Maximum amount to read (or to write before reading it).
const MAX_READ: Bytes = Bytes::from_mib(256);
/// Number of full windows to read.
const WINDOWS_PER_READ: u64 = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadProbe {
    /// The steady window; `None` if the windows did not settle.
    pub window: Option<Bytes>,
    pub asked: Bytes,
    /// Data that devices read during the probe, for any process.
    pub device_bytes: Bytes,
    pub device_requests: u64,
}

impl ReadProbe {
    /// Returns the mean size of a request; 0 if there were no requests.
    pub fn mean_request(&self) -> Bytes {
        Bytes::new(self.device_bytes.get().checked_div(self.device_requests).unwrap_or(0))
    }

    /// Returns whether the window agrees with a read-ahead of `wanted`; `None` without a window.
    /// Without read-ahead, each page is a request of its own.
    pub fn agrees_with(&self, wanted: Bytes) -> Option<bool> {
        let page = page_size();
        let wanted = wanted.to_pages_floor(page).to_bytes(page).max(page.bytes());
        Some(self.window? == wanted)
    }
}

/// Reads cold data of `storage` as one slow stream: from an unnamed file created in a directory, or
/// from the file or device itself. The amount to read depends on the `expected` window.
pub fn probe(root: &Root, storage: &Storage, expected: Bytes) -> Result<ReadProbe, BenchError> {
    let length =
        expected.get().saturating_mul(WINDOWS_PER_READ).clamp(MIN_READ.get(), MAX_READ.get());
    let length = Bytes::new(length.next_multiple_of(1 << 20));
    let (file, start) = match storage.kind {
        StorageKind::Directory => (nameless(&storage.path, length)?, Bytes::ZERO),
        StorageKind::File | StorageKind::BlockDevice => existing(&storage.path, length)?,
    };
    let before = storage.stat(root)?.unwrap_or_default();
    let steps = walk(&file, &storage.path, start, length)?;
    let after = storage.stat(root)?.unwrap_or_default();
    let BlockStat { reads, read_bytes, .. } = after - before;
    let window = settled(&steps).map(|pages| pages.to_bytes(page_size()));
    Ok(ReadProbe { window, asked: length, device_bytes: read_bytes, device_requests: reads })
}

/// Creates an unnamed file whose data is on the device but not in the cache. The file is reopened,
/// so that it uses the current window.
pub fn nameless(dir: &Path, length: Bytes) -> Result<File, BenchError> {
    let io = |action| BenchError::io(action, dir);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::TMPFILE.bits().cast_signed())
        .open(dir)
        .map_err(|error| crate::error::write_error(dir, error))?;
    let mut piece = vec![0_u8; 1 << 20];
    for at in 0..length.get() >> 20 {
        // Every piece differs, because some devices deduplicate.
        piece[..8].copy_from_slice(&(at + 1).to_le_bytes());
        file.write_all(&piece).map_err(io("write a file in"))?;
    }
    file.sync_all().map_err(io("sync a file in"))?;
    forget(&file, dir, Bytes::ZERO, length)?;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(io("open a file in"))
}

/// Opens a file or device, and evicts a range in its middle.
fn existing(path: &PathBuf, length: Bytes) -> Result<(File, Bytes), BenchError> {
    let file = File::open(path).map_err(BenchError::io("open", path))?;
    let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
        .map_err(|errno| BenchError::io("find the size of", path)(errno.into()))?;
    if size < length.get() {
        let (path, size) = (path.clone(), Bytes::new(size));
        return Err(BenchError::TooSmall { path, size, needed: length });
    }
    // Not at the start, which other programs often read.
    let start = Bytes::new(((size - length.get()) / 2) & !((1 << 20) - 1));
    forget(&file, path, start, length)?;
    Ok((file, start))
}

/// Evicts a range of a file, and verifies that its pages are gone.
fn forget(file: &File, path: &Path, start: Bytes, length: Bytes) -> Result<(), BenchError> {
    for _ in 0..4 {
        // Evicts the whole file: a large folio that crosses the range's boundary would stay.
        fadvise(file, 0, None, Advice::DontNeed)
            .map_err(|errno| BenchError::io("evict", path)(errno.into()))?;
        let cached = cachestat(file.as_fd(), start, length)
            .map_err(BenchError::io("look for cached pages of", path))?
            .cached;
        if cached == Pages::ZERO {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let busy = io::Error::other("another process keeps its data in the cache");
    Err(BenchError::io("evict", path)(busy))
}

/// Reads page by page; returns the steps by which the cached range grew.
fn walk(file: &File, path: &Path, start: Bytes, length: Bytes) -> Result<Vec<Pages>, BenchError> {
    let page = page_size().bytes();
    let mut buffer = vec![0; usize::try_from(page.get()).unwrap_or(4096)];
    let (mut edge, end) = (start, start + length);
    let mut steps = Vec::new();
    let mut at = start;
    while at < end {
        file.read_exact_at(&mut buffer, at.get()).map_err(|source| BenchError::Read {
            path: path.to_owned(),
            offset: at,
            source,
        })?;
        at += page;
        if edge >= end {
            continue;
        }
        let grown = cachestat(file.as_fd(), edge, end.saturating_sub(edge))
            .map_err(BenchError::io("look for cached pages of", path))?
            .cached;
        if grown > Pages::ZERO {
            steps.push(grown);
            edge += grown.to_bytes(page_size());
        }
    }
    Ok(steps)
}

/// Returns the most frequent step of the second half, without the last, which the end cuts off.
fn settled(steps: &[Pages]) -> Option<Pages> {
    let (_, steps) = steps.split_last()?;
    let mut counts: BTreeMap<Pages, usize> = BTreeMap::new();
    for step in &steps[steps.len() / 2..] {
        *counts.entry(*step).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(step, count)| (*count, *step)).map(|(step, _)| step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_the_steps_settle_on() {
        let steps =
            |sizes: &[u64]| -> Vec<Pages> { sizes.iter().copied().map(Pages::new).collect() };
        assert_eq!(settled(&steps(&[4, 8, 16, 32, 32, 32, 32, 7])), Some(Pages::new(32)));
        assert_eq!(settled(&steps(&[1, 1, 1])), Some(Pages::new(1)));
        assert_eq!(settled(&steps(&[1024])), None, "all at once tells nothing");
        assert_eq!(settled(&[]), None);
    }

    #[test]
    fn no_read_ahead_is_a_page_at_a_time() {
        let probe = |pages| ReadProbe {
            window: Some(Pages::new(pages).to_bytes(page_size())),
            asked: MIN_READ,
            device_bytes: MIN_READ,
            device_requests: 4,
        };
        assert_eq!(probe(1).agrees_with(Bytes::ZERO), Some(true));
        assert_eq!(probe(32).agrees_with(Bytes::from_mib(1)), Some(false));
        assert_eq!(probe(4).mean_request(), Bytes::from_mib(1));
    }
}
