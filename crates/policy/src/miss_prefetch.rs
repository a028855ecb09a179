//! Prefetching for short runs at random offsets, and for large calls.
//!
//! The kernel does not know the length of a run in advance. It reads too little at the start of the
//! run and too much at its end. If the usual length is known, the rest of a run can be requested at
//! the miss of its first page, while the reader waits for that page.
//!
//! The end of a call is known. Nevertheless, the kernel reads a call that is larger than a request
//! of the device in parts, and reads ahead beyond its end. If all of the call is requested at its
//! first miss, the kernel finds most of it cached, and starts at most one window beyond its end.

use units::Pages;

use crate::page::{Extent, Page};

/// What is prefetched after a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The rest of a run of this length.
    Run(Pages),
    /// The call, if it is no longer than this.
    Call(Pages),
}

/// Prefetches the rest of a short run, or a large call, when a reader of one open file misses a
/// page of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissPrefetch {
    wanted: Wanted,
    /// The run or call that was requested last.
    requested: Extent,
}

impl MissPrefetch {
    /// Creates the prefetcher for runs of this usual length.
    pub fn of_runs(run: Pages) -> Self {
        Self { wanted: Wanted::Run(run), requested: Extent::new(Page::FIRST, Pages::ZERO) }
    }

    /// Creates the prefetcher for calls of up to `most` pages. Longer ones would keep readers of
    /// other files waiting.
    pub fn of_calls(most: Pages) -> Self {
        Self { wanted: Wanted::Call(most), requested: Extent::new(Page::FIRST, Pages::ZERO) }
    }

    /// Returns the pages to prefetch after a reader missed page `index` in a call that goes on for
    /// `pages` pages. If these are part of a run, the kernel reads them itself. `file` is the size
    /// of the file. Returns `None` within the last requested run or call.
    pub fn miss(&mut self, index: Page, pages: Pages, file: Pages) -> Option<Extent> {
        if self.requested.contains(index) && index != self.requested.start {
            return None;
        }
        let (length, from) = match self.wanted {
            Wanted::Run(run) => (run, index.get() + pages.get().max(1)),
            // How much of it the kernel requests at once is not known.
            Wanted::Call(most) => (Some(pages).filter(|pages| *pages <= most)?, index.get()),
        };
        let end = (index.get() + length.get()).min(file.get());
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
        let mut prefetch = MissPrefetch::of_calls(Pages::new(240));
        let mut miss =
            |page, pages| prefetch.miss(Page::new(page), Pages::new(pages), Pages::new(1000));
        assert_eq!(miss(100, 240), extent(100, 240));
        assert_eq!(miss(164, 176), None, "in flight");
        assert_eq!(miss(340, 240), extent(340, 240), "the next call follows");
        assert_eq!(miss(900, 240), extent(900, 100));
        assert_eq!(miss(500, 241), None, "too large");
    }
}
