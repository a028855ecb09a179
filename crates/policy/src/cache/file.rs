//! The cache of one file, for running a policy without time.

use units::{Bytes, Pages};

use super::fill::{FillResult, fill};
use super::tree::PageTree;
use super::{Cache, DeviceLimits, Submission, Trigger};
use crate::page::{Extent, Folio, Page};

/// The properties of a file and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileShape {
    /// The size of the file, at most [`super::MAX_FILE`].
    pub size: Bytes,
    /// Largest folio order of the file; `None` for single pages only.
    pub folio_limit: Option<u8>,
    /// Settings of the device.
    pub limits: DeviceLimits,
}

/// What a policy told a [`FileCache`], as a kernel's tracepoints would report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheEvent {
    Trigger(Trigger),
    /// A submission, and the pages of it that were read as single pages, if any.
    Submission(Submission, Option<Extent>),
}

/// A [`Cache`] of one file whose reads complete at once. It records the reads and the events.
#[derive(Clone, Debug)]
pub struct FileCache {
    shape: FileShape,
    tree: PageTree,
    read: Vec<Extent>,
    events: Vec<CacheEvent>,
}

impl FileCache {
    /// Creates an empty cache.
    pub fn new(shape: FileShape) -> Self {
        Self { shape, tree: PageTree::new(), read: Vec::new(), events: Vec::new() }
    }

    /// Returns the cached pages.
    pub fn tree(&self) -> &PageTree {
        &self.tree
    }

    /// Removes a folio, as reclaim or POSIX_FADV_DONTNEED does.
    pub fn remove(&mut self, page: Page) -> Option<Folio> {
        self.tree.remove(page)
    }

    /// Changes the settings of the device.
    pub fn set_limits(&mut self, limits: DeviceLimits) {
        self.shape.limits = limits;
    }

    /// Returns the reads since the last call, in the order of submission.
    pub fn take_reads(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.read)
    }

    /// Returns the events since the last call, in order.
    pub fn take_events(&mut self) -> Vec<CacheEvent> {
        std::mem::take(&mut self.events)
    }

    /// Reads a window without recording an event.
    pub fn fill(&mut self, window: &Submission) -> FillResult {
        let end = Page::FIRST.plus(self.file_pages());
        let filled = fill(&mut self.tree, window, end, self.shape.folio_limit);
        self.read.extend(&filled.batches);
        filled
    }
}

impl Cache for FileCache {
    fn file_size(&self) -> Bytes {
        self.shape.size
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.tree.folio(page)
    }

    fn hit_run(&self, page: Page, max: Pages) -> Pages {
        self.tree.plain_hit_run(page, max)
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.tree.prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        let filled = self.fill(&window);
        self.events.push(CacheEvent::Submission(window, filled.plain));
        filled.pages()
    }

    fn demand(&mut self, page: Page) {
        self.fill(&Submission::plain(page, Pages::new(1)));
    }

    fn set_mark(&mut self, page: Page) {
        self.tree.set_mark(page, true);
    }

    fn clear_mark(&mut self, page: Page) {
        self.tree.set_mark(page, false);
    }

    fn is_used(&self, page: Page) -> bool {
        self.tree.is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.tree.set_used(extent);
    }

    fn limits(&self) -> DeviceLimits {
        self.shape.limits
    }

    fn folio_limit(&self) -> Option<u8> {
        self.shape.folio_limit
    }

    fn trace(&mut self, trigger: Trigger) {
        self.events.push(CacheEvent::Trigger(trigger));
    }
}
