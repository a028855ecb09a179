//! Evicts files from the page cache and verifies that they are gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::Root;
use rustix::fs::{Access, Advice, fadvise};
use serde::{Deserialize, Serialize};
use sys::cachestat::{cachestat, mincore};
use sys::page_size;
use units::Bytes;

use crate::dataset::DataFile;
use crate::{BenchError, Cancel};

/// Maximum number of eviction attempts. The first attempts skip dirty pages and pages that are
/// being moved to a list; pages that another process has mapped are never evicted.
const EVICTIONS_MAX: u32 = 6;

/// The method that determined which pages are in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResidencyMethod {
    /// `cachestat(2)` (since Linux 6.5).
    Cachestat,
    /// `mincore(2)` on a mapping.
    Mincore,
    /// None: the kernel reports residency only to users who own the file or may write it. The
    /// amount of data read from the device is then the only evidence.
    Denied,
    /// None needed: a simulated cache starts empty.
    Simulated,
}

/// The content of the page cache when the trial started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdProof {
    pub method: ResidencyMethod,
    /// Data that was in the cache when the readers started.
    pub resident: Bytes,
    /// Number of eviction attempts; 0 if the cache was not touched.
    pub evictions: u32,
    /// True if `drop_caches` was written as well.
    pub dropped_caches: bool,
}

impl ColdProof {
    /// Creates the proof of a cold cache that needed no eviction.
    pub fn new(method: ResidencyMethod) -> Self {
        Self { method, resident: Bytes::ZERO, evictions: 0, dropped_caches: false }
    }

    /// True if no data was in the cache, as far as the kernel reports it.
    pub fn is_cold(&self) -> bool {
        self.resident.is_zero()
    }
}

/// An open file and the parts of it that are the workload's data.
struct Watched {
    path: PathBuf,
    file: File,
    parts: Vec<(Bytes, Bytes)>,
}

impl Watched {
    fn open_all(parts: &[DataFile]) -> Result<Vec<Self>, BenchError> {
        let mut by_path: BTreeMap<&Path, Vec<(Bytes, Bytes)>> = BTreeMap::new();
        for part in parts {
            by_path.entry(&part.path).or_default().push((part.start, part.length));
        }
        let open = |(path, parts): (&Path, Vec<_>)| {
            let file = File::open(path).map_err(BenchError::io("open", path))?;
            Ok(Self { path: path.to_owned(), file, parts })
        };
        by_path.into_iter().map(open).collect()
    }

    /// Asks the kernel to evict the whole file, not only the parts: a large folio that crosses the
    /// boundary of a part would stay.
    fn evict(&self, write_first: bool) -> Result<(), BenchError> {
        if write_first {
            rustix::fs::fsync(&self.file)
                .map_err(|errno| BenchError::io("sync", &self.path)(errno.into()))?;
        }
        let whole: Option<NonZeroU64> = None;
        fadvise(&self.file, 0, whole, Advice::DontNeed)
            .map_err(|errno| BenchError::io("evict", &self.path)(errno.into()))
    }

    /// Returns how much of the parts is in the cache.
    fn resident(&self) -> Result<(ResidencyMethod, Bytes), BenchError> {
        let mut sum = Bytes::ZERO;
        let mut method = ResidencyMethod::Cachestat;
        for (start, length) in &self.parts {
            let (how, found) = self
                .resident_in(*start, *length)
                .map_err(BenchError::io("look for cached pages of", &self.path))?;
            sum += found;
            method = how;
        }
        Ok((method, sum))
    }

    fn resident_in(&self, start: Bytes, length: Bytes) -> io::Result<(ResidencyMethod, Bytes)> {
        let page = page_size();
        match cachestat(self.file.as_fd(), start, length) {
            Ok(stat) => Ok((ResidencyMethod::Cachestat, stat.cached.to_bytes(page))),
            Err(_) if !self.may_ask()? => Ok((ResidencyMethod::Denied, Bytes::ZERO)),
            Err(_) => {
                let pages = mincore(self.file.as_fd(), start, length)?;
                Ok((ResidencyMethod::Mincore, pages.to_bytes(page)))
            }
        }
    }

    /// Returns whether `mincore(2)` is truthful for this user (`can_do_mincore` in mm/mincore.c).
    fn may_ask(&self) -> io::Result<bool> {
        let owner = self.file.metadata()?.uid() == rustix::process::geteuid().as_raw();
        Ok(owner || rustix::fs::access(&self.path, Access::WRITE_OK).is_ok())
    }
}

fn resident(files: &[Watched]) -> Result<(ResidencyMethod, Bytes), BenchError> {
    let mut all = (ResidencyMethod::Cachestat, Bytes::ZERO);
    for file in files {
        let (method, found) = file.resident()?;
        all = (method, all.1 + found);
    }
    Ok(all)
}

/// Checks how much of these parts is in the cache, without evicting them.
pub(crate) fn as_found(parts: &[DataFile]) -> Result<ColdProof, BenchError> {
    let (method, resident) = resident(&Watched::open_all(parts)?)?;
    Ok(ColdProof { resident, ..ColdProof::new(method) })
}

/// Returns how much of a part is in the cache after `offset`.
pub(crate) fn resident_from(part: &DataFile, offset: Bytes) -> Result<Bytes, BenchError> {
    let length = part.length.saturating_sub(offset);
    let rest = DataFile { path: part.path.clone(), start: part.start + offset, length };
    if rest.length.is_zero() { Ok(Bytes::ZERO) } else { Ok(as_found(&[rest])?.resident) }
}

/// Evicts these parts of files from the page cache as far as possible.
pub(crate) fn evict(
    root: &Root,
    parts: &[DataFile],
    drop_caches: bool,
    cancel: &Cancel,
) -> Result<ColdProof, BenchError> {
    let files = Watched::open_all(parts)?;
    let mut attempt = 0;
    loop {
        attempt += 1;
        if cancel.is_cancelled() {
            return Err(BenchError::Cancelled);
        }
        for file in &files {
            // Flushing is slow and rarely needed, so only after plain eviction has failed.
            file.evict(attempt > 1)?;
        }
        if drop_caches {
            drop_all_caches(root)?;
        }
        let (method, resident) = resident(&files)?;
        if resident.is_zero() || attempt == EVICTIONS_MAX {
            return Ok(ColdProof {
                method,
                resident,
                evictions: attempt,
                dropped_caches: drop_caches,
            });
        }
        std::thread::sleep(Duration::from_millis(5 << attempt));
    }
}

fn drop_all_caches(root: &Root) -> Result<(), BenchError> {
    let path = root.path("/proc/sys/vm/drop_caches");
    std::fs::write(&path, "3").map_err(BenchError::io("write to", &path))
}
