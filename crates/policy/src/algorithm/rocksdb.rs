//! RocksDB's automatic read-ahead of an iterator: 8 KiB after two sequential block reads, doubled
//! with each read up to 256 KiB.
//!
//! Source: `table/block_based/block_prefetcher.cc` and `file/file_prefetch_buffer.h` of RocksDB.
//! Prefetches use `readahead(2)`, which is silently limited to the larger of the kernel's window
//! and one device request. The iterator assumes that everything was read (RocksDB issue 12038).

use units::{Bytes, Pages};

use crate::cache::{Cache, PAGE, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::{Extent, Page};
use crate::policy::{Call, FileId, Policy, StateTable, StreamId, Touch};

pub const ENTRY: Entry = Entry {
    name: "rocksdb",
    summary: "RocksDB iterators: 8 KiB doubled to 256 KiB after two sequential reads",
    source: "table/block_based/block_prefetcher.cc, file/file_prefetch_buffer.h of RocksDB",
    parameters: &[
        Parameter {
            name: "initial",
            summary: "the first read-ahead (initial_auto_readahead_size)",
            default: "8K",
        },
        Parameter {
            name: "max",
            summary: "the largest read-ahead (max_auto_readahead_size)",
            default: "256K",
        },
        Parameter {
            name: "reads",
            summary: "sequential reads before the first (num_file_reads_for_auto_readahead)",
            default: "2",
        },
        Parameter {
            name: "async_io",
            summary: "on: half of a read-ahead is always in flight (async_io)",
            default: "off",
        },
        Parameter {
            name: "compaction",
            summary: "on: 2 MiB from the first read on (compaction_readahead_size)",
            default: "off",
        },
    ],
    build: |args| {
        let max = args.pages("max")? * PAGE.bytes().get();
        Ok(Box::new(RocksDb::new(RocksDbOptions {
            initial: (args.pages("initial")? * PAGE.bytes().get()).min(max),
            max,
            reads: args.count("reads", 0, 1000)?,
            async_io: args.flag("async_io")?,
            compaction: args.flag("compaction")?,
        })))
    },
};

/// A block that is already cached reduces the read-ahead by this (DEFAULT_DECREMENT).
const DECREMENT_BYTES: u64 = 8 << 10;
const COMPACTION_BYTES: u64 = 2 << 20;

/// The options; sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RocksDbOptions {
    /// Initial and smallest read-ahead.
    pub initial: u64,
    pub max: u64,
    pub reads: u64,
    /// Two buffers of half a read-ahead each, of which one is always in flight.
    pub async_io: bool,
    /// A compaction: constant large read-ahead.
    pub compaction: bool,
}

#[derive(Clone, Copy, Debug)]
struct Iterator {
    options: RocksDbOptions,
    reads: u64,
    size: u64,
    /// End of the previous read.
    next: Option<u64>,
    /// The offset up to which the iterator assumes that everything is read.
    limit: u64,
    /// With `async_io`: the end of the first buffer.
    middle: u64,
}

#[derive(Clone, Debug)]
pub struct RocksDb {
    options: RocksDbOptions,
    iterators: StateTable<Iterator>,
}

impl RocksDb {
    pub fn new(options: RocksDbOptions) -> Self {
        Self { options, iterators: StateTable::default() }
    }
}

/// Prefetches through the kernel, which may read fewer pages.
fn prefetch(cache: &mut dyn Cache, offset: u64, length: u64) {
    let page = PAGE.bytes().get();
    let (first, end) = (offset / page, offset.saturating_add(length).div_ceil(page));
    let limits = cache.limits();
    let most = limits.read_ahead.max(limits.max_request);
    let pages = Pages::new(end - first).min(most);
    cache.submit(Submission::plain(Page::new(first), pages));
}

/// Returns whether all of the bytes are cached.
fn cached(cache: &dyn Cache, offset: u64, length: u64) -> bool {
    let page = PAGE.bytes().get();
    let mut at = Page::new(offset / page);
    let end = Page::new(offset.saturating_add(length).div_ceil(page));
    while at < end {
        match cache.folio(at) {
            Some(folio) => at = Extent::new(folio.head, folio.pages()).end(),
            None => return false,
        }
    }
    true
}

impl Iterator {
    fn new(options: RocksDbOptions) -> Self {
        Self { options, reads: 0, size: options.initial, next: None, limit: 0, middle: 0 }
    }

    /// Handles a read of `length` bytes at `offset`.
    fn read(&mut self, cache: &mut dyn Cache, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        if self.options.compaction {
            if end > self.limit {
                prefetch(cache, offset, length.saturating_add(COMPACTION_BYTES));
                self.limit = end.saturating_add(COMPACTION_BYTES);
            }
            return;
        }
        let sequential = self.next.is_none_or(|next| next == offset);
        self.next = Some(end);
        if end <= self.limit {
            if self.options.async_io && end > self.middle {
                self.refill(cache);
            }
            return;
        }
        if !sequential {
            (self.reads, self.size, self.limit, self.middle) = (1, self.options.initial, 0, 0);
            return;
        }
        if self.reads + 1 > self.options.reads && cached(cache, offset, length) {
            self.size = self.size.saturating_sub(DECREMENT_BYTES).max(self.options.initial);
            return;
        }
        self.reads += 1;
        if self.reads <= self.options.reads {
            return;
        }
        prefetch(cache, offset, length.saturating_add(self.size));
        self.limit = end.saturating_add(self.size);
        self.middle = self.limit - self.size / 2;
        self.size = (2 * self.size).min(self.options.max);
    }

    /// Replaces the first buffer, which is used up, by the second one, and fills another buffer.
    fn refill(&mut self, cache: &mut dyn Cache) {
        let half = (self.size / 2).max(PAGE.bytes().get());
        prefetch(cache, self.limit, half);
        self.middle = self.limit;
        self.limit = self.limit.saturating_add(half);
        self.size = (2 * self.size).min(self.options.max);
    }
}

impl Policy for RocksDb {
    fn own_window(&self) -> Pages {
        Bytes::new(self.options.max).to_pages_ceil(PAGE)
    }

    /// `readahead(2)` of Linux since 4.3: a bio completes as a whole.
    fn completes_per_window(&self) -> bool {
        true
    }

    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        self.iterators.put(stream.0, Iterator::new(self.options));
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        if let Some(iterator) = self.iterators.get(stream.0) {
            iterator.read(cache, call.offset.get(), call.length.get());
        }
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        cache.submit(Submission::plain(touch.page, touch.request));
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.iterators.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    const DEFAULT: RocksDbOptions = RocksDbOptions {
        initial: 8 << 10,
        max: 256 << 10,
        reads: 2,
        async_io: false,
        compaction: false,
    };

    fn bench(options: RocksDbOptions) -> Bench<RocksDb> {
        Bench::new(RocksDb::new(options), 1 << 16)
    }

    fn scan(bench: &mut Bench<RocksDb>, pages: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        pages.flat_map(|page| bench.read(page, 1)).collect()
    }

    #[test]
    fn the_third_sequential_read_starts_read_ahead_and_each_doubles_it() {
        let mut bench = bench(DEFAULT);
        let reads = scan(&mut bench, 0..200);
        let expected =
            [(0, 1), (1, 1), (2, 3), (5, 5), (10, 9), (19, 17), (36, 33), (69, 65), (134, 65)];
        assert_eq!(reads[..9], expected);
    }

    #[test]
    fn its_largest_window_is_in_pages() {
        assert_eq!(RocksDb::new(DEFAULT).own_window(), Pages::new(64));
    }

    #[test]
    fn a_seek_starts_a_new_sequence() {
        let mut bench = bench(DEFAULT);
        scan(&mut bench, 0..40);
        let reads = scan(&mut bench, 1000..1006);
        assert_eq!(reads, [(1000, 1), (1001, 1), (1002, 3), (1005, 5)]);
    }

    #[test]
    fn cached_blocks_reduce_the_read_ahead() {
        let mut bench = bench(DEFAULT);
        scan(&mut bench, 0..69);
        bench.stage.submit(Submission::plain(Page::new(69), Pages::new(3)));
        bench.stage.file.take_reads();
        // 256 KiB would be next; three cached blocks subtract 8 KiB each.
        assert_eq!(scan(&mut bench, 69..73), [(72, 1 + 64 - 6)]);
    }

    #[test]
    fn the_kernel_limits_a_compaction() {
        let mut bench = bench(RocksDbOptions { compaction: true, ..DEFAULT });
        assert_eq!(bench.read(0, 1), [(0, 320)]);
        // The iterator assumes that it is read up to page 512; it is not.
        assert_eq!(scan(&mut bench, 1..322), [(320, 1), (321, 1)]);
        assert_eq!(scan(&mut bench, 322..513).last(), Some(&(512, 1)));
        assert_eq!(scan(&mut bench, 513..514), [(513, 320)]);
    }

    #[test]
    fn async_io_keeps_half_of_the_read_ahead_in_flight() {
        let mut bench = bench(RocksDbOptions { async_io: true, ..DEFAULT });
        let reads = scan(&mut bench, 0..400);
        assert_eq!(reads[..3], [(0, 1), (1, 1), (2, 3)]);
        // After the start no reader waits: each read starts beyond the page that triggered it.
        let mut waits = 0;
        for page in 400..800 {
            waits += u64::from(bench.stage.folio(Page::new(page)).is_none());
            bench.read(page, 1);
        }
        assert_eq!(waits, 0);
    }
}
