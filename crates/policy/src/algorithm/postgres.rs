//! The common part of PostgreSQL 17 and 18: a *read stream* that pins buffers in the order of its
//! scan, up to a distance that adapts to hits and waits.
//!
//! The cache represents PostgreSQL's shared buffers and the page cache together; the kernel's
//! read-ahead is not included. A scan reads blocks: a call of several blocks is executed block by
//! block. A call within the block of the previous call reads nothing, because a scan keeps its
//! buffer pinned.

use std::collections::VecDeque;
use std::ops::Range;

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE, Submission, Upcoming};
use crate::entry::{Parameter, PolicyArgs, PolicyError};
use crate::page::{Extent, Page};
use crate::policy::{Call, FileId, Policy, StateTable, StreamId, Touch};

/// The parameters of both versions.
pub(super) const PARAMETERS: [Parameter; 3] = [
    Parameter { name: "block", summary: "the size of a block", default: "8K" },
    Parameter { name: "combine", summary: "the largest read (io_combine_limit)", default: "128K" },
    Parameter {
        name: "full",
        summary: "on: the scan is known to read the whole relation",
        default: "off",
    },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PostgresRules {
    pub(super) block: u64,
    /// Maximum number of reads in flight (effective_io_concurrency).
    pub(super) max_ios: u64,
    pub(super) combine: u64,
    /// Maximum number of pinned blocks.
    pub(super) pins: u64,
    pub(super) full: bool,
    /// Whether a wait for a read without advice only increases the distance to one full read (17),
    /// or doubles it like any other wait (18).
    pub(super) trusts_kernel: bool,
    /// Whether reads start in advance (18 with workers or io_uring). Otherwise only advice is given
    /// in advance, and the reader reads when it needs the block.
    pub(super) asynchronous: bool,
    /// Whether advice on future reads is given to the kernel.
    pub(super) advice: bool,
    /// Whether advice on a sequential run continues until its first advised block is read (18).
    pub(super) advises_runs: bool,
}

impl PostgresRules {
    /// Parses `block` (pages per block), `combine` (blocks per read) and `full`.
    pub(super) fn sizes(args: &PolicyArgs<'_>) -> Result<(u64, u64, bool), PolicyError> {
        let block = args.pages("block")?;
        Ok((block, (args.pages("combine")? / block).max(1), args.flag("full")?))
    }

    /// Returns the blocks that contain these pages.
    fn blocks(&self, pages: Extent) -> Range<u64> {
        pages.start.get() / self.block..pages.end().get().div_ceil(self.block)
    }
}

/// A read that was started and has not been waited for.
#[derive(Clone, Copy, Debug)]
struct PendingRead {
    /// The position of its first buffer, counted from the start of the stream.
    place: u64,
    block: u64,
    count: u64,
    advised: bool,
}

#[derive(Clone, Debug)]
struct Scan {
    rules: PostgresRules,
    distance: u64,
    /// The pinned blocks, in the order in which they are returned.
    pinned: VecDeque<u64>,
    returned: u64,
    started: VecDeque<PendingRead>,
    pending: Option<(u64, u64)>,
    /// A block of the scan that could not be processed yet.
    held: Option<u64>,
    /// The next sequential block.
    sequential: Option<u64>,
    /// The first block of the sequential run for which advice is being given.
    run: Option<u64>,
    /// The block that the reader requests now, until it is in the stream.
    asked: Option<u64>,
    /// The block that was returned last; the reader still has its buffer pinned.
    current: Option<u64>,
    /// The number of future calls whose blocks are already in the stream or in `rest`.
    calls: u64,
    /// The blocks of the last of those calls that are not in the stream yet.
    rest: Range<u64>,
    /// The stream contains guessed blocks, so future calls cannot be counted.
    guesses: bool,
    /// The last block that entered the stream.
    last: u64,
    ended: bool,
}

impl Scan {
    fn new(rules: PostgresRules) -> Self {
        let distance = if rules.full { rules.combine.min(rules.pins) } else { 1 };
        Self {
            rules,
            distance,
            pinned: VecDeque::new(),
            returned: 0,
            started: VecDeque::new(),
            pending: None,
            held: None,
            sequential: None,
            run: None,
            asked: None,
            current: None,
            calls: 0,
            rest: 0..0,
            guesses: false,
            last: 0,
            ended: false,
        }
    }

    fn pending_count(&self) -> u64 {
        self.pending.map_or(0, |(_, count)| count)
    }

    /// Returns the next block of the scan; if unknown, the block after the last one.
    fn next_block(&mut self, cache: &dyn Cache) -> Option<u64> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let block = match self.asked.take() {
            Some(asked) => asked,
            None => self.foreseen(cache)?,
        };
        let end = cache.file_pages().get().div_ceil(self.rules.block);
        self.last = block;
        (block < end).then_some(block)
    }

    /// Returns the next future block that differs from the last block in the stream.
    fn foreseen(&mut self, cache: &dyn Cache) -> Option<u64> {
        let last = self.last;
        while !self.guesses {
            if let Some(block) = self.rest.find(|block| *block != last) {
                return Some(block);
            }
            match cache.upcoming(self.calls) {
                Upcoming::Pages(pages) => self.rest = self.rules.blocks(pages),
                Upcoming::Unknown => self.guesses = true,
                Upcoming::End => return None,
            }
            self.calls += 1;
        }
        Some(last + 1)
    }

    /// Returns whether advice is given for a read that starts at `block`.
    fn advises(&mut self, block: u64, at_once: bool) -> bool {
        if !self.rules.advice {
            return false;
        }
        let follows = self.sequential == Some(block);
        if self.rules.advises_runs {
            if follows {
                return self.run.is_some();
            }
            self.run = Some(block);
            return !self.pinned.is_empty();
        }
        !follows && !at_once
    }

    /// Starts the pending read, up to the first cached block.
    fn start(&mut self, cache: &mut dyn Cache, at_once: bool) {
        let Some((block, count)) = self.pending else { return };
        let advised = self.advises(block, at_once);
        let page = |block: u64| Page::new(block * self.rules.block);
        let cached = |nth: &u64| cache.folio(page(block + nth)).is_some();
        let hit = (0..count).find(cached);
        let missing = hit.unwrap_or(count);
        let taken = hit.map_or(count, |hit| hit + 1);
        if missing > 0 {
            let place = self.returned + self.pinned.len() as u64;
            self.started.push_back(PendingRead { place, block, count: missing, advised });
            self.sequential = Some(block + taken);
            if advised || self.rules.asynchronous {
                self.read(cache, block, missing);
            }
        } else {
            self.distance = self.distance.saturating_sub(1).max(1);
        }
        self.pinned.extend(block..block + taken);
        self.pending = (taken < count).then_some((block + taken, count - taken));
    }

    fn read(&self, cache: &mut dyn Cache, block: u64, count: u64) {
        let start = Page::new(block * self.rules.block);
        cache.submit(Submission::plain(start, Pages::new(count * self.rules.block)));
    }

    /// `read_stream_look_ahead`. If `at_once`, the reader waits for the first read immediately, so
    /// advice on it is useless.
    fn look_ahead(&mut self, cache: &mut dyn Cache, mut at_once: bool) {
        let PostgresRules { max_ios, combine, .. } = self.rules;
        while !self.ended
            && (self.started.len() as u64) < max_ios
            && self.pinned.len() as u64 + self.pending_count() < self.distance
        {
            if self.pending_count() == combine {
                self.start(cache, std::mem::take(&mut at_once));
                continue;
            }
            let Some(block) = self.next_block(cache) else {
                self.ended = true;
                break;
            };
            match &mut self.pending {
                Some((first, count)) if *first + *count == block => *count += 1,
                pending => {
                    let mut waiting = pending.is_some();
                    while waiting {
                        self.start(cache, std::mem::take(&mut at_once));
                        waiting = self.pending.is_some();
                        if self.started.len() as u64 == max_ios {
                            self.held = Some(block);
                            return;
                        }
                    }
                    self.pending = Some((block, 1));
                }
            }
        }
        let count = self.pending_count();
        let alone = self.pinned.is_empty() && count >= self.distance;
        if count > 0
            && (count == combine || alone || self.ended)
            && (self.started.len() as u64) < max_ios
        {
            self.start(cache, at_once);
        }
    }

    fn wait(&mut self, cache: &mut dyn Cache, read: PendingRead) {
        if !read.advised && !self.rules.asynchronous {
            self.read(cache, read.block, read.count);
        }
        let PostgresRules { combine, pins, trusts_kernel, .. } = self.rules;
        self.distance = if !trusts_kernel || read.advised {
            (2 * self.distance).min(pins)
        } else if self.distance > combine {
            self.distance - 1
        } else {
            (2 * self.distance).min(combine).min(pins)
        };
        if self.run == Some(read.block) {
            self.run = None;
        }
    }

    /// Starts a read call for these blocks.
    fn call(&mut self, cache: &mut dyn Cache, blocks: Range<u64>) {
        self.calls = self.calls.saturating_sub(1);
        for block in blocks.clone() {
            if self.current != Some(block) {
                self.next_buffer(cache, block, blocks.end);
            }
        }
    }

    /// `read_stream_next_buffer`: the reader requests `block`, in a call that ends at `end`. A
    /// block that is not the next one of the stream starts a new scan.
    fn next_buffer(&mut self, cache: &mut dyn Cache, block: u64, end: u64) {
        let expected = self.pinned.front().copied().or(self.pending.map(|(first, _)| first));
        if expected.or(self.held) != Some(block) {
            *self = Self::new(self.rules);
            self.asked = Some(block);
            self.rest = block + 1..end;
        }
        if self.pinned.is_empty() {
            self.look_ahead(cache, true);
        }
        self.current = self.pinned.pop_front();
        if self.current.is_none() {
            return;
        }
        if let Some(&read) = self.started.front().filter(|read| read.place == self.returned) {
            self.started.pop_front();
            self.wait(cache, read);
        }
        self.returned += 1;
        self.look_ahead(cache, false);
    }
}

/// The scans of a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Scans {
    rules: PostgresRules,
    scans: StateTable<Scan>,
}

impl Scans {
    pub(super) fn new(rules: PostgresRules) -> Self {
        Self { rules, scans: StateTable::default() }
    }
}

impl Policy for Scans {
    fn own_window(&self) -> Pages {
        Pages::new(self.rules.combine * self.rules.block)
    }

    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        self.scans.put(stream.0, Scan::new(self.rules));
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        let Some(scan) = self.scans.get(stream.0) else { return };
        let end = call.offset.get().saturating_add(call.length.get());
        let end = Bytes::new(end).min(cache.file_size()).to_pages_ceil(PAGE);
        let start = Page::FIRST.plus(call.offset.to_pages_floor(PAGE));
        let pages = Extent::new(start, Page::FIRST.plus(end).since(start));
        scan.call(cache, self.rules.blocks(pages));
    }

    fn needs_lookahead(&self) -> bool {
        true
    }

    /// All blocks of a read become valid when the read completes.
    fn completes_per_window(&self) -> bool {
        true
    }

    /// Reads a block that was evicted before its use, or in which a fault occurred.
    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        let block = touch.page.get() / self.rules.block;
        let start = Page::new(block * self.rules.block);
        cache.submit(Submission::plain(start, Pages::new(self.rules.block)));
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.scans.take(stream.0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    /// Scans these blocks of two pages, whose order the scan knows. Returns the device reads, in
    /// blocks, at each block.
    pub(crate) fn scan(bench: &mut Bench<Scans>, blocks: &[u64]) -> Vec<Vec<(u64, u64)>> {
        let reads = |nth: usize| {
            let pages = |block: &u64| Extent::new(Page::new(block * 2), Pages::new(2));
            bench.stage.scan = Some(blocks[nth + 1..].iter().map(pages).collect());
            let reads = bench.read(blocks[nth] * 2, 2);
            reads.into_iter().map(|(start, pages)| (start / 2, pages / 2)).collect()
        };
        (0..blocks.len()).map(reads).collect()
    }

    /// Returns the device reads, in pages, of a sequential scan in calls of `pages` pages.
    fn in_calls_of(pages: u64) -> Vec<(u64, u64)> {
        let rules = PostgresRules {
            block: 2,
            max_ios: 16,
            combine: 16,
            pins: 272,
            full: false,
            trusts_kernel: false,
            asynchronous: true,
            advice: false,
            advises_runs: false,
        };
        let mut bench = Bench::new(Scans::new(rules), 1024);
        let mut calls: Vec<_> = (0..1024 / pages)
            .map(|nth| Extent::new(Page::new(nth * pages), Pages::new(pages)))
            .collect();
        let mut reads = Vec::new();
        while !calls.is_empty() {
            let call = calls.remove(0);
            bench.stage.scan = Some(calls.clone());
            reads.extend(bench.read(call.start.get(), call.pages.get()));
        }
        reads
    }

    #[test]
    fn calls_of_any_size_are_the_same_scan() {
        let blocks = in_calls_of(2);
        assert!(blocks.len() < 60, "{blocks:?}");
        for pages in [1, 4, 16, 64] {
            assert_eq!(in_calls_of(pages), blocks, "calls of {pages} pages");
        }
    }

    pub(crate) fn distance(bench: &mut Bench<Scans>) -> u64 {
        bench.policy.scans.get(0).map_or(0, |scan| scan.distance)
    }

    pub(crate) fn cached_up_to(bench: &mut Bench<Scans>, blocks: u64) {
        bench.stage.submit(Submission::plain(Page::FIRST, Pages::new(2 * blocks)));
        bench.stage.file.take_reads();
    }
}
