//! The page cache as a policy sees it, and a pure one to run policies against.

mod cursor;
mod file;
mod fill;
mod leaves;
mod tree;
#[cfg(test)]
mod xarray;

use units::{Bytes, Nanos, PageSize, Pages};

use crate::page::{Extent, Folio, Page};

/// The size of the pages that all of this counts in.
pub const PAGE: PageSize = PageSize::FOUR_KIB;

pub use file::{FileCache, FileShape};
pub use fill::{Filled, fill, fill_into, folio_order};
pub use tree::{MAX_FILE, MAX_ORDER, PageTree};

/// How the pages of a submission enter the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// One folio for each page; cached pages are skipped and split the I/O.
    Single,
    /// Folios of up to this order where the file allows them; from the first that would cover a
    /// cached page on, single pages.
    Folios {
        /// The order wished for, before any limit of file or window.
        order: u8,
    },
}

/// A window that a policy wants read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub start: Page,
    /// How many pages; the cache stops at the end of the file and leaves out what it has.
    pub pages: Pages,
    /// The tail of the window that is left to read when its mark is touched; zero for no mark.
    /// It is the tail, not the marked page, that a kernel hands down: where the window is cut off
    /// at the end of the file, the mark moves forward with it.
    pub lookahead: Pages,
    /// How the pages enter the cache.
    pub fill: Fill,
}

impl Submission {
    /// A window of single pages without a mark.
    pub const fn plain(start: Page, pages: Pages) -> Self {
        Self { start, pages, lookahead: Pages::ZERO, fill: Fill::Single }
    }

    /// A window of single pages whose last `lookahead` pages begin with a mark.
    pub const fn marked(start: Page, pages: Pages, lookahead: Pages) -> Self {
        Self { start, pages, lookahead, fill: Fill::Single }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A reader misses a page and is about to wait.
    Sync {
        index: Page,
        /// From there to the end of the read call.
        request: Pages,
        /// The byte after the last one of the read call before, if there was one.
        previous: Option<Bytes>,
    },
    Async {
        /// The marked folio's first page; for a fault, the page touched.
        index: Page,
        /// From there to the end of the read call.
        request: Pages,
        /// The byte after the last one of the read call before, if there was one.
        previous: Option<Bytes>,
    },
    /// Neither: read-around of a fault, or a reader's own order (WILLNEED, `readahead`).
    Direct,
}

/// What the device under the cache is set to at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The read-ahead window of its bdi (`read_ahead_kb`, in whole pages).
    pub read_ahead: Pages,
    /// The largest request that it takes (`max_sectors_kb`, in whole pages).
    pub max_request: Pages,
}

/// What the machine's memory is like at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub total: Pages,
    /// Pages that are free or can be had from the inactive list, above the low watermark.
    pub available: Pages,
    /// Pages that have aged so far: it grows when a cold page gets its first reference or is
    /// scanned by reclaim.
    pub aged: Pages,
    /// Pages of reads that are still under way.
    pub pending: Pages,
}

/// What a reader will ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upcoming {
    /// It does not know itself.
    Unknown,
    /// These pages.
    Pages(Extent),
    /// Nothing: it will be done by then.
    End,
}

/// One file's page cache as policies see it: they ask, submit and mark, and cannot remove anything.
///
/// [`Cache::next_miss`] and [`Cache::prev_miss`] answer as the kernel's walk does, quirk included,
/// not as the truth is; [`Cache::folio`] tells the truth.
pub trait Cache {
    /// The size of the file; nothing is read beyond the page that holds its last byte.
    fn file_size(&self) -> Bytes;

    /// The pages that the file has.
    fn file_pages(&self) -> Pages {
        self.file_size().to_pages_ceil(PAGE)
    }

    /// The folio that holds `page`, if it is cached (or on its way).
    fn folio(&self, page: Page) -> Option<Folio>;

    /// Whether a cached page has its data, or is still on its way.
    fn is_ready(&self, _page: Page) -> bool {
        true
    }

    /// How many pages from `page` on, `max` at most, a reader passes without waiting and without a
    /// call to the policy: cached, ready and unmarked. Zero where this is not known.
    fn hit_run(&self, _page: Page, _max: Pages) -> Pages {
        Pages::ZERO
    }

    /// The first page without data at or after `from` among `max`, or `from + max` if there is
    /// none; `None` where the walk came round to page 0.
    fn next_miss(&self, from: Page, max: Pages) -> Option<Page>;

    /// The first page without data at or before `from`, or the last that was looked at after
    /// `max`; `None` where all are cached down to page 0.
    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page>;

    /// Has a window read, and says how many pages of it were not cached yet: the others are left
    /// alone.
    fn submit(&mut self, window: Submission) -> Pages;

    /// Reads a page that its reader needs and no policy asked for.
    fn demand(&mut self, page: Page) {
        self.submit(Submission::plain(page, Pages::new(1)));
    }

    /// Marks the folio that holds `page`, if it is cached.
    fn set_mark(&mut self, page: Page);

    /// Takes the mark from the folio that holds `page`.
    fn clear_mark(&mut self, page: Page);

    /// What the device is set to now.
    fn limits(&self) -> DeviceLimits;

    /// The largest order of folio that the file may have; `None` where only single pages may be.
    fn folio_limit(&self) -> Option<u8> {
        None
    }

    /// Whether requests that nobody waits for are to be held back.
    fn congested(&self) -> bool {
        false
    }

    /// The time, for policies that forget idle streams.
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    /// The state of memory, for policies that adapt to it.
    fn memory(&self) -> Memory {
        let plenty = Pages::new(1 << 30);
        Memory { total: plenty, available: plenty, aged: Pages::ZERO, pending: Pages::ZERO }
    }

    /// Hears what made a policy decide, before the submissions of that decision: what the kernel's
    /// tracepoints tell.
    fn trace(&mut self, _trigger: Trigger) {}

    /// Whether `page` is cached and a reader has used it before. During [`crate::Policy::access`]
    /// that does not count the access itself.
    fn is_used(&self, page: Page) -> bool;

    /// Hears that a reader has used these pages, after the policy did.
    fn set_used(&mut self, _extent: Extent) {}

    /// Moves cached pages that are near their eviction out of danger.
    fn rescue(&mut self, _start: Page, _pages: Pages) {}

    /// How many pages can be read from `page` on in one piece on the device (what a file's
    /// layout allows).
    fn contiguous(&self, _page: Page) -> Pages {
        Pages::new(u64::MAX)
    }

    /// What the reader's `nth` call from now (0 is the next) will ask for, where it is one that
    /// knows: a database's scan.
    fn upcoming(&self, _nth: u64) -> Upcoming {
        Upcoming::Unknown
    }
}
