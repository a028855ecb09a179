//! Linux 2.6.23 to 6.11: "on-demand" read-ahead with one window for each open file and marks in the
//! page cache. The window also continues on misses, and the first two windows merge.
//!
//! Source: `mm/readahead.c` and `mm/filemap.c` of Linux 2.6.23, 2.6.31, 4.10, 5.10 and 6.11. Sizes
//! are in pages throughout. Large folios, which a few file systems had from 5.18 on, are left out.

use units::{Bytes, Pages};

use super::linux::{MapMisses, following, force, force_all, initial, largest};
use crate::cache::{Cache, PAGE, Submission, Trigger};
use crate::entry::{Entry, Parameter};
use crate::page::{Folio, Page};
use crate::policy::{Advice, FileId, MapAdvice, Method, Policy, StateTable, StreamId, Touch};

pub const ENTRY: Entry = Entry {
    name: "linux-on-demand",
    summary: "Linux 2.6.23 to 6.11: one window for each open file, and marks",
    source: "mm/readahead.c of Linux 2.6.23, 2.6.31, 4.10 and 6.11",
    parameters: &[Parameter {
        name: "since",
        summary: "the first kernel with this behaviour: 2.6.23, 2.6.31, 4.10 or 5.12",
        default: "5.12",
    }],
    build: |args| {
        let eras = [
            ("2.6.23", Era::V2_6_23),
            ("2.6.31", Era::V2_6_31),
            ("4.10", Era::V4_10),
            ("5.12", Era::V5_12),
        ];
        Ok(Box::new(LinuxOnDemand::new(args.choice("since", &eras)?)))
    },
};

/// Kernel versions that changed the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    V2_6_23,
    /// Looks for cached history if there is no state; a read at the start of a file is sequential.
    V2_6_31,
    /// A read larger than the window may be as large as a device request.
    V4_10,
    /// Stores the offset after the last byte instead of the last page.
    V5_12,
}

#[derive(Clone, Debug, Default)]
struct OpenFile {
    start: u64,
    size: u64,
    async_size: u64,
    ra_pages: u64,
    mmap_miss: MapMisses,
    /// The offset after the last byte of the previous call.
    previous: Option<Bytes>,
    random: bool,
}

#[derive(Clone, Debug)]
pub struct LinuxOnDemand {
    era: Era,
    files: StateTable<OpenFile>,
}

impl LinuxOnDemand {
    pub fn new(era: Era) -> Self {
        Self { era, files: StateTable::default() }
    }
}

impl OpenFile {
    /// Returns the page of the stored position; the page of offset -1 before the first call.
    fn previous_page(&self, era: Era) -> u64 {
        let page = PAGE.bytes().get();
        match self.previous {
            None => u64::MAX / page,
            Some(next) if era >= Era::V5_12 => next.get() / page,
            Some(next) => next.get().saturating_sub(1) / page,
        }
    }

    fn largest(&self, cache: &dyn Cache, era: Era, request: u64) -> u64 {
        let device = cache.limits().max_request.get();
        let device = if era >= Era::V4_10 { device } else { 0 };
        largest(request, self.ra_pages, device)
    }

    fn sync(&mut self, cache: &mut dyn Cache, era: Era, page: Page, request: u64) {
        let pages = Pages::new(request);
        cache.trace(Trigger::Sync { index: page, request: pages, previous: self.previous });
        if self.ra_pages == 0 {
            return force_all(cache, page, 1);
        }
        if self.random {
            return forced(cache, era, page, request, self.ra_pages);
        }
        if era >= Era::V5_12 && cache.congested() {
            return force_all(cache, page, 1);
        }
        self.on_demand(cache, era, page, request, false);
    }

    fn async_(&mut self, cache: &mut dyn Cache, era: Era, page: Page, head: Page, request: u64) {
        if self.ra_pages == 0 {
            return;
        }
        let pages = Pages::new(request);
        cache.trace(Trigger::Async { index: page, request: pages, previous: self.previous });
        cache.clear_mark(head);
        if !cache.congested() {
            self.on_demand(cache, era, page, request, true);
        }
    }

    /// `ondemand_readahead`.
    fn on_demand(
        &mut self,
        cache: &mut dyn Cache,
        era: Era,
        page: Page,
        request: u64,
        marked: bool,
    ) {
        let index = page.get();
        let max = self.largest(cache, era, request);
        let follows =
            index - self.previous_page(era).min(index) <= 1 && self.previous_page(era) <= index;
        let mark = (self.start + self.size).saturating_sub(self.async_size);
        let at_start = index == 0;
        if !at_start && (index == mark || index == self.start + self.size) {
            self.start += self.size;
            self.size = following(self.size, max);
            self.async_size = self.size;
        } else if marked && !(at_start && era >= Era::V2_6_31) {
            let Some(hole) = cache.next_miss(Page::new(index + 1), Pages::new(max)) else { return };
            let ahead = hole.since(page).get();
            if ahead > max {
                return;
            }
            self.start = hole.get();
            let request = if era >= Era::V2_6_31 { request } else { 0 };
            self.size = following(ahead + request, max);
            self.async_size = self.size;
        } else if (at_start && (era >= Era::V2_6_31 || self.previous.is_none()))
            || request > max
            || follows
        {
            self.start = index;
            self.size = initial(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size };
        } else if era < Era::V2_6_31 || !self.context(cache, page, request, max) {
            cache.submit(Submission::plain(page, Pages::new(request)));
            return;
        }
        self.merge(index, max);
        cache.submit(Submission::marked(
            Page::new(self.start),
            Pages::new(self.size),
            Pages::new(self.async_size),
        ));
    }

    /// Looks for cached pages before the request, which a sequential reader leaves behind.
    fn context(&mut self, cache: &dyn Cache, page: Page, request: u64, max: u64) -> bool {
        let index = page.get();
        let miss = cache.prev_miss(Page::new(index.saturating_sub(1)), Pages::new(max));
        let mut behind = miss.map_or(index, |miss| (index - 1).saturating_sub(miss.get()));
        if behind <= request {
            return false;
        }
        if behind >= index {
            behind *= 2;
        }
        self.start = index;
        self.size = (behind + request).min(max);
        self.async_size = 1;
        true
    }

    /// Merges a window with the next one if its mark is on its first page, which the reader is
    /// about to access.
    fn merge(&mut self, index: u64, max: u64) {
        if index == self.start && self.size == self.async_size {
            let next = following(self.size, max);
            if self.size + next <= max {
                self.async_size = next;
                self.size += next;
            } else {
                self.size = max;
                self.async_size = max / 2;
            }
        }
    }

    fn fault(&mut self, cache: &mut dyn Cache, era: Era, page: Page, advice: MapAdvice) {
        if advice.random || self.ra_pages == 0 {
            return;
        }
        if advice.sequential {
            return self.sync(cache, era, page, self.ra_pages);
        }
        if !self.mmap_miss.worth_reading_around() {
            return;
        }
        self.start = page.get().saturating_sub(self.ra_pages / 2);
        self.size = self.ra_pages;
        self.async_size = self.ra_pages / 4;
        cache.trace(Trigger::Direct);
        cache.submit(Submission::marked(
            Page::new(self.start),
            Pages::new(self.size),
            Pages::new(self.async_size),
        ));
    }
}

/// Reads explicitly requested pages.
fn forced(cache: &mut dyn Cache, era: Era, page: Page, request: u64, ra_pages: u64) {
    if era >= Era::V4_10 {
        force(cache, page, request, ra_pages);
    } else {
        force_all(cache, page, request);
    }
}

impl Policy for LinuxOnDemand {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        let ra_pages = cache.limits().read_ahead.get();
        self.files.put(stream.0, OpenFile { ra_pages, ..OpenFile::default() });
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        if let Some(file) = self.files.get(touch.stream.0) {
            match touch.method {
                Method::Read => file.sync(cache, self.era, touch.page, touch.request.get()),
                Method::Fault(advice) => file.fault(cache, self.era, touch.page, advice),
            }
        }
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, folio: Folio) {
        if let Some(file) = self.files.get(touch.stream.0) {
            let request = match touch.method {
                Method::Read => touch.request.get(),
                Method::Fault(_) => file.ra_pages,
            };
            file.async_(cache, self.era, touch.page, folio.head, request);
        }
    }

    fn fault_hits(&mut self, stream: StreamId, pages: Pages, _around: bool) {
        if let Some(file) = self.files.get(stream.0) {
            file.mmap_miss.hit(pages);
        }
    }

    fn end(&mut self, stream: StreamId, position: Bytes) {
        if let Some(file) = self.files.get(stream.0) {
            file.previous = Some(position);
        }
    }

    fn advise(&mut self, cache: &mut dyn Cache, stream: StreamId, advice: Advice) {
        let Some(file) = self.files.get(stream.0) else { return };
        let device = cache.limits().read_ahead.get();
        match advice {
            Advice::Normal => (file.ra_pages, file.random) = (device, false),
            Advice::Sequential => (file.ra_pages, file.random) = (2 * device, false),
            Advice::Random => file.random = true,
            Advice::WillNeed(wanted) => {
                cache.trace(Trigger::Direct);
                forced(cache, self.era, wanted.start, wanted.pages.get(), file.ra_pages);
            }
        }
    }

    fn wants_call_events(&self) -> bool {
        false
    }

    /// Since 4.3 the block layer accepts bios of any size and splits them. Before, a bio was at
    /// most one device request.
    fn completes_per_window(&self) -> bool {
        self.era >= Era::V4_10
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.files.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;
    use crate::page::Extent;

    fn bench(era: Era, pages: u64) -> Bench<LinuxOnDemand> {
        Bench::new(LinuxOnDemand::new(era), pages)
    }

    fn scan(bench: &mut Bench<LinuxOnDemand>, pages: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        pages.flat_map(|page| bench.read(page, 1)).collect()
    }

    #[test]
    fn a_scan_ramps_up_by_doubling() {
        let mut bench = bench(Era::V5_12, 1000);
        let windows = scan(&mut bench, 0..92);
        assert_eq!(windows, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]);
    }

    #[test]
    fn a_request_that_fills_its_window_merges_the_next_window() {
        // 64 KiB at 128 KiB: initial window 32 with a tail of 16, no merge.
        assert_eq!(bench(Era::V5_12, 1000).read(0, 16), [(0, 32)]);
        // 128 KiB: window 32 = tail 32 would be marked at its own start: tail of half instead.
        let mut whole = bench(Era::V5_12, 1000);
        assert_eq!(whole.read(0, 32), [(0, 32), (32, 32)]);
        assert_eq!(whole.marked(), [32]);
    }

    #[test]
    fn an_expected_miss_continues_the_window() {
        let mut bench = bench(Era::V5_12, 1000);
        assert_eq!(bench.read(0, 1), [(0, 4)]);
        // Page 4 ends the window: the window continues although the mark was never accessed,
        // and the window of 8 is merged with the next one of 16.
        assert_eq!(bench.read(4, 1), [(4, 24)]);
        assert_eq!(bench.marked(), [1, 12]);
    }

    #[test]
    fn history_in_the_cache_is_found_since_2_6_31() {
        for (era, expected) in [(Era::V2_6_23, vec![(8, 1)]), (Era::V2_6_31, vec![(8, 17)])] {
            let mut bench = bench(era, 1000);
            bench.open(1);
            bench.advise(Advice::Random);
            bench.read(0, 8);
            assert_eq!(bench.read_by(1, 500, 1), [(500, 1)]);
            // Eight cached pages down to page 0 count twice, plus the request.
            assert_eq!(bench.read_by(1, 8, 1), expected, "{era:?}");
        }
    }

    #[test]
    fn random_reads_do_not_change_the_state() {
        let mut bench = bench(Era::V5_12, 1000);
        bench.read(0, 1);
        assert_eq!(bench.read(700, 2), [(700, 2)]);
        assert_eq!(bench.read(1, 1), [(4, 8)]);
    }

    #[test]
    fn the_rule_for_sequential_reads_changed_with_5_12() {
        // Page i, then i + 2: sequential for kernels that store the offset.
        for (era, expected) in [(Era::V4_10, (502, 1)), (Era::V5_12, (502, 4))] {
            let mut bench = bench(era, 1000);
            bench.read(500, 1);
            assert_eq!(bench.read(502, 1), [expected], "{era:?}");
        }
        // Page i, then i + 1: sequential for all kernels.
        for era in [Era::V2_6_23, Era::V4_10, Era::V5_12] {
            let mut bench = bench(era, 1000);
            bench.read(500, 1);
            assert_eq!(bench.read(501, 1), [(501, 4)], "{era:?}");
        }
    }

    #[test]
    fn willneed_is_limited_since_4_10() {
        let wanted = Advice::WillNeed(Extent::new(Page::FIRST, Pages::new(5000)));
        for (era, pages) in [(Era::V2_6_31, 5000), (Era::V4_10, 320)] {
            let mut bench = bench(era, 10_000);
            bench.advise(wanted);
            assert_eq!(bench.stage.file.tree().cached(), Pages::new(pages), "{era:?}");
        }
    }

    #[test]
    fn under_congestion_marks_are_cleared_and_nothing_is_read() {
        let mut bench = bench(Era::V4_10, 1000);
        bench.read(0, 1);
        assert_eq!(bench.marked(), [1]);
        bench.stage.congested = true;
        assert_eq!(bench.read(1, 1), []);
        assert!(bench.marked().is_empty());
    }

    #[test]
    fn faults_read_around_and_advice_changes_that() {
        let plain = MapAdvice::default();
        assert_eq!(bench(Era::V5_12, 1000).touch(500, plain), [(484, 32)]);
        let random = MapAdvice { random: true, ..plain };
        assert_eq!(bench(Era::V5_12, 1000).touch(500, random), [(500, 1)]);
        let sequential = MapAdvice { sequential: true, ..plain };
        assert_eq!(bench(Era::V5_12, 1000).touch(500, sequential), [(500, 32)]);
    }
}
