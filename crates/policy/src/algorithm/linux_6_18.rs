//! Linux 6.12 to 6.18: one window for each open file, marks in the page cache, and folios that grow
//! with each window.
//!
//! Source: `mm/readahead.c`, `mm/filemap.c` and `mm/fadvise.c` of Linux 6.18, and recorded
//! decisions of 6.18.44. Sizes are in pages throughout.

use units::{Bytes, Pages};

use super::linux::{MapMisses, following, force, initial, largest};
use crate::cache::{Cache, Fill, PAGE, Submission, Trigger, folio_order};
use crate::entry::Entry;
use crate::page::{Extent, Folio, Page};
use crate::policy::{Advice, FileId, MapAdvice, Method, Policy, StateTable, StreamId, Touch};

pub const ENTRY: Entry = Entry {
    name: "linux-6.18",
    summary: "Linux 6.12 to 6.18: one window for each open file, marks, large folios",
    source: "mm/readahead.c, mm/filemap.c, mm/fadvise.c of Linux 6.18; recorded decisions",
    parameters: &[],
    build: |_| Ok(Box::new(Linux618::new())),
};

/// The order of a huge page (one PMD of 4 KiB pages).
const HUGE_ORDER: u8 = 9;

/// The read-ahead state of an open file (`struct file_ra_state`).
#[derive(Clone, Debug, Default)]
struct OpenFile {
    start: u64,
    size: u64,
    async_size: u64,
    order: u8,
    /// The largest window, copied from the bdi when the file was opened or last advised.
    ra_pages: u64,
    mmap_miss: MapMisses,
    /// The offset after the last byte of the previous call.
    previous: Option<Bytes>,
    /// FMODE_RANDOM.
    random: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Linux618 {
    files: StateTable<OpenFile>,
}

impl Linux618 {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the externally visible state of a stream: its largest window, the offset after its
    /// last read, and whether it is under `FADV_RANDOM`.
    pub fn state(&mut self, stream: StreamId) -> Option<(Pages, Option<Bytes>, bool)> {
        let file = self.files.get(stream.0)?;
        Some((Pages::new(file.ra_pages), file.previous, file.random))
    }

    /// Sets the largest window of a stream, like `POSIX_FADV_NORMAL` while the bdi has that window.
    pub fn set_window(&mut self, stream: StreamId, pages: Pages) {
        if let Some(file) = self.files.get(stream.0) {
            file.ra_pages = pages.get();
        }
    }
}

impl OpenFile {
    fn window(&self, cache: &dyn Cache, request: u64) -> u64 {
        largest(request, self.ra_pages, cache.limits().max_request.get())
    }

    /// `page_cache_sync_ra`: a page is missing and the reader waits.
    fn sync(&mut self, cache: &mut dyn Cache, page: Page, request: u64) {
        let pages = Pages::new(request);
        cache.trace(Trigger::Sync { index: page, request: pages, previous: self.previous });
        if self.ra_pages == 0 || cache.congested() {
            return force(cache, page, 1, self.ra_pages);
        }
        if self.random {
            return force(cache, page, request, self.ra_pages);
        }
        let index = page.get();
        let max = self.window(cache, request);
        // Before the first call the position is -1, which no page follows.
        let previous = self.previous.map_or(u64::MAX, Bytes::get) / PAGE.bytes().get();
        if index == 0 || request > max || index.wrapping_sub(previous) <= 1 {
            self.start = index;
            self.size = initial(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size / 2 };
        } else {
            let miss = cache.prev_miss(Page::new(index - 1), Pages::new(max));
            let mut behind = miss.map_or(index, |miss| index - 1 - miss.get());
            if behind <= request {
                cache.submit(Submission::plain(page, pages));
                return;
            }
            if miss.is_none() {
                behind *= 2;
            }
            self.start = index;
            self.size = (behind + request).min(max);
            self.async_size = 1;
        }
        self.order = 0;
        self.submit(cache, self.start);
    }

    /// `page_cache_async_ra`: the reader accesses a marked folio and does not wait.
    fn async_(&mut self, cache: &mut dyn Cache, page: Page, folio: Folio, request: u64) {
        if self.ra_pages == 0 {
            return;
        }
        let pages = Pages::new(request);
        cache.trace(Trigger::Async { index: page, request: pages, previous: self.previous });
        cache.clear_mark(folio.head);
        if cache.congested() {
            return;
        }
        let index = page.get();
        let max = self.window(cache, request);
        let mark = (self.start + self.size).saturating_sub(self.async_size);
        if index == mark & !(folio.pages().get() - 1) {
            self.start += self.size;
            self.size = self.size.max(following(self.size, max));
        } else {
            let Some(hole) = cache.next_miss(Page::new(index + 1), Pages::new(max)) else { return };
            if hole.since(page).get() > max {
                return;
            }
            self.start = hole.get();
            self.size = following(hole.since(page).get() + request, max);
        }
        self.order = self.order.saturating_add(2);
        // ffs(max) - 1: the exponent of two in the largest window.
        let align = 1 << u32::from(self.order).min(max.trailing_zeros());
        let end = (self.start + self.size) / align * align;
        if end > self.start {
            self.size = end - self.start;
        }
        self.async_size = self.size;
        self.submit(cache, self.start);
    }

    /// `page_cache_ra_order`.
    fn submit(&mut self, cache: &mut dyn Cache, start: u64) {
        let window = Submission {
            start: Page::new(start),
            pages: Pages::new(self.size),
            lookahead: Pages::new(self.async_size),
            fill: Fill::Folios { order: self.order },
        };
        self.order = folio_order(self.order, window.pages, cache.folio_limit()).unwrap_or(0);
        cache.submit(window);
    }

    /// `do_sync_mmap_readahead`: a fault on a page that is not cached.
    fn fault(&mut self, cache: &mut dyn Cache, page: Page, advice: MapAdvice) {
        if advice.huge {
            return self.fault_huge(cache, page, advice);
        }
        if advice.random || self.ra_pages == 0 {
            return;
        }
        if advice.sequential {
            return self.sync(cache, page, self.ra_pages);
        }
        if !self.mmap_miss.worth_reading_around() {
            return;
        }
        (self.start, self.size, self.async_size) = match advice.code {
            // Since Linux 6.17, code is read from the faulting page to the end of the mapping.
            Some(code) => (page.get(), self.ra_pages.min(code.end().since(page).get()), 0),
            None => {
                (page.get().saturating_sub(self.ra_pages / 2), self.ra_pages, self.ra_pages / 4)
            }
        };
        self.order = 0;
        cache.trace(Trigger::Direct);
        self.submit(cache, self.start);
    }

    /// Reads one huge page, and a second one ahead unless the mapping is under MADV_RANDOM. The
    /// start of the window is not changed, as in the kernel.
    fn fault_huge(&mut self, cache: &mut dyn Cache, page: Page, advice: MapAdvice) {
        let huge = 1 << HUGE_ORDER;
        self.size = if advice.random { huge } else { 2 * huge };
        self.async_size = huge;
        self.order = HUGE_ORDER;
        cache.trace(Trigger::Direct);
        self.submit(cache, page.get() & !(huge - 1));
    }
}

impl Policy for Linux618 {
    fn open(&mut self, cache: &mut dyn Cache, stream: StreamId, _file: FileId) {
        let ra_pages = cache.limits().read_ahead.get();
        self.files.put(stream.0, OpenFile { ra_pages, ..OpenFile::default() });
    }

    fn miss(&mut self, cache: &mut dyn Cache, touch: Touch) {
        if let Some(file) = self.files.get(touch.stream.0) {
            match touch.method {
                Method::Read => file.sync(cache, touch.page, touch.request.get()),
                Method::Fault(advice) => file.fault(cache, touch.page, advice),
            }
        }
    }

    fn mark(&mut self, cache: &mut dyn Cache, touch: Touch, folio: Folio) {
        if let Some(file) = self.files.get(touch.stream.0) {
            let request = match touch.method {
                Method::Read => touch.request.get(),
                Method::Fault(_) => file.ra_pages,
            };
            file.async_(cache, touch.page, folio, request);
        }
    }

    fn fault_hits(&mut self, stream: StreamId, pages: Pages, around: bool) {
        if let Some(file) = self.files.get(stream.0)
            && (around || file.ra_pages > 0)
        {
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
            Advice::WillNeed(Extent { start, pages }) => {
                cache.trace(Trigger::Direct);
                force(cache, start, pages.get(), file.ra_pages);
            }
        }
    }

    fn wants_call_events(&self) -> bool {
        false
    }

    /// A window is one bio, which completes as a whole even if it was split (`bio_chain`,
    /// block/bio.c).
    fn completes_per_window(&self) -> bool {
        true
    }

    fn close(&mut self, _cache: &mut dyn Cache, stream: StreamId) {
        self.files.take(stream.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::testing::Bench;
    use crate::cache::DeviceLimits;

    fn bench() -> Bench<Linux618> {
        Bench::new(Linux618::new(), 10_000)
    }

    fn window(bench: &mut Bench<Linux618>) -> u64 {
        bench.policy.files.get(0).map_or(0, |file| file.ra_pages)
    }

    #[test]
    fn the_window_is_copied_at_open_and_again_by_advice() {
        let mut bench = bench();
        let set = |bench: &mut Bench<Linux618>, pages| {
            let max_request = Pages::new(320);
            let limits = DeviceLimits { read_ahead: Pages::new(pages), max_request };
            bench.stage.file.set_limits(limits);
        };
        set(&mut bench, 256);
        assert_eq!(window(&mut bench), 32);
        bench.advise(Advice::Normal);
        assert_eq!(window(&mut bench), 256);
        set(&mut bench, 64);
        bench.advise(Advice::Sequential);
        assert_eq!(window(&mut bench), 128);
        bench.advise(Advice::Random);
        assert_eq!(window(&mut bench), 128);
        // FADV_RANDOM affects reads; only advice on the mapping prevents read-around.
        assert_eq!(bench.read(700, 3), [(700, 3)]);
        assert_eq!(bench.touch(5000, MapAdvice::default()), [(4936, 128)]);
    }

    #[test]
    fn of_code_only_what_follows_is_read_to_its_end() {
        let mut bench = bench();
        let code = Extent::new(Page::new(5000), Pages::new(100));
        let advice = MapAdvice { code: Some(code), ..MapAdvice::default() };
        assert_eq!(bench.touch(5010, advice), [(5010, 32)]);
        assert_eq!(bench.touch(5090, advice), [(5090, 10)]);
        assert_eq!(bench.touch(5009, advice), [(5009, 1)], "the rest is cached");
        assert_eq!(bench.touch(9000, MapAdvice::default()), [(8984, 32)]);
    }

    #[test]
    fn skipping_one_page_is_sequential_and_rereading_one_is_not() {
        let mut bench = bench();
        bench.read(8192, 1);
        assert_eq!(bench.read(8194, 1), [(8194, 4)]);
        bench.drop_pages(8190..8200);
        bench.read(500, 1);
        bench.drop_pages(500..501);
        assert_eq!(bench.read(500, 1), [(500, 1)]);
    }

    #[test]
    fn explicit_requests_are_silently_limited() {
        let mut bench = bench();
        bench.advise(Advice::WillNeed(Extent::new(Page::FIRST, Pages::new(16_384))));
        assert_eq!(bench.stage.file.tree().cached(), Pages::new(320));
    }

    #[test]
    fn a_mark_is_lost_if_no_window_can_follow() {
        let mut bench = bench();
        bench.open(1);
        bench.advise(Advice::WillNeed(Extent::new(Page::FIRST, Pages::new(320))));
        bench.stage.file.take_reads();
        bench.stage.set_mark(Page::new(100));
        assert_eq!(bench.read_by(1, 100, 1), []);
        assert!(bench.marked().is_empty());
    }

    #[test]
    fn a_mark_at_the_start_of_an_unread_file_is_handled() {
        let mut bench = bench();
        bench.read(0, 4);
        bench.stage.set_mark(Page::FIRST);
        bench.open(1);
        assert_eq!(bench.read_by(1, 0, 1), []);
        assert!(!bench.marked().contains(&0));
    }
}
