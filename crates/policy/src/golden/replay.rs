//! Passes the operations of a pattern through the policy.

use std::collections::BTreeMap;

use units::{Bytes, Pages};

use super::decision::{ReplayResult, made_by};
use super::operation::{Operation, PatternAccess};
use super::schema::{Config, GoldenDevice, GoldenRecording};
use crate::algorithm::linux_6_18::Linux618;
use crate::cache::{Cache, DeviceLimits, FileCache, FileShape, PAGE};
use crate::mapping::Mapping;
use crate::page::{Extent, Page};
use crate::policy::{Advice, Call, FileId, Policy, StreamId};
use crate::reader::read;

/// Maximum number of accesses in a pattern: a typing error must not cause hours of replay.
const MAX_ACCESSES: u64 = 50_000_000;

/// Replays one pattern in one configuration.
pub(super) fn sequence(
    recording: &GoldenRecording,
    device: GoldenDevice,
    config: &str,
    pattern: &str,
) -> Result<ReplayResult, String> {
    let Config { folio_limit, read_ahead } = Config::parse(config)
        .ok_or("the configuration should be large_folio/raNk or order0/raNk")?;
    let pattern = recording.patterns.get(pattern).ok_or("the recording has no such pattern")?;
    let limits = DeviceLimits { read_ahead, max_request: device.max_request };
    let mut replay = Replay {
        policy: Linux618::new(),
        cache: FileCache::new(FileShape { size: device.file, folio_limit, limits }),
        files: BTreeMap::new(),
        mappings: BTreeMap::new(),
        opened: 0,
        left: MAX_ACCESSES,
    };
    for operation in &pattern.ops {
        replay.operate(Operation::parse(operation)?)?;
    }
    let cached = replay.cache.tree().cached();
    Ok(ReplayResult { decisions: made_by(replay.cache.take_events()), cached })
}

struct Replay {
    policy: Linux618,
    cache: FileCache,
    files: BTreeMap<String, StreamId>,
    mappings: BTreeMap<String, Mapping>,
    opened: u32,
    left: u64,
}

impl Replay {
    fn operate(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::Open(label) => {
                let stream = StreamId(self.opened);
                self.opened += 1;
                self.policy.open(&mut self.cache, stream, FileId(0));
                self.files.insert(label, stream);
            }
            // A mapping keeps its open file alive, so closing the descriptor changes nothing.
            Operation::Close(label) => drop(self.files.remove(&label)),
            Operation::Fadvise { file, advice, offset, length } => {
                self.fadvise(&file, &advice, offset, length)?;
            }
            Operation::Readahead { file, offset, length } => {
                self.fadvise(&file, "WILLNEED", offset, length)?;
            }
            Operation::Mmap(label) => {
                let mapping = Mapping::new(self.file(&label)?, self.cache.file_pages());
                self.mappings.insert(format!("m{label}"), mapping);
            }
            Operation::Madvise { file, advice, offset, length } => {
                self.madvise(&file, &advice, offset, length)?;
            }
            Operation::Run { times, accesses } => {
                let count = times.checked_mul(accesses.len() as u64);
                let left = count.and_then(|count| self.left.checked_sub(count));
                self.left = left.ok_or("the pattern has too many accesses")?;
                for nth in 0..times {
                    for access in &accesses {
                        self.access(access, nth)?;
                    }
                }
            }
            Operation::BeginObserve => drop(self.cache.take_events()),
        }
        Ok(())
    }

    fn file(&self, label: &str) -> Result<StreamId, String> {
        self.files.get(label).copied().ok_or_else(|| format!("file {label} is not open"))
    }

    fn access(&mut self, access: &PatternAccess, nth: u64) -> Result<(), String> {
        // The kernel rejects an offset before the start of the file and reads nothing.
        let Some(offset) = access.offset_of(nth).map(Bytes::new) else { return Ok(()) };
        if let Some(mapping) = self.mappings.get_mut(&access.target) {
            let page = Page::FIRST.plus(offset.to_pages_floor(PAGE));
            mapping.touch(&mut self.policy, &mut self.cache, page);
            return Ok(());
        }
        let stream = self.file(&access.target)?;
        let call = Call { offset, length: Bytes::new(access.length) };
        read(&mut self.policy, &mut self.cache, stream, call);
        Ok(())
    }

    fn fadvise(&mut self, label: &str, advice: &str, at: u64, length: u64) -> Result<(), String> {
        let stream = self.file(label)?;
        let advice = match advice.trim_start_matches("POSIX_FADV_") {
            "NORMAL" => Advice::Normal,
            "SEQUENTIAL" => Advice::Sequential,
            "RANDOM" => Advice::Random,
            "WILLNEED" => Advice::WillNeed(covered(at, length)),
            "NOREUSE" => return Ok(()),
            "DONTNEED" => return self.drop_pages(at, length),
            other => return Err(format!("no such advice for a file: {other}")),
        };
        self.policy.advise(&mut self.cache, stream, advice);
        Ok(())
    }

    fn madvise(
        &mut self,
        label: &str,
        advice: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(), String> {
        let name = if label.starts_with('m') { label.to_owned() } else { format!("m{label}") };
        let mapping =
            self.mappings.get_mut(&name).ok_or_else(|| format!("file {label} is not mapped"))?;
        let length = length.unwrap_or(u64::MAX - offset).div_ceil(PAGE.bytes().get());
        let start = Page::FIRST.plus(Bytes::new(offset).to_pages_floor(PAGE));
        let extent = Extent::new(start, Pages::new(length));
        match advice.trim_start_matches("MADV_") {
            "NORMAL" => mapping.advise(extent, |to| (to.sequential, to.random) = (false, false)),
            "SEQUENTIAL" => mapping.advise(extent, |to| (to.sequential, to.random) = (true, false)),
            "RANDOM" => mapping.advise(extent, |to| (to.sequential, to.random) = (false, true)),
            "HUGEPAGE" => mapping.advise(extent, |to| to.huge = true),
            "NOHUGEPAGE" => mapping.advise(extent, |to| to.huge = false),
            "DONTNEED" => mapping.unmap(extent),
            "WILLNEED" => {
                let stream = mapping.stream();
                let wanted = extent.before(Page::FIRST.plus(self.cache.file_pages()));
                self.policy.advise(&mut self.cache, stream, Advice::WillNeed(wanted));
            }
            other => return Err(format!("no such advice for a mapping: {other}")),
        }
        Ok(())
    }

    /// POSIX_FADV_DONTNEED: removes the unmapped folios that are completely within the range.
    fn drop_pages(&mut self, offset: u64, length: u64) -> Result<(), String> {
        let size = self.cache.file_size();
        let first = Page::FIRST.plus(Bytes::new(offset).to_pages_ceil(PAGE));
        let end = offset.checked_add(length).filter(|_| length > 0).map_or(size, Bytes::new);
        let end = if end >= size { size.to_pages_ceil(PAGE) } else { end.to_pages_floor(PAGE) };
        let range = Extent::new(first, Page::FIRST.plus(end).since(first));
        let folios: Vec<_> = self.cache.tree().folios(range).collect();
        for folio in folios {
            let inside = range.start <= folio.head && folio.end() <= range.end();
            let mut pages = folio.head.get()..folio.end().get();
            let mapped = pages.any(|page| {
                self.mappings.values().any(|mapping| mapping.is_mapped(Page::new(page)))
            });
            if inside && !mapped {
                self.cache.remove(folio.head);
            }
        }
        Ok(())
    }
}

/// Returns the pages that overlap the range; a length of 0 extends to the end of the file.
fn covered(offset: u64, length: u64) -> Extent {
    let start = Bytes::new(offset).to_pages_floor(PAGE);
    let end = offset.checked_add(length).filter(|_| length > 0).unwrap_or(i64::MAX as u64);
    let start = Page::FIRST.plus(start);
    Extent::new(start, Page::FIRST.plus(Bytes::new(end).to_pages_ceil(PAGE)).since(start))
}
