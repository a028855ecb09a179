//! The page cache: the interface for policies, and an implementation in memory.

mod cursor;
mod file;
mod fill;
mod leaves;
mod tree;
#[cfg(test)]
mod xarray;

use units::{Bytes, Nanos, PageSize, Pages};

use crate::page::{Extent, Folio, Page};

/// The page size of all policies and caches.
pub const PAGE: PageSize = PageSize::FOUR_KIB;

pub use file::{CacheEvent, FileCache, FileShape};
pub use fill::{FillResult, fill, fill_into, folio_order};
pub use tree::{MAX_FILE, MAX_ORDER, PageTree};

/// How the pages of a submission are inserted into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// One folio for each page; cached pages are skipped and split the I/O.
    Single,
    /// Folios of up to this order, if the file allows them. From the first folio that would cover a
    /// cached page, single pages.
    Folios {
        /// Requested order, before the limits of file and window.
        order: u8,
    },
}

/// A window that a policy submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub start: Page,
    /// The number of pages. The cache stops at the end of the file and skips cached pages.
    pub pages: Pages,
    /// The number of pages from the mark to the end of the window; zero for no mark. The kernel
    /// also passes this number and not the marked page: if the window is cut off at the end of the
    /// file, the mark moves forward.
    pub lookahead: Pages,
    /// How the pages are inserted.
    pub fill: Fill,
}

impl Submission {
    /// Creates a window of single pages without a mark.
    pub const fn plain(start: Page, pages: Pages) -> Self {
        Self { start, pages, lookahead: Pages::ZERO, fill: Fill::Single }
    }

    /// Creates a window of single pages with a mark on the first of its last `lookahead` pages.
    pub const fn marked(start: Page, pages: Pages, lookahead: Pages) -> Self {
        Self { start, pages, lookahead, fill: Fill::Single }
    }
}

/// The cause of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A reader missed a page and is going to wait.
    Sync {
        index: Page,
        /// The pages from `index` to the end of the read call.
        request: Pages,
        /// The offset after the last byte of the previous read call.
        previous: Option<Bytes>,
    },
    /// A reader reached a mark.
    Async {
        /// The first page of the marked folio; for a fault, the faulting page.
        index: Page,
        /// The pages from `index` to the end of the read call.
        request: Pages,
        /// The offset after the last byte of the previous read call.
        previous: Option<Bytes>,
    },
    /// Neither: read-around of a fault, or a request of the application (WILLNEED, `readahead`).
    Direct,
}

/// The current settings of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The read-ahead window of its bdi (`read_ahead_kb`, in whole pages).
    pub read_ahead: Pages,
    /// The largest request (`max_sectors_kb`, in whole pages).
    pub max_request: Pages,
}

/// The current state of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub total: Pages,
    /// Free pages and those of the inactive list, above the low watermark.
    pub available: Pages,
    /// The number of pages that have aged so far. It grows when a cold page gets its first
    /// reference or is scanned by reclaim.
    pub aged: Pages,
    /// Pages of reads in flight.
    pub pending: Pages,
}

/// The next request of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcoming {
    /// Unknown to the reader.
    Unknown,
    /// The reader will read these pages.
    Pages(Extent),
    /// No request: the reader will have finished.
    End,
}

/// The page cache of one file, for policies, which can query, submit and mark, but not remove.
///
/// [`Cache::next_miss`] and [`Cache::prev_miss`] return the kernel's results, which are sometimes
/// inexact (see `cursor.rs`); [`Cache::folio`] is exact.
pub trait Cache {
    /// Returns the size of the file; nothing is read beyond the page that holds its last byte.
    fn file_size(&self) -> Bytes;

    /// Returns the size of the file in pages.
    fn file_pages(&self) -> Pages {
        self.file_size().to_pages_ceil(PAGE)
    }

    /// Returns the folio that contains `page`, if it is cached or in flight.
    fn folio(&self, page: Page) -> Option<Folio>;

    /// Returns whether a cached page has its data; if not, the page is in flight.
    fn is_ready(&self, _page: Page) -> bool {
        true
    }

    /// Returns the number of consecutive pages from `page`, at most `max`, that are cached, ready
    /// and unmarked, so that a reader neither waits nor calls the policy. Zero if unknown.
    fn hit_run(&self, _page: Page, _max: Pages) -> Pages {
        Pages::ZERO
    }

    /// Returns the first uncached page among the `max` pages from `from`, or `from + max` if there
    /// is none; `None` if the search wraps around to page 0.
    fn next_miss(&self, from: Page, max: Pages) -> Option<Page>;

    /// Returns the first uncached page at or before `from`, or the last of `max` pages that were
    /// examined; `None` if all pages down to page 0 are cached.
    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page>;

    /// Reads the uncached pages of a window. Returns their number.
    fn submit(&mut self, window: Submission) -> Pages;

    /// Reads a page that the reader needs and the policy did not submit.
    fn demand(&mut self, page: Page) {
        self.submit(Submission::plain(page, Pages::new(1)));
    }

    /// Marks the folio that contains `page`, if it is cached.
    fn set_mark(&mut self, page: Page);

    /// Clears the mark of the folio that contains `page`.
    fn clear_mark(&mut self, page: Page);

    /// Returns the current settings of the device.
    fn limits(&self) -> DeviceLimits;

    /// Returns the largest folio order of the file; `None` for single pages only.
    fn folio_limit(&self) -> Option<u8> {
        None
    }

    /// Returns whether the device is congested. If so, requests without a waiting reader must not
    /// be submitted.
    fn congested(&self) -> bool {
        false
    }

    /// Returns the current time, for policies that drop idle streams.
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Returns the state of memory, for policies that adapt to it.
    fn memory(&self) -> Memory {
        let plenty = Pages::new(1 << 30);
        Memory { total: plenty, available: plenty, aged: Pages::ZERO, pending: Pages::ZERO }
    }

    /// Called with the trigger of a decision, before its submissions, like the kernel's
    /// tracepoints.
    fn trace(&mut self, _trigger: Trigger) {}

    /// Returns whether `page` is cached and was accessed before. During [`crate::Policy::access`],
    /// the current access does not count.
    fn is_used(&self, page: Page) -> bool;

    /// Records that a reader accessed these pages. Called after the policy.
    fn set_used(&mut self, _extent: Extent) {}

    /// Moves cached pages that are close to eviction back to the start of the inactive list.
    fn rescue(&mut self, _start: Page, _pages: Pages) {}

    /// Returns the number of pages from `page` that are contiguous on the device.
    fn contiguous(&self, _page: Page) -> Pages {
        Pages::new(u64::MAX)
    }

    /// Returns the pages of the reader's `nth` future call (0 is the next), if the reader knows
    /// them, like a scan of a database.
    fn upcoming(&self, _nth: u64) -> Upcoming {
        Upcoming::Unknown
    }
}
