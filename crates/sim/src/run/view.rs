//! The page cache as a policy sees it during a callback.

use std::collections::VecDeque;

use policy::cache::PAGE;
use policy::{Cache, DeviceLimits, Extent, Folio, Memory, Page, StreamId, Submission, Upcoming};
use units::{Bytes, Nanos, Pages};

use crate::cache::PageCache;
use crate::disk_layout::Placed;
use crate::scenario::ReadStep;

/// Upcoming steps of a reader that does not know them.
pub(super) static NO_STEPS: VecDeque<ReadStep> = VecDeque::new();

/// The pages of one file, for one stream, at one time.
pub(super) struct CacheView<'a> {
    pub(super) cache: &'a mut PageCache,
    pub(super) placed: &'a Placed,
    pub(super) file: u32,
    pub(super) stream: StreamId,
    pub(super) limits: DeviceLimits,
    pub(super) now: Nanos,
    pub(super) congested: bool,
    pub(super) lookahead: &'a VecDeque<ReadStep>,
    /// Whether `lookahead` contains all remaining steps of the reader.
    pub(super) whole: bool,
    /// Extents to read, in order.
    pub(super) batches: &'a mut Vec<Extent>,
}

impl Cache for CacheView<'_> {
    fn file_size(&self) -> Bytes {
        self.placed.size()
    }

    fn file_pages(&self) -> Pages {
        self.cache.file_pages(self.file)
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.cache.tree(self.file).folio(page)
    }

    fn is_ready(&self, page: Page) -> bool {
        !self.cache.is_pending(self.file, page)
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.tree(self.file).next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.cache.tree(self.file).prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        self.cache.submit(self.file, &window, self.batches)
    }

    fn set_mark(&mut self, page: Page) {
        self.cache.set_mark(self.file, page, true);
    }

    fn clear_mark(&mut self, page: Page) {
        self.cache.set_mark(self.file, page, false);
    }

    fn limits(&self) -> DeviceLimits {
        self.limits
    }

    fn folio_limit(&self) -> Option<u8> {
        self.cache.folio_limit(self.file)
    }

    fn congested(&self) -> bool {
        self.congested
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn memory(&self) -> Memory {
        Memory {
            total: self.cache.capacity(),
            available: self.cache.available(),
            aged: self.cache.aged(),
            pending: self.cache.pending(),
        }
    }

    fn is_used(&self, page: Page) -> bool {
        self.cache.tree(self.file).is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.cache.set_used(self.file, extent);
    }

    fn rescue(&mut self, start: Page, pages: Pages) {
        self.cache.rescue(self.file, Extent::new(start, pages));
    }

    fn contiguous(&self, page: Page) -> Pages {
        self.placed.contiguous(page)
    }

    fn upcoming(&self, nth: u64) -> Upcoming {
        let step = usize::try_from(nth).ok().and_then(|nth| self.lookahead.get(nth));
        match step {
            Some(step) if step.open == self.stream.0 && step.advice.is_none() => {
                let start = Page::FIRST.plus(step.offset.to_pages_floor(PAGE));
                let end = Page::FIRST.plus((step.offset + step.length).to_pages_ceil(PAGE));
                Upcoming::Pages(Extent::new(start, end.since(start)))
            }
            Some(_) => Upcoming::Unknown,
            None if self.whole => Upcoming::End,
            None => Upcoming::Unknown,
        }
    }
}
