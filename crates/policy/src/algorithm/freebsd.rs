//! FreeBSD's clustered read-ahead. Each open file has a count of sequential 16 KiB units. Blocks
//! have marks. A cluster is at most one device request.
//!
//! Source: `cluster_read` and `cluster_rbuild` (sys/kern/vfs_cluster.c) and `sequential_heuristic`
//! (sys/kern/vfs_vnops.c). The window is a number of *blocks* and grows with the amount read, not
//! by doubling. A cluster ends at a cached block or where the file is not contiguous on the device.

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::{Folio, Page};
use crate::policy::{Advice, Call, FileId, Policy, StateTable, StreamId, Touch, TouchOutcome};

pub const ENTRY: Entry = Entry {
    name: "freebsd",
    summary: "FreeBSD cluster_read: vfs.read_max blocks ahead, in clusters",
    source: "sys/kern/vfs_cluster.c, sys/kern/vfs_vnops.c of FreeBSD",
    parameters: &[
        Parameter { name: "read_max", summary: "blocks ahead (vfs.read_max)", default: "64" },
        Parameter {
            name: "read_min",
            summary: "minimum blocks read on a miss (vfs.read_min)",
            default: "1",
        },
        Parameter { name: "block", summary: "block size of the file system", default: "32K" },
        Parameter {
            name: "max_io",
            summary: "the largest cluster (MAXPHYS; 128K before FreeBSD 13)",
            default: "1M",
        },
    ],
    build: |args| {
        let block = args.pages("block")?;
        Ok(Box::new(FreeBsd::new(FreebsdLimits {
            read_max: args.count("read_max", 0, 1 << 20)?,
            read_min: args.count("read_min", 1, 1 << 20)?,
            block,
            cluster: (args.pages("max_io")? / block).max(1),
        })))
    },
};

/// Unit of the sequential count.
const SEQUENTIAL_UNIT_BYTES: u64 = 16 << 10;
/// Maximum of the sequential count (IO_SEQMAX).
const MAX_SEQ_COUNT: u64 = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreebsdLimits {
    pub read_max: u64,
    /// The minimum number of blocks that a miss reads.
    pub read_min: u64,
    pub block: u64,
    pub cluster: u64,
}

#[derive(Clone, Copy, Debug)]
struct OpenFile {
    sequential: u64,
    next: Bytes,
    random: bool,
    /// The sequential count of the current call, and its first page.
    now: u64,
    first: Page,
    /// The last block that this call missed. Its mark is for the next call.
    missed: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct FreeBsd {
    limits: FreebsdLimits,
    files: StateTable<OpenFile>,
}

impl FreeBsd {
    pub fn new(limits: FreebsdLimits) -> Self {
        Self { limits, files: StateTable::default() }
    }
}

impl OpenFile {
    /// `sequential_heuristic`.
    fn count(&mut self, call: Call) -> u64 {
        let at_start = call.offset.is_zero() && self.sequential > 0;
        if at_start || call.offset == self.next {
            self.sequential = (self.sequential + call.length.get().div_ceil(SEQUENTIAL_UNIT_BYTES))
                .min(MAX_SEQ_COUNT);
            return self.sequential;
        }
        self.sequential = u64::from(self.sequential > 1);
        0
    }
}

impl FreebsdLimits {
    fn page(&self, block: u64) -> Page {
        Page::new(block.saturating_mul(self.block))
    }

    fn cached(&self, cache: &dyn Cache, block: u64) -> bool {
        cache.folio(self.page(block)).is_some()
    }

    /// Returns the number of whole blocks after `block` that may be read ahead.
    fn ahead(&self, cache: &dyn Cache, block: u64, sequential: u64) -> u64 {
        let ahead = sequential.min(self.read_max);
        let whole = self.whole(cache);
        if block + ahead + 1 > whole { whole.saturating_sub(block) } else { ahead }
    }

    /// Returns the number of whole blocks of the file.
    fn whole(&self, cache: &dyn Cache) -> u64 {
        cache.file_size().get() / (self.block * PAGE.bytes().get())
    }

    /// Returns the number of blocks from `block` that are contiguous on the device.
    fn contiguous(&self, cache: &dyn Cache, block: u64) -> u64 {
        (cache.contiguous(self.page(block)).get() / self.block).max(1)
    }

    /// `cluster_rbuild`: reads up to `run` uncached blocks. Returns their number, at least 1. If
    /// `waiting`, a reader waits for the first block, and the mark is on the second.
    fn cluster(&self, cache: &mut dyn Cache, block: u64, run: u64, waiting: bool) -> u64 {
        let whole = self.whole(cache).saturating_sub(block);
        let run = run.min(whole).max(1);
        let free = (1..run).find(|&ahead| self.cached(cache, block + ahead)).unwrap_or(run);
        cache.submit(Submission::plain(self.page(block), Pages::new(free * self.block)));
        if !waiting {
            cache.set_mark(self.page(block));
        } else if free > 1 {
            cache.set_mark(self.page(block + 1));
        }
        if run > 1 && free == run {
            cache.set_mark(self.page(block + run - 1));
        }
        free
    }

    /// Handles a missing block: reads it together with the rest of the call.
    fn miss(&self, cache: &mut dyn Cache, touch: Touch, sequential: u64) {
        let block = touch.page.get() / self.block;
        let ahead = self.ahead(cache, block, sequential);
        let inside = touch.page.get() % self.block;
        let wanted = (inside + touch.request.get()).max(self.read_min * self.block);
        let left = cache.file_pages().get().saturating_sub(block * self.block);
        let blocks = wanted.min(left).div_ceil(self.block).min(self.cluster);
        let blocks = blocks.min(self.contiguous(cache, block)).max(1);
        let next = if blocks > 1 {
            block + self.cluster(cache, block, blocks, true)
        } else {
            cache.submit(Submission::plain(self.page(block), Pages::new(self.block)));
            cache.set_mark(self.page(block));
            block + 1
        };
        self.go_ahead(cache, next, block + ahead);
    }

    /// Handles a marked block: reads ahead after the last consecutive cached block.
    fn hit(&self, cache: &mut dyn Cache, block: u64, sequential: u64) {
        if sequential == 0 {
            return;
        }
        cache.clear_mark(self.page(block));
        let ahead = self.ahead(cache, block, sequential);
        let mut i = 1;
        while i < ahead && self.cached(cache, block + i) {
            if i % self.cluster == self.cluster - 1 || i == ahead - 1 {
                cache.set_mark(self.page(block + i));
            }
            i += 1;
        }
        if i < ahead {
            self.go_ahead(cache, block + i, block + ahead);
        }
    }

    /// Reads clusters from `block` on, until one reaches or passes `end`.
    fn go_ahead(&self, cache: &mut dyn Cache, mut block: u64, end: u64) {
        while block < end {
            if self.cached(cache, block) {
                block += 1;
                continue;
            }
            let run = self.contiguous(cache, block).min(self.cluster);
            block += self.cluster(cache, block, run, false);
        }
    }
}

impl Policy for FreeBsd {
    fn own_window(&self) -> Pages {
        Pages::new(self.limits.read_max * self.limits.block)
    }

    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        // The first read at offset 0 counts as sequential (count 1).
        let file = OpenFile {
            sequential: 1,
            next: Bytes::ZERO,
            random: false,
            now: 0,
            first: Page::FIRST,
            missed: None,
        };
        self.files.put(stream.0, file);
    }

    fn begin(&mut self, _cache: &mut dyn Cache, stream: StreamId, call: Call) {
        if let Some(file) = self.files.get(stream.0) {
            file.now = if file.random { 0 } else { file.count(call) };
            file.first = Page::FIRST.plus(call.offset.to_pages_floor(PAGE));
            file.missed = None;
        }
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        if let Some(file) = self.files.get(touch.stream.0) {
            file.missed = Some(touch.page.get() / self.limits.block);
            self.limits.miss(cache, touch, file.now);
        }
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, _folio: Folio) {
        if let Some(file) = self.files.get(touch.stream.0) {
            let block = touch.page.get() / self.limits.block;
            if file.missed != Some(block) {
                self.limits.hit(cache, block, file.now);
            }
        }
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    /// A call that starts inside a block checks the block's mark, which is on its first page.
    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
        let Some(file) = self.files.get(touch.stream.0) else { return };
        let block = touch.page.get() / self.limits.block;
        let head = self.limits.page(block);
        if touch.page == file.first
            && touch.page != head
            && outcome != TouchOutcome::Missed
            && cache.folio(head).is_some_and(|folio| folio.marked)
        {
            self.limits.hit(cache, block, file.now);
        }
    }

    fn end(&mut self, stream: StreamId, position: Bytes) {
        if let Some(file) = self.files.get(stream.0) {
            file.next = position;
        }
    }

    fn advise(&mut self, _cache: &mut dyn Cache, stream: StreamId, advice: Advice) {
        if let Some(file) = self.files.get(stream.0) {
            match advice {
                Advice::Normal | Advice::Sequential => file.random = false,
                Advice::Random => file.random = true,
                Advice::WillNeed(_) => {}
            }
        }
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.files.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    /// Blocks of 8 pages, clusters of 4 blocks.
    const SMALL: FreebsdLimits = FreebsdLimits { read_max: 64, read_min: 1, block: 8, cluster: 4 };

    fn bench(limits: FreebsdLimits) -> Bench<FreeBsd> {
        Bench::new(FreeBsd::new(limits), 8000)
    }

    #[test]
    fn the_count_grows_with_the_bytes_read_and_falls_in_two_steps() {
        let mut file = OpenFile {
            sequential: 1,
            next: Bytes::ZERO,
            random: false,
            now: 0,
            first: Page::FIRST,
            missed: None,
        };
        let call = |offset, length| Call { offset: Bytes::new(offset), length: Bytes::new(length) };
        assert_eq!(file.count(call(0, 16 << 10)), 2);
        file.next = Bytes::new(16 << 10);
        assert_eq!(file.count(call(16 << 10, 65_537)), 7);
        assert_eq!(file.count(call(16 << 10, u64::MAX / 2)), MAX_SEQ_COUNT);
        // A seek resets the count to 1, the next one to 0; offset 0 is then not special.
        assert_eq!((file.count(call(999, 1)), file.sequential), (0, 1));
        assert_eq!((file.count(call(777, 1)), file.sequential), (0, 0));
        assert_eq!(file.count(call(0, 1)), 0);
    }

    #[test]
    fn a_random_read_is_one_block() {
        let mut bench = bench(SMALL);
        assert_eq!(bench.read(803, 1), [(800, 8)]);
        assert_eq!(bench.read(1607, 2), [(1600, 16)]);
        // Its mark has no effect on a reader that is not sequential.
        assert_eq!(bench.read(801, 1), []);
        assert_eq!(bench.marked(), [800, 1608]);
    }

    #[test]
    fn read_min_makes_random_reads_larger() {
        let mut bench = bench(FreebsdLimits { read_min: 3, ..SMALL });
        assert_eq!(bench.read(800, 1), [(800, 24)]);
    }

    #[test]
    fn a_scan_reads_read_max_blocks_ahead_in_clusters() {
        let mut bench = bench(FreebsdLimits { read_max: 8, ..SMALL });
        // One block of 32 KiB is two units: count 3, so blocks 1 and 2 ahead are one cluster.
        assert_eq!(bench.read(0, 8), [(0, 8), (8, 32)]);
        let ahead: Vec<_> = (1..40)
            .map(|block| {
                bench.read(block * 8, 8);
                let tree = bench.stage.file.tree();
                tree.present_run(Page::new(block * 8), Pages::new(1000)).get() / 8
            })
            .collect();
        // With a high count, one window to one window and a cluster are read ahead.
        assert!(ahead[8..].iter().all(|&blocks| (4..=12).contains(&blocks)), "{ahead:?}");
        assert_eq!(bench.stage.file.tree().cached().get() % 8, 0);
    }

    #[test]
    fn a_cluster_ends_where_the_file_is_not_contiguous() {
        let mut bench = bench(FreebsdLimits { read_max: 8, ..SMALL });
        bench.stage.contiguous = 16;
        // Eight blocks ahead of the last of the call's eight, two at a time.
        let pairs: Vec<_> = (0..8).map(|pair| (16 * pair, 16)).collect();
        assert_eq!(bench.read(0, 64), pairs);
    }

    #[test]
    fn a_cluster_ends_at_a_cached_block() {
        let mut bench = bench(FreebsdLimits { read_max: 8, ..SMALL });
        bench.open(1);
        bench.read_by(1, 24, 1);
        assert_eq!(bench.read(0, 32)[..2], [(0, 24), (32, 32)]);
    }

    #[test]
    fn a_short_file_is_read_in_whole_blocks_ahead_only() {
        let mut bench = Bench::new(FreeBsd::new(SMALL), 20);
        assert_eq!(bench.read(0, 8), [(0, 8), (8, 8)]);
        assert_eq!(bench.read(8, 8), []);
        assert_eq!(bench.read(16, 8), [(16, 4)]);
    }
}
