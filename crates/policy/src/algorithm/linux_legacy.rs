//! Linux before 2.6.23: a current and an ahead window for each open file, checked at every read.
//!
//! Any seek disables read-ahead; two sequential reads enable it again. Therefore streams that share
//! an open file never have read-ahead. Source: `mm/readahead.c` of Linux 2.6.11 and 2.6.17. Sizes
//! are in pages throughout.

use units::{Bytes, Pages};

use super::linux::{MapMisses, force_all};
use crate::cache::{Cache, PAGE, Submission};
use crate::entry::Entry;
use crate::page::Page;
use crate::policy::{
    Advice, Call, FileId, MapAdvice, Method, Policy, StateTable, StreamId, Touch, TouchOutcome,
};

pub const ENTRY: Entry = Entry {
    name: "linux-legacy",
    summary: "Linux before 2.6.23: a current and an ahead window, off after any seek",
    source: "mm/readahead.c of Linux 2.6.11",
    parameters: &[],
    build: |_| Ok(Box::new(LinuxLegacy::new())),
};

/// The smallest window after a miss: 16 KiB.
const MIN_WINDOW_PAGES: u64 = 4;
/// After this many pages that were already cached, read-ahead is disabled (VM_MAX_CACHE_HIT).
const IN_CACHE: u64 = 256;

#[derive(Clone, Debug, Default)]
struct OpenFile {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
    /// The last page read; `None` before the first read.
    previous: Option<u64>,
    cache_hit: u64,
    missed: bool,
    in_cache: bool,
    ra_pages: u64,
    /// The page at which the current call checks read-ahead again.
    ask_at: u64,
    mmap_miss: MapMisses,
}

#[derive(Clone, Debug, Default)]
pub struct LinuxLegacy {
    files: StateTable<OpenFile>,
}

impl LinuxLegacy {
    pub fn new() -> Self {
        Self::default()
    }
}

/// Returns the first window: the square of a small request, a quarter of `max` for a medium one.
fn initial(request: u64, max: u64) -> u64 {
    let rounded = request.checked_next_power_of_two().unwrap_or(u64::MAX);
    if rounded <= max / 64 {
        rounded * rounded
    } else if rounded <= max / 4 {
        max / 4
    } else {
        max
    }
}

impl OpenFile {
    fn off(&mut self) {
        (self.start, self.size, self.ahead_start, self.ahead_size) = (0, 0, 0, 0);
        (self.missed, self.in_cache) = (false, false);
    }

    fn following(&mut self) -> u64 {
        let size = if std::mem::take(&mut self.missed) {
            self.size.saturating_sub(2).max(MIN_WINDOW_PAGES)
        } else if self.size < self.ra_pages / 16 {
            4 * self.size
        } else {
            2 * self.size
        };
        size.min(self.ra_pages)
    }

    /// Submits a window. Returns false if read-ahead must stop: too many pages were already cached,
    /// or the device is congested and no reader waits.
    fn submit(&mut self, cache: &mut dyn Cache, start: u64, size: u64, wait: bool) -> bool {
        if !wait && cache.congested() {
            return false;
        }
        let new = cache.submit(Submission::plain(Page::new(start), Pages::new(size)));
        if !new.is_zero() {
            self.cache_hit = 0;
            return true;
        }
        self.cache_hit += size;
        if self.cache_hit < IN_CACHE {
            return true;
        }
        self.off();
        self.in_cache = true;
        false
    }

    fn make_ahead(&mut self, cache: &mut dyn Cache, last: u64, force: bool) -> bool {
        self.ahead_size = self.following();
        self.ahead_start = self.start + self.size;
        let wait = force || last >= self.ahead_start;
        let done = self.submit(cache, self.ahead_start, self.ahead_size, wait);
        if !done && !force {
            (self.ahead_start, self.ahead_size) = (0, 0);
        }
        done
    }

    /// `page_cache_readahead` for a read of `request` pages from `index`.
    fn ask(&mut self, cache: &mut dyn Cache, mut index: u64, mut request: u64) {
        if self.previous == Some(index) {
            // Do not count the last read page again.
            request = request.saturating_sub(1);
            index += u64::from(request > 0);
        }
        let sequential = index == self.previous.map_or(0, |previous| previous + 1);
        let max = self.ra_pages;
        let size = request.min(max);
        let last = index + size.saturating_sub(1);
        self.previous = Some(index);
        if size == 0 || self.in_cache {
            return;
        }
        self.previous = Some(last);
        if sequential && self.size == 0 {
            (self.start, self.size) = (index, initial(size, max));
            if self.submit(cache, index, self.size, true) && request >= max {
                self.make_ahead(cache, last, true);
            }
        } else if !sequential {
            self.off();
            self.submit(cache, index, size, true);
        } else {
            if self.ahead_start == 0 && !self.make_ahead(cache, last, false) {
                return;
            }
            if last >= self.ahead_start {
                (self.start, self.size) = (self.ahead_start, self.ahead_size);
                self.make_ahead(cache, last, false);
            }
        }
    }

    /// Checks read-ahead for a call at `page`, and records where to check again.
    fn ask_for_call(&mut self, cache: &mut dyn Cache, page: u64, request: u64) {
        self.ask(cache, page, request);
        self.ask_at = self.previous.unwrap_or(page) + 1;
    }

    /// `filemap_nopage`.
    fn fault(&mut self, cache: &mut dyn Cache, page: Page, advice: MapAdvice) {
        if advice.random {
            return;
        }
        if advice.sequential {
            return self.ask(cache, page.get(), 1);
        }
        if self.ra_pages > 0 && self.mmap_miss.worth_reading_around() && !cache.congested() {
            let start = page.minus(Pages::new(self.ra_pages / 2));
            cache.submit(Submission::plain(start, Pages::new(self.ra_pages)));
        }
    }
}

impl Policy for LinuxLegacy {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        let ra_pages = cache.limits().read_ahead.get();
        self.files.put(stream.0, OpenFile { ra_pages, ..OpenFile::default() });
    }

    fn begin(&mut self, cache: &mut dyn Cache, stream: StreamId, call: Call) {
        let Some(file) = self.files.get(stream.0) else { return };
        let first = call.offset.to_pages_floor(PAGE).get();
        let end = call.offset.get().saturating_add(call.length.get());
        let beyond = Bytes::new(end).to_pages_ceil(PAGE).get();
        file.ask_for_call(cache, first, beyond - first);
    }

    /// Handles a missing page of the window: it was evicted before its use.
    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        let Some(file) = self.files.get(touch.stream.0) else { return };
        match touch.method {
            Method::Read => {
                file.missed = true;
                file.in_cache = false;
                file.cache_hit = 0;
            }
            Method::Fault(advice) => file.fault(cache, touch.page, advice),
        }
    }

    fn wants_access_events(&self) -> bool {
        true
    }

    fn access(&mut self, cache: &mut dyn Cache, touch: Touch, _outcome: TouchOutcome) {
        let next = touch.page.get() + 1;
        if let Some(file) = self.files.get(touch.stream.0)
            && touch.method == Method::Read
            && next == file.ask_at
            && touch.request.get() > 1
        {
            file.ask_for_call(cache, next, touch.request.get() - 1);
        }
    }

    fn fault_hits(&mut self, stream: StreamId, pages: Pages, _around: bool) {
        if let Some(file) = self.files.get(stream.0) {
            file.mmap_miss.hit(pages);
        }
    }

    fn advise(&mut self, cache: &mut dyn Cache, stream: StreamId, advice: Advice) {
        let Some(file) = self.files.get(stream.0) else { return };
        let device = cache.limits().read_ahead.get();
        match advice {
            Advice::Normal => file.ra_pages = device,
            Advice::Sequential => file.ra_pages = 2 * device,
            Advice::Random => file.ra_pages = 0,
            Advice::WillNeed(wanted) => force_all(cache, wanted.start, wanted.pages.get()),
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

    fn bench(pages: u64) -> Bench<LinuxLegacy> {
        Bench::new(LinuxLegacy::new(), pages)
    }

    #[test]
    fn sizes_follow_the_formulae() {
        let first: Vec<_> = [1, 2, 8, 9].map(|request| initial(request, 32)).into();
        assert_eq!(first, [8, 8, 8, 32]);
        assert_eq!((initial(2, 256), initial(4, 256), initial(5, 256)), (4, 16, 64));
    }

    #[test]
    fn a_scan_keeps_one_window_ahead() {
        let mut bench = bench(1000);
        assert_eq!(bench.read(0, 1), [(0, 8)]);
        // The second read makes the ahead window at the end of the first.
        assert_eq!(bench.read(1, 1), [(8, 16)]);
        let rest: Vec<_> = (2..60).map(|page| (page, bench.read(page, 1))).collect();
        let windows: Vec<_> = rest.into_iter().filter(|(_, reads)| !reads.is_empty()).collect();
        assert_eq!(windows, [(8, vec![(24, 32)]), (24, vec![(56, 32)]), (56, vec![(88, 32)])]);
    }

    #[test]
    fn a_seek_disables_read_ahead_and_two_sequential_reads_enable_it() {
        let mut bench = bench(1000);
        bench.read(0, 1);
        assert_eq!(bench.read(500, 1), [(500, 1)]);
        assert_eq!(bench.read(501, 1), [(501, 8)]);
        assert_eq!(bench.read(502, 1), [(509, 16)]);
    }

    #[test]
    fn streams_that_share_an_open_file_have_no_read_ahead() {
        let mut bench = bench(1000);
        for step in 0..50 {
            assert_eq!(bench.read(100 + step, 1), [(100 + step, 1)]);
            assert_eq!(bench.read(600 + step, 1), [(600 + step, 1)]);
        }
    }

    #[test]
    fn a_large_call_submits_two_windows_and_checks_again_within_the_call() {
        let mut bench = bench(1000);
        assert_eq!(bench.read(0, 64), [(0, 32), (32, 32), (64, 32)]);
    }

    #[test]
    fn an_evicted_page_makes_the_next_window_two_pages_smaller() {
        let mut bench = bench(1000);
        for page in 0..30 {
            bench.read(page, 1);
        }
        bench.drop_pages(30..31);
        assert_eq!(bench.read(30, 1), [(30, 1)]);
        let next: Vec<_> = (31..60).flat_map(|page| bench.read(page, 1)).collect();
        assert_eq!(next, [(88, 30)]);
    }

    #[test]
    fn a_cached_file_disables_read_ahead_until_a_miss() {
        let mut bench = bench(2000);
        bench.advise(Advice::WillNeed(crate::page::Extent::new(Page::FIRST, Pages::new(1500))));
        bench.stage.file.take_reads();
        for page in 0..1500 {
            assert_eq!(bench.read(page, 1), [], "page {page}");
        }
        // The first uncached page was not read ahead.
        assert_eq!(bench.read(1500, 1), [(1500, 1)]);
        assert_eq!(bench.read(1501, 1), [(1501, 8)]);
    }

    #[test]
    fn a_part_of_the_last_page_does_not_count_as_a_seek() {
        let mut bench = bench(1000);
        bench.read(0, 1);
        bench.read(0, 1);
        assert_eq!(bench.read(1, 1), [(8, 16)]);
    }

    #[test]
    fn congestion_drops_requests_without_a_waiting_reader() {
        let mut bench = bench(1000);
        bench.read(0, 1);
        bench.stage.congested = true;
        assert_eq!(bench.read(1, 1), []);
        bench.stage.congested = false;
        assert_eq!(bench.read(2, 1), [(8, 16)]);
    }
}
