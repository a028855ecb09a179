//! Collects, in the simulated kernel, what the kernel's tracepoints report of one access.

use policy::{
    AccessEvent, Cache, DeviceLimits, EventKind, Extent, Fill, Folio, Memory, Page, Submission,
    Trigger, Upcoming, Window,
};
use units::{Bytes, Nanos, Pages};

pub(super) fn event(at: Nanos, kind: EventKind, index: Page, request: Pages) -> AccessEvent {
    AccessEvent { at, kind, file: None, index: index.get(), request, previous: None }
}

/// A cache wrapper that collects what the kernel's tracepoints report.
pub(super) struct Probed<'a> {
    cache: &'a mut dyn Cache,
    events: &'a mut Vec<AccessEvent>,
    page: Page,
    /// The page of a miss or mark whose window was not submitted yet.
    asked: Option<Page>,
    /// Submitted pages that were not cached.
    pub read: Pages,
}

impl<'a> Probed<'a> {
    pub fn new(cache: &'a mut dyn Cache, events: &'a mut Vec<AccessEvent>, page: Page) -> Self {
        Self { cache, events, page, asked: None, read: Pages::ZERO }
    }

    fn report(&mut self, kind: EventKind, index: Page, request: Pages) {
        self.events.push(event(self.cache.now(), kind, index, request));
    }
}

impl Cache for Probed<'_> {
    fn submit(&mut self, window: Submission) -> Pages {
        let (start, size) = (window.start.get(), window.pages);
        match (window.fill, self.asked.take()) {
            (Fill::Folios { .. }, asked) => {
                let index = asked.unwrap_or(self.page);
                let window = Window { start, size, async_size: Pages::ZERO };
                let kind = EventKind::Window { window, mapped: asked.is_none() };
                self.report(kind, index, size);
            }
            (Fill::Single, Some(index)) => self.report(EventKind::Plain, index, size),
            (Fill::Single, None) => {}
        }
        let read = self.cache.submit(window);
        self.read += read;
        read
    }

    fn trace(&mut self, trigger: Trigger) {
        let before = Window::default();
        match trigger {
            Trigger::Sync { index, request, previous } => {
                let kind = EventKind::Miss { before };
                let now = self.cache.now();
                self.events.push(AccessEvent { previous, ..event(now, kind, index, request) });
                self.asked = Some(index);
            }
            Trigger::Async { index, request, .. } => {
                self.report(EventKind::Mark { before }, index, request);
                self.asked = Some(index);
            }
            Trigger::Direct => self.asked = None,
        }
        self.cache.trace(trigger);
    }

    fn file_size(&self) -> Bytes {
        self.cache.file_size()
    }
    fn file_pages(&self) -> Pages {
        self.cache.file_pages()
    }
    fn folio(&self, page: Page) -> Option<Folio> {
        self.cache.folio(page)
    }
    fn is_ready(&self, page: Page) -> bool {
        self.cache.is_ready(page)
    }
    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.next_miss(from, max)
    }
    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.prev_miss(from, max)
    }
    fn set_mark(&mut self, page: Page) {
        self.cache.set_mark(page);
    }
    fn clear_mark(&mut self, page: Page) {
        self.cache.clear_mark(page);
    }
    fn limits(&self) -> DeviceLimits {
        self.cache.limits()
    }
    fn folio_limit(&self) -> Option<u8> {
        self.cache.folio_limit()
    }
    fn congested(&self) -> bool {
        self.cache.congested()
    }
    fn now(&self) -> Nanos {
        self.cache.now()
    }
    fn memory(&self) -> Memory {
        self.cache.memory()
    }
    fn is_used(&self, page: Page) -> bool {
        self.cache.is_used(page)
    }
    fn set_used(&mut self, extent: Extent) {
        self.cache.set_used(extent);
    }
    fn rescue(&mut self, start: Page, pages: Pages) {
        self.cache.rescue(start, pages);
    }
    fn contiguous(&self, page: Page) -> Pages {
        self.cache.contiguous(page)
    }
    fn upcoming(&self, nth: u64) -> Upcoming {
        self.cache.upcoming(nth)
    }
}
