//! OpenZFS's predictive prefetcher, zfetch. It detects up to eight streams for each file,
//! regardless of the process. The distance grows when prefetches are late.
//!
//! Source: `module/zfs/dmu_zfetch.c` of OpenZFS 2.3. Blocks are records. Prefetch of indirect
//! blocks is left out: simulated files have none.

use std::collections::VecDeque;

use units::{Nanos, Pages};

use crate::cache::{Cache, PAGE, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::Page;
use crate::policy::{Call, FileId, Policy, StateTable, StreamId, Touch, TouchOutcome};

pub const ENTRY: Entry = Entry {
    name: "zfs",
    summary: "OpenZFS zfetch: eight streams per file, holes included, distance by lateness",
    source: "module/zfs/dmu_zfetch.c of OpenZFS",
    parameters: &[
        Parameter { name: "record", summary: "the size of a record", default: "128K" },
        Parameter {
            name: "min_distance",
            summary: "limit of doubling (zfetch_min_distance)",
            default: "4M",
        },
        Parameter {
            name: "max_distance",
            summary: "largest distance (zfetch_max_distance)",
            default: "64M",
        },
        Parameter {
            name: "max_reorder",
            summary: "largest reordering within a stream (zfetch_max_reorder)",
            default: "16M",
        },
        Parameter { name: "max_streams", summary: "streams per file", default: "8" },
        Parameter {
            name: "hole_shift",
            summary: "holes up to 1/2^N of the skipped data are read (zfetch_hole_shift)",
            default: "2",
        },
    ],
    build: |args| {
        if args.pages("min_distance")? > args.pages("max_distance")? {
            return Err(args.fail("min_distance", "max_distance or less"));
        }
        Ok(Box::new(Zfs::new(Tunables {
            record: args.pages("record")?,
            min_distance: args.pages("min_distance")?,
            max_distance: args.pages("max_distance")?,
            max_reorder: args.pages("max_reorder")?,
            max_streams: args.count("max_streams", 1, 1024)?,
            hole_shift: args.count("hole_shift", 0, 16)?,
        })))
    },
};

/// Maximum number of ranges that a stream remembers ahead of its position (ZFETCH_RANGES).
const MAX_RANGES: usize = 9;
/// Maximum distance of such a range from the position, in records.
const MAX_RANGE_START: u64 = u16::MAX as u64;
/// A stream without a hit for longer may be replaced by a new one (zfetch_min_sec_reap). The clock
/// has a resolution of one second.
const IDLE_SECONDS: i64 = 1;
/// A stream without a hit for longer is dropped (zfetch_max_sec_reap).
const DEAD_SECONDS: i64 = 2;

/// Tunables; sizes in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    pub record: u64,
    /// The distance doubles with each access up to this value.
    pub min_distance: u64,
    /// Largest distance.
    pub max_distance: u64,
    /// An access up to this far ahead still belongs to the stream.
    pub max_reorder: u64,
    pub max_streams: u64,
    /// Holes may be 1/2^`hole_shift` of the records that an access ahead has skipped; 16 for none.
    pub hole_shift: u64,
}

/// A stream. All numbers except `distance` are records.
#[derive(Clone, Debug)]
struct Stream {
    /// The next expected record.
    next: u64,
    /// Ranges ahead that were accessed out of order, as distances from `next`.
    ranges: Vec<(u64, u64)>,
    distance: u64,
    fetched: u64,
    fetch_end: u64,
    missed: bool,
    /// The reader has waited for a prefetch since the last access.
    late: bool,
    /// Time of the last hit in seconds.
    used: i64,
}

#[derive(Clone, Debug, Default)]
struct File {
    streams: VecDeque<Stream>,
}

#[derive(Clone, Debug)]
pub struct Zfs {
    tunables: Tunables,
    files: StateTable<File>,
    file_of: StateTable<u32>,
}

impl Zfs {
    pub fn new(tunables: Tunables) -> Self {
        Self { tunables, files: StateTable::default(), file_of: StateTable::default() }
    }
}

impl Stream {
    /// Creates a stream that may be replaced from the next second on, unless it has a hit.
    fn new(next: u64, now: i64) -> Self {
        Self {
            next,
            ranges: Vec::new(),
            distance: 0,
            fetched: next,
            fetch_end: next,
            missed: false,
            late: false,
            used: now - IDLE_SECONDS,
        }
    }

    /// Advances by `count` records and over the ranges that it reaches. Returns the total advance.
    fn advance(&mut self, mut count: u64) -> u64 {
        let mut gone = 0;
        for &(start, end) in &self.ranges {
            if start > count {
                break;
            }
            gone += 1;
            if end >= count {
                count = end;
                break;
            }
        }
        self.ranges.drain(..gone);
        for range in &mut self.ranges {
            *range = (range.0 - count, range.1 - count);
        }
        self.next += count;
        count
    }

    /// Records an access ahead. Returns the number of records by which the stream advances: not 0
    /// if the range up to the access is almost completely accessed.
    fn remember(&mut self, start: u64, end: u64, hole_shift: u64) -> u64 {
        let (start, end) = (start - self.next, end - self.next);
        let first = self.ranges.iter().position(|range| range.1 >= start);
        let first = first.unwrap_or(self.ranges.len());
        let touching = self.ranges[first..].iter().take_while(|range| range.0 <= end).count();
        if touching == 0 {
            if self.ranges.len() == MAX_RANGES {
                return 0;
            }
            self.ranges.insert(first, (start, end));
        } else {
            let last = self.ranges[first + touching - 1].1.max(end);
            self.ranges[first] = (self.ranges[first].0.min(start), last);
            self.ranges.drain(first + 1..first + touching);
        }
        if hole_shift >= 16 {
            return 0;
        }
        let (mut holes, mut done, mut reach) = (0, 0, 0);
        for &(start, end) in &self.ranges {
            holes += start - done;
            done = end;
            if holes <= end >> hole_shift {
                reach = end;
            }
        }
        if reach > 0 { self.advance(reach) } else { 0 }
    }

    /// Updates the distance after an access of `count` records.
    fn grow(&mut self, count: u64, tunables: &Tunables, crowded: bool) {
        let pages = count * tunables.record;
        if self.distance < pages {
            self.distance = pages;
        } else if self.distance < tunables.min_distance
            && (self.distance < tunables.record || !crowded)
        {
            self.distance *= 2;
        } else if self.late {
            self.distance += self.distance / 8;
        }
        self.late = false;
        self.distance = self.distance.min(tunables.max_distance);
        self.fetched = self.fetched.max(self.next);
        self.fetch_end = self.fetch_end.max(self.next + self.distance / tunables.record);
    }
}

/// The relation of an access to the streams of its file.
enum StreamMatch {
    /// The access advanced this stream by this many records.
    Hit(usize, u64),
    /// The access belongs to a stream, which does not advance.
    Known,
    New,
}

impl File {
    /// Finds the stream of an access to records `[start, end)`, as `dmu_zfetch_prepare` does.
    fn find(&mut self, start: u64, end: u64, now: i64, tunables: &Tunables) -> StreamMatch {
        let exact = |stream: &Stream| start == stream.next || start + 1 == stream.next;
        if let Some(nth) = self.streams.iter().position(exact) {
            let count = end - start - (self.streams[nth].next - start);
            return self.hit(nth, count, now);
        }
        let reorder = (tunables.max_reorder / tunables.record + 1).min(MAX_RANGE_START);
        for nth in 0..self.streams.len() {
            let stream = &mut self.streams[nth];
            if start > stream.next {
                if end <= stream.next + reorder {
                    let count = stream.remember(start, end, tunables.hole_shift);
                    stream.used = now;
                    return if count > 0 {
                        StreamMatch::Hit(nth, count)
                    } else {
                        StreamMatch::Known
                    };
                }
            } else if end >= stream.next {
                let count = end - stream.next;
                return self.hit(nth, count, now);
            } else if end + reorder > stream.next && now - stream.used <= DEAD_SECONDS {
                stream.used = now;
                return StreamMatch::Known;
            }
        }
        StreamMatch::New
    }

    fn hit(&mut self, nth: usize, count: u64, now: i64) -> StreamMatch {
        let stream = &mut self.streams[nth];
        stream.used = now;
        let count = stream.advance(count);
        if count > 0 { StreamMatch::Hit(nth, count) } else { StreamMatch::Known }
    }

    /// Creates a stream; if the file has the maximum, it replaces an idle one.
    fn create(&mut self, next: u64, last: u64, now: i64, tunables: &Tunables) {
        self.streams.retain(|stream| now - stream.used <= DEAD_SECONDS);
        let room = (last.saturating_mul(tunables.record) / tunables.max_distance)
            .clamp(1, tunables.max_streams);
        if self.streams.len() as u64 >= room {
            let idle = |stream: &Stream| now - stream.used > IDLE_SECONDS;
            let oldest = (0..self.streams.len())
                .filter(|&nth| idle(&self.streams[nth]))
                .min_by_key(|&nth| (self.streams[nth].used, std::cmp::Reverse(nth)));
            let Some(oldest) = oldest else { return };
            self.streams.remove(oldest);
        }
        self.streams.push_front(Stream::new(next, now));
    }
}

impl Zfs {
    fn submit(&self, cache: &mut dyn Cache, start: u64, end: u64) -> Pages {
        let record = self.tunables.record;
        let start_page = Page::new(start.saturating_mul(record));
        let pages = Pages::new(end.saturating_sub(start).saturating_mul(record));
        cache.submit(Submission::plain(start_page, pages))
    }

    /// `dmu_zfetch_prepare` and `dmu_zfetch_run` for records `[start, end)`; `missed` if any of
    /// them was not cached.
    fn fetch(&mut self, cache: &mut dyn Cache, file: u32, start: u64, end: u64, missed: bool) {
        let tunables = self.tunables;
        let last = cache.file_pages().get().div_ceil(tunables.record).saturating_sub(1);
        let Some(file) = self.files.get(file).filter(|_| last >= 2) else { return };
        let now = (cache.now().get() / Nanos::from_secs(1).get()) as i64;
        let (nth, count) = match file.find(start, end, now, &tunables) {
            StreamMatch::Hit(nth, count) => (nth, count),
            StreamMatch::Known => return,
            StreamMatch::New => {
                if end < last {
                    file.create(end, last, now, &tunables);
                }
                return;
            }
        };
        if file.streams[nth].next >= last {
            file.streams.remove(nth);
            return;
        }
        let memory = cache.memory();
        let crowded = memory.pending.get() >= memory.total.get() / 32;
        let stream = &mut file.streams[nth];
        stream.grow(count, &tunables, crowded);
        stream.missed |= missed;
        if stream.missed {
            let (from, to) = (stream.fetched, stream.fetch_end);
            stream.fetched = to;
            self.submit(cache, from, to);
        }
    }
}

impl Policy for Zfs {
    fn own_window(&self) -> Pages {
        Pages::new(self.tunables.min_distance)
    }

    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, file: FileId) {
        if self.files.get(file.0).is_none() {
            self.files.put(file.0, File::default());
        }
        self.file_of.put(stream.0, file.0);
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        let Some(file) = self.file_of.get(stream.0).copied() else { return };
        let record = self.tunables.record * PAGE.bytes().get();
        let end = call.offset.get().saturating_add(call.length.get()).min(cache.file_size().get());
        let (first, beyond) = (call.offset.get() / record, end.div_ceil(record));
        let missed = !self.submit(cache, first, beyond).is_zero();
        self.fetch(cache, file, first, beyond, missed);
    }

    /// Reads a record that was evicted since the start of the call, or in which a fault occurred.
    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        let record = touch.page.get() / self.tunables.record;
        self.submit(cache, record, record + 1);
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    /// Marks the stream of a prefetch as late if a reader waited for the prefetch.
    fn access(&mut self, _cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
        if outcome != TouchOutcome::Waited {
            return;
        }
        let record = touch.page.get() / self.tunables.record;
        let reach = self.tunables.max_reorder / self.tunables.record + 1;
        if let Some(file) = self.file_of.get(touch.stream.0).copied()
            && let Some(file) = self.files.get(file)
            && let Some(stream) = file
                .streams
                .iter_mut()
                .find(|stream| record < stream.next && stream.next <= record + reach)
        {
            stream.late = true;
        }
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        // Streams belong to the file and persist after a close.
        self.file_of.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;

    const DEFAULT: Tunables = Tunables {
        record: 32,
        min_distance: 1024,
        max_distance: 16_384,
        max_reorder: 4096,
        max_streams: 8,
        hole_shift: 2,
    };

    fn bench() -> Bench<Zfs> {
        Bench::new(Zfs::new(DEFAULT), 1 << 20)
    }

    /// Reads whole records. Returns the device reads in records.
    fn read(bench: &mut Bench<Zfs>, record: u64, count: u64) -> Vec<(u64, u64)> {
        let reads = bench.read(record * 32, count * 32);
        reads.into_iter().map(|(start, pages)| (start / 32, pages / 32)).collect()
    }

    fn scan(bench: &mut Bench<Zfs>, records: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
        records.flat_map(|record| read(bench, record, 1)).collect()
    }

    #[test]
    fn reading_a_page_reads_its_record() {
        assert_eq!(bench().read(33, 1), [(32, 32)]);
    }

    #[test]
    fn the_distance_doubles_from_the_size_of_the_access() {
        let mut bench = bench();
        assert_eq!(read(&mut bench, 100, 1), [(100, 1)]);
        // The stream was created at 101. Hits fetch one record ahead, then two, four and eight.
        assert_eq!(read(&mut bench, 101, 1), [(101, 1), (102, 1)]);
        assert_eq!(read(&mut bench, 102, 1), [(103, 2)]);
        assert_eq!(read(&mut bench, 103, 1), [(105, 3)]);
        assert_eq!(read(&mut bench, 104, 1), [(108, 5)]);
    }

    #[test]
    fn above_the_minimum_only_lateness_raises_the_distance() {
        let mut bench = bench();
        scan(&mut bench, 100..120);
        let stream = |bench: &mut Bench<Zfs>| {
            bench.policy.files.get(0).map(|file| file.streams[0].distance).unwrap_or(0)
        };
        assert_eq!(stream(&mut bench), 1024);
        scan(&mut bench, 120..130);
        assert_eq!(stream(&mut bench), 1024);
        let page = Page::new(129 * 32);
        let method = crate::policy::Method::Read;
        let touch = Touch { stream: StreamId(0), page, request: Pages::new(1), method };
        bench.policy.access(&mut bench.stage, touch, TouchOutcome::Waited);
        read(&mut bench, 130, 1);
        assert_eq!(stream(&mut bench), 1152);
    }

    #[test]
    fn cached_data_is_followed_but_not_fetched() {
        let mut bench = bench();
        bench.stage.submit(Submission::plain(Page::FIRST, Pages::new(32 * 500)));
        bench.stage.file.take_reads();
        assert_eq!(scan(&mut bench, 100..400), []);
    }

    #[test]
    fn a_dense_stride_becomes_a_stream_with_its_holes() {
        let mut bench = bench();
        read(&mut bench, 100, 3);
        // Records 103, 107, 111 … are skipped: a quarter.
        for group in 0..6 {
            read(&mut bench, 104 + 4 * group, 3);
        }
        let tree = bench.stage.file.tree();
        assert!(tree.contains(Page::new(119 * 32)), "a hole ahead was read");
        // Every second record: holes of one half are never read.
        let mut sparse = self::bench();
        let reads = scan(&mut sparse, (100..200).step_by(2));
        assert!(reads.iter().all(|&(_, count)| count == 1));
    }

    #[test]
    fn out_of_order_accesses_belong_to_one_stream() {
        let mut stream = Stream::new(10, 0);
        assert_eq!(stream.remember(14, 15, 2), 0);
        assert_eq!(stream.remember(12, 13, 2), 0);
        assert_eq!(stream.ranges, [(2, 3), (4, 5)]);
        // 13 joins the two ranges: 3 of 5 records are accessed, and 2 holes are more than a
        // quarter.
        assert_eq!(stream.remember(13, 14, 2), 0);
        assert_eq!(stream.ranges, [(2, 5)]);
        // The missing first record arrives: the stream advances over the whole range.
        assert_eq!(stream.advance(2), 5);
        assert_eq!((stream.next, stream.ranges.len()), (15, 0));
    }

    #[test]
    fn at_most_nine_ranges_are_kept() {
        let mut stream = Stream::new(0, 0);
        for nth in 1..20 {
            stream.remember(10 * nth, 10 * nth + 1, 16);
        }
        assert_eq!(stream.ranges.len(), MAX_RANGES);
    }

    #[test]
    fn a_ninth_stream_replaces_an_idle_one() {
        let mut bench = bench();
        for step in 0..4 {
            for stream in 0..9 {
                read(&mut bench, 3000 * (stream + 1) + step, 1);
            }
        }
        let file = bench.policy.files.get(0).map(|file| file.streams.len());
        assert_eq!(file, Some(8));
        let ninth = |bench: &mut Bench<Zfs>, record: u64| read(bench, 27_000 + record, 1).len();
        assert_eq!((ninth(&mut bench, 4), ninth(&mut bench, 5)), (1, 1));
        bench.stage.now = Nanos::from_millis(2500);
        assert_eq!((ninth(&mut bench, 6), ninth(&mut bench, 7)), (1, 2));
    }

    #[test]
    fn accesses_before_a_stream_are_ignored() {
        let mut bench = bench();
        scan(&mut bench, 100..110);
        assert_eq!(read(&mut bench, 90, 1), [(90, 1)]);
        assert_eq!(bench.policy.files.get(0).map(|file| file.streams.len()), Some(1));
    }

    #[test]
    fn a_file_of_two_records_gets_no_prefetch() {
        let mut bench = Bench::new(Zfs::new(DEFAULT), 64);
        assert_eq!(read(&mut bench, 0, 1), [(0, 1)]);
        assert_eq!(read(&mut bench, 1, 1), [(1, 1)]);
    }
}
