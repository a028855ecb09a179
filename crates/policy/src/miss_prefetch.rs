//! Prefetching for short runs at random offsets, and for large calls.
//!
//! The kernel does not know the length of a run in advance. It reads too little at the start of the
//! run and too much at its end. If the usual length is known, the rest of a run can be requested at
//! the miss of its first page, while the reader waits for that page.
//!
//! The end of a call is known. Nevertheless, the kernel reads a call that is larger than a request
//! of the device in parts, and reads ahead beyond its end. If all of the call is requested at once,
//! it finds most pages cached, and does neither.

use units::Pages;

use crate::page::{Extent, Page};

/// Prefetches the rest of a short run, or of a call, when a reader of one open file misses its
/// first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissPrefetch {
    /// The usual length of the runs; `None` for calls.
    run: Option<Pages>,
    /// The run or call that was requested last.
    requested: Extent,
}

impl MissPrefetch {
    /// Creates the prefetcher for runs of this usual length.
    pub fn of_runs(run: Pages) -> Self {
        Self { run: Some(run), requested: Extent::new(Page::FIRST, Pages::ZERO) }
    }

    /// Creates the prefetcher for calls that the kernel reads in parts.
    pub fn of_calls() -> Self {
        Self { run: None, requested: Extent::new(Page::FIRST, Pages::ZERO) }
    }

    /// Returns the pages to prefetch after a reader missed page `index` in a call that goes on for
    /// `pages` pages. Those of a run are already being read. `file` is the size of the file.
    /// Returns `None` within the last requested run or call.
    pub fn miss(&mut self, index: Page, pages: Pages, file: Pages) -> Option<Extent> {
        if self.requested.contains(index) && index != self.requested.start {
            return None;
        }
        let end = (index.get() + self.run.unwrap_or(pages).get()).min(file.get());
        // How much of a call the kernel requests at once is not known.
        let from = index.get() + self.run.map_or(0, |_| pages.get().max(1));
        self.requested = Extent::new(index, Pages::new(end.saturating_sub(index.get())));
        (from < end).then(|| Extent::new(Page::new(from), Pages::new(end - from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, pages: u64) -> Option<Extent> {
        Some(Extent::new(Page::new(start), Pages::new(pages)))
    }

    #[test]
    fn the_rest_of_a_run_is_read_once_and_within_the_file() {
        let mut prefetch = MissPrefetch::of_runs(Pages::new(4));
        let mut miss =
            |page, pages| prefetch.miss(Page::new(page), Pages::new(pages), Pages::new(102));
        assert_eq!(miss(10, 1), extent(11, 3));
        assert_eq!(miss(12, 1), None, "in flight");
        assert_eq!(miss(14, 1), extent(15, 3), "the next run follows");
        assert_eq!(miss(50, 4), None, "the reader requested the whole run");
        assert_eq!(miss(50, 0), extent(51, 3), "it was evicted and is read again");
        assert_eq!(miss(53, 1), None);
        assert_eq!(miss(100, 1), extent(101, 1));
        assert_eq!(miss(200, 1), None, "beyond the end of the file");
    }

    #[test]
    fn a_call_is_read_once_and_within_the_file() {
        let mut prefetch = MissPrefetch::of_calls();
        let mut miss =
            |page, pages| prefetch.miss(Page::new(page), Pages::new(pages), Pages::new(1000));
        assert_eq!(miss(100, 240), extent(100, 240));
        assert_eq!(miss(164, 176), None, "in flight");
        assert_eq!(miss(340, 240), extent(340, 240), "the next call follows");
        assert_eq!(miss(900, 240), extent(900, 100));
    }
}
