//! Observes the kernel: determines the pages that each operation adds to the cache.
//!
//! The kernel adds the folios of a window to the cache when it submits the window, so
//! `cachestat(2)` shows each window exactly, whether or not its data has arrived.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use host::{Root, Storage};
use policy::{Extent, Page};
use rustix::fs::{SeekFrom, fadvise, seek};
use sys::cachestat::cachestat;
use sys::mapping::FileMapping;
use units::{Bytes, Pages};

use super::pattern::{Op, PatternReader, PatternStep, ReadPattern};
use super::predict::{CachedExtents, grown};
use crate::ExperimentError;

const PAGE_BYTES: u64 = 4096;
/// Maximum time to wait for requests in flight after each operation.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) struct Specimen<'a> {
    /// Keeps the file open; it may be unnamed.
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) size: Bytes,
    pub(super) root: &'a Root,
    pub(super) storage: &'a Storage,
}

impl Specimen<'_> {
    fn io(&self, action: &'static str) -> impl FnOnce(io::Error) -> ExperimentError + use<> {
        ExperimentError::io(action, self.path.clone())
    }

    /// Opens the file again, as a separate open file with the current window.
    fn open(&self) -> Result<File, ExperimentError> {
        let known = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        File::open(known).map_err(self.io("open"))
    }
    pub(super) fn observe(&self, pattern: &ReadPattern) -> Result<CachedExtents, ExperimentError> {
        self.forget()?;
        let files = (0..pattern.files).map(|_| self.open()).collect::<Result<Vec<_>, _>>()?;
        let touches = pattern.ops.iter().any(|op| matches!(op.act, PatternStep::Touch { .. }));
        let map = |file: &File| FileMapping::new(file.as_fd(), Bytes::ZERO, self.size);
        let mapping = match files.first().filter(|_| touches) {
            Some(file) => Some(map(file).map_err(self.io("map"))?),
            None => None,
        };
        let mut before = Vec::new();
        let mut steps = CachedExtents::with_capacity(pattern.ops.len());
        for op in &pattern.ops {
            let Some(file) = files.get(op.file) else { continue };
            self.act(file, mapping.as_ref(), *op)?;
            self.settle()?;
            let now = self.resident()?;
            steps.push(grown(&before, &now));
            before = now;
        }
        Ok(steps)
    }

    fn act(
        &self,
        file: &File,
        mapping: Option<&FileMapping>,
        op: Op,
    ) -> Result<(), ExperimentError> {
        match op.act {
            PatternStep::Read { page, pages, reader: PatternReader::Own } => {
                let mut buffer = vec![0; (pages * PAGE_BYTES) as usize];
                file.read_exact_at(&mut buffer, page * PAGE_BYTES).map_err(self.io("read"))
            }
            PatternStep::Read { page, reader: PatternReader::Child, .. } => {
                self.read_by_child(file, page)
            }
            PatternStep::Touch { page } => {
                let copied =
                    mapping.map(|mapping| mapping.copy_to((page * PAGE_BYTES) as usize, &mut [0]));
                let torn = |_| io::Error::other("the file shrank");
                copied.unwrap_or(Ok(())).map_err(torn).map_err(self.io("read"))
            }
            PatternStep::AdviseRandom | PatternStep::AdviseSequential => {
                let advice = match op.act {
                    PatternStep::AdviseRandom => rustix::fs::Advice::Random,
                    _ => rustix::fs::Advice::Sequential,
                };
                fadvise(file, 0, None, advice).map_err(|errno| self.io("advise on")(errno.into()))
            }
        }
    }

    /// Reads one page by `read(2)` in another process, through the same open file.
    fn read_by_child(&self, file: &File, page: u64) -> Result<(), ExperimentError> {
        seek(file, SeekFrom::Start(page * PAGE_BYTES))
            .map_err(|errno| self.io("seek in")(errno.into()))?;
        let shared = file.try_clone().map_err(self.io("share"))?;
        let status = Command::new("dd")
            .args(["of=/dev/null", "bs=4096", "count=1", "status=none"])
            .stdin(shared)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(ExperimentError::io("start", "dd (package coreutils)"))?;
        if status.success() {
            return Ok(());
        }
        Err(self.io("read by dd")(io::Error::other(status.to_string())))
    }

    /// Waits until no request is in flight, because only pages with data can be mapped.
    fn settle(&self) -> Result<(), ExperimentError> {
        let begun = std::time::Instant::now();
        while begun.elapsed() < DRAIN_TIMEOUT {
            match self.storage.stat(self.root)? {
                Some(stat) if stat.in_flight > 0 => std::thread::sleep(Duration::from_micros(200)),
                _ => break,
            }
        }
        Ok(())
    }

    /// Evicts the file from the cache and verifies that no page is left.
    fn forget(&self) -> Result<(), ExperimentError> {
        for _ in 0..10 {
            fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(|errno| self.io("evict")(errno.into()))?;
            if self.resident()?.is_empty() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(self.io("evict")(io::Error::other("another process keeps its data in the cache")))
    }

    /// Returns the cached ranges of the file, ascending.
    fn resident(&self) -> Result<Vec<Extent>, ExperimentError> {
        let mut found = Vec::new();
        let pages = Pages::new(self.size.get() / PAGE_BYTES);
        self.look(Extent::new(Page::FIRST, pages), &mut found)
            .map_err(self.io("look for cached pages of"))?;
        Ok(found)
    }

    /// Adds the cached ranges of `range` to `found`: halves it until each part is cached or not.
    fn look(&self, range: Extent, found: &mut Vec<Extent>) -> io::Result<()> {
        let bytes = |count: u64| Bytes::new(count * PAGE_BYTES);
        let (start, pages) = (range.start.get(), range.pages.get());
        if pages == 0 {
            return Ok(());
        }
        let cached = cachestat(self.file.as_fd(), bytes(start), bytes(pages))?.cached.get();
        if cached == 0 {
            return Ok(());
        }
        if cached >= pages {
            match found.last_mut() {
                Some(last) if last.end() == range.start => last.pages += range.pages,
                _ => found.push(range),
            }
            return Ok(());
        }
        let half = Pages::new(pages.div_ceil(2));
        self.look(Extent::new(range.start, half), found)?;
        let rest = Pages::new(pages - half.get());
        self.look(Extent::new(range.start.plus(half), rest), found)
    }
}

pub(super) fn existing(path: &Path) -> Result<(File, Bytes), ExperimentError> {
    let file = File::open(path).map_err(ExperimentError::io("open", path))?;
    let size = file.metadata().map_err(ExperimentError::io("look at", path))?.len();
    Ok((file, Bytes::new(size)))
}
