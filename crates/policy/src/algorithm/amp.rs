//! AMP, adaptive multi-stream prefetching, Gill and Bathen, FAST 2007: each stream has a degree
//! (how much to prefetch) and a trigger distance (how early). Use raises the degree, lateness
//! raises the trigger distance, waste lowers the degree.
//!
//! Source: "AMP: Adaptive Multi-stream Prefetching in a Shared Cache" (FAST '07). The paper stores
//! these values with the last page of each prefetched set. Here they belong to a stream, and the
//! sets refer to it. The values are equal, because in the paper each set passes them on to the
//! next. The optimum is a degree of rate times latency, and a trigger that is just early enough.

use std::collections::BTreeMap;

use units::Pages;

use crate::cache::{Cache, Submission};
use crate::entry::{Entry, Parameter};
use crate::page::Page;
use crate::policy::{Eviction, FileId, Policy, StateTable, StreamId, Touch, TouchOutcome};

pub const ENTRY: Entry = Entry {
    name: "amp",
    summary: "AMP: degree and trigger of each stream, by use, waste and lateness",
    source: "Gill and Bathen, AMP, FAST 2007",
    parameters: &[Parameter { name: "max", summary: "the largest degree", default: "4M" }],
    build: |args| Ok(Box::new(Amp::new(args.pages("max")?))),
};

/// Above this degree, a set is prefetched before the reader reaches the end of the last one.
const ASYNC_FROM: u64 = 4;
/// Initial trigger distance in pages.
const FIRST_TRIGGER: u64 = 2;
/// Maximum number of sets of a file. Above it, the set with the lowest pages is dropped.
const MAX_SETS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Set {
    start: u64,
    stream: usize,
    /// True after one of its pages was evicted unused; the set then no longer changes its stream.
    old: bool,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    degree: u64,
    trigger: u64,
    /// Last page of the newest set.
    last: u64,
    /// Page whose use prefetches the next set.
    trigger_at: Option<u64>,
    /// Number of sets that refer to the stream.
    sets: u64,
}

#[derive(Clone, Debug, Default)]
struct File {
    sets: BTreeMap<u64, Set>,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct Amp {
    max: u64,
    files: StateTable<File>,
    file_of: StateTable<u32>,
}

impl Amp {
    /// Creates the policy. `max` is the largest degree in pages.
    pub fn new(max: u64) -> Self {
        Self { max: max.max(1), files: StateTable::default(), file_of: StateTable::default() }
    }

    fn file(&mut self, stream: StreamId) -> Option<&mut File> {
        let file = self.file_of.get(stream.0).copied()?;
        self.files.get(file)
    }
}

impl File {
    /// Returns the set that contains `page`, and its last page.
    fn set_of(&self, page: u64) -> Option<(u64, Set)> {
        let (&last, &set) = self.sets.range(page..).next()?;
        (set.start <= page).then_some((last, set))
    }

    fn stream(&mut self, id: usize) -> Option<&mut Stream> {
        self.streams.get_mut(id)?.as_mut()
    }

    fn new_stream(&mut self, stream: Stream) -> usize {
        let id = self.free.pop().unwrap_or(self.streams.len());
        if id == self.streams.len() {
            self.streams.push(None);
        }
        self.streams[id] = Some(stream);
        id
    }

    fn forget(&mut self, last: u64) {
        let Some(set) = self.sets.remove(&last) else { return };
        if let Some(stream) = self.stream(set.stream) {
            stream.sets -= 1;
            if stream.sets == 0 {
                self.streams[set.stream] = None;
                self.free.push(set.stream);
            }
        }
    }

    /// Prefetches `pages` pages from `start` as a set of stream `id`, and sets its trigger.
    fn prefetch(&mut self, cache: &mut dyn Cache, id: usize, start: u64, pages: u64) {
        let end = start.saturating_add(pages).min(cache.file_pages().get());
        if start >= end {
            return;
        }
        cache.submit(Submission::plain(Page::new(start), Pages::new(end - start)));
        let last = end - 1;
        // Drop the sets that this one covers completely.
        let covered: Vec<_> = self.sets.range(start..=last).map(|(&last, _)| last).collect();
        if let Some(stream) = self.stream(id) {
            stream.sets += 1;
            stream.last = last;
            if stream.degree > ASYNC_FROM && stream.trigger == 0 {
                stream.trigger = FIRST_TRIGGER;
            }
            let trigger = stream.trigger.min(stream.degree.saturating_sub(1));
            stream.trigger = trigger;
            stream.trigger_at = (trigger > 0).then(|| last.saturating_sub(trigger).max(start));
        }
        for last in covered {
            self.forget(last);
        }
        self.sets.insert(last, Set { start, stream: id, old: false });
        if self.sets.len() > MAX_SETS
            && let Some(&first) = self.sets.keys().next()
        {
            self.forget(first);
        }
    }

    /// Handles a missing page: continues the stream that ends before it, or starts a stream if the
    /// previous page is cached.
    fn miss(&mut self, cache: &mut dyn Cache, page: u64, request: u64) {
        let before = page.checked_sub(1);
        let known = before.and_then(|before| self.sets.get(&before).copied());
        let alive = known.filter(|set| self.stream(set.stream).is_some());
        if let Some(set) = alive {
            let degree = self.stream(set.stream).map_or(1, |stream| stream.degree);
            return self.prefetch(cache, set.stream, page, request + degree);
        }
        if before.is_some_and(|before| cache.folio(Page::new(before)).is_some()) {
            let degree = request.max(1);
            let stream = Stream { degree, trigger: 0, last: page, trigger_at: None, sets: 0 };
            let id = self.new_stream(stream);
            return self.prefetch(cache, id, page, request + degree);
        }
        cache.submit(Submission::plain(Page::new(page), Pages::new(request)));
    }

    fn hit(&mut self, cache: &mut dyn Cache, page: u64, request: u64, late: bool, max: u64) {
        let Some((last, set)) = self.set_of(page) else { return };
        let Some(stream) = self.stream(set.stream) else { return };
        if late {
            stream.trigger = (stream.trigger + request).min(stream.degree.saturating_sub(1));
        }
        if page == last && !set.old {
            stream.degree = (stream.degree + request).min(max);
        }
        let (newest, degree, trigger_at) = (stream.last, stream.degree, stream.trigger_at);
        if trigger_at == Some(page) {
            stream.trigger_at = None;
            self.prefetch(cache, set.stream, newest + 1, degree);
        }
        // Keep the last set of a stream for the next miss.
        if page == last && last != newest {
            self.forget(last);
        }
    }

    /// Handles an eviction before use: the degree of the page's stream is too large.
    fn wasted(&mut self, page: u64) -> Eviction {
        let Some((last, set)) = self.set_of(page) else { return Eviction::Release };
        if set.old {
            return Eviction::Release;
        }
        if let Some(set) = self.sets.get_mut(&last) {
            set.old = true;
        }
        if let Some(stream) = self.stream(set.stream) {
            stream.degree = stream.degree.saturating_sub(1).max(1);
            stream.trigger = stream.trigger.min(stream.degree - 1);
        }
        Eviction::Retain
    }
}

impl Policy for Amp {
    fn open(&mut self, _cache: &mut dyn Cache, stream: StreamId, file: FileId) {
        if self.files.get(file.0).is_none() {
            self.files.put(file.0, File::default());
        }
        self.file_of.put(stream.0, file.0);
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        if let Some(file) = self.file(touch.stream) {
            file.miss(cache, touch.page.get(), touch.request.get());
        }
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, outcome: TouchOutcome) {
        let max = self.max;
        if let Some(file) = self.file(touch.stream) {
            let late = outcome == TouchOutcome::Waited;
            file.hit(cache, touch.page.get(), touch.request.get().max(1), late, max);
        }
    }

    fn wants_evict_events(&self) -> bool {
        true
    }

    fn evict(&mut self, file: FileId, page: Page, used: bool) -> Eviction {
        match self.files.get(file.0) {
            Some(file) if !used => file.wasted(page.get()),
            _ => Eviction::Release,
        }
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.file_of.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;
    use crate::policy::Method;

    fn bench() -> Bench<Amp> {
        Bench::new(Amp::new(1024), 1 << 16)
    }

    fn stream(bench: &mut Bench<Amp>) -> (u64, u64) {
        let file = bench.policy.files.get(0).cloned().unwrap_or_default();
        let stream = file.streams.iter().flatten().next().copied();
        stream.map_or((0, 0), |stream| (stream.degree, stream.trigger))
    }

    fn scan(bench: &mut Bench<Amp>, pages: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        pages.flat_map(|page| bench.read(page, 1)).collect()
    }

    #[test]
    fn the_second_sequential_read_starts_a_stream_and_use_raises_its_degree() {
        let mut bench = bench();
        // Degree 1; each completely used set adds a request.
        let reads = scan(&mut bench, 100..115);
        assert_eq!(reads, [(100, 1), (101, 2), (103, 3), (106, 4), (110, 5)]);
    }

    #[test]
    fn above_a_degree_of_four_the_next_set_is_prefetched_early() {
        let mut bench = bench();
        scan(&mut bench, 100..200);
        assert!(stream(&mut bench).0 > ASYNC_FROM);
        let mut waits = 0;
        for page in 200..400 {
            waits += u64::from(bench.stage.folio(Page::new(page)).is_none());
            bench.read(page, 1);
        }
        assert_eq!(waits, 0);
    }

    #[test]
    fn waste_lowers_the_degree_once_per_set() {
        let mut bench = bench();
        scan(&mut bench, 100..150);
        let (degree, _) = stream(&mut bench);
        let ahead = bench.policy.files.get(0).and_then(|file| file.sets.keys().last().copied());
        let page = Page::new(ahead.unwrap_or(0));
        assert_eq!(bench.policy.evict(FileId(0), page, false), Eviction::Retain);
        assert_eq!(bench.policy.evict(FileId(0), page, false), Eviction::Release);
        assert_eq!(stream(&mut bench).0, degree - 1);
        assert_eq!(bench.policy.evict(FileId(0), Page::new(1), false), Eviction::Release);
        assert_eq!(bench.policy.evict(FileId(0), page, true), Eviction::Release);
    }

    #[test]
    fn a_wait_makes_the_trigger_earlier() {
        let mut bench = bench();
        scan(&mut bench, 100..200);
        let (degree, trigger) = stream(&mut bench);
        let touch = Touch {
            stream: StreamId(0),
            page: Page::new(200),
            request: Pages::new(3),
            method: Method::Read,
        };
        bench.policy.access(&mut bench.stage, touch, TouchOutcome::Waited);
        assert_eq!(stream(&mut bench).1, (trigger + 3).min(degree - 1));
    }

    #[test]
    fn streams_of_a_file_are_independent() {
        let mut bench = bench();
        for step in 0..60 {
            bench.read(1000 + step, 1);
            bench.read(30_000 + step, 1);
        }
        let file = bench.policy.files.get(0).cloned().unwrap_or_default();
        assert_eq!(file.streams.iter().flatten().count(), 2);
    }

    #[test]
    fn random_reads_are_not_extended() {
        let mut bench = bench();
        assert_eq!(bench.read(5000, 3), [(5000, 3)]);
        assert_eq!(bench.read(9000, 1), [(9000, 1)]);
        assert_eq!(stream(&mut bench), (0, 0));
    }
}
