//! Short runs from place to place, which end before a window is used up.
//!
//! The kernel cannot know how long a run will be, so it reads too little of it at first and too
//! much in the end. Who knows how long such runs are mostly can have just the rest of one read as
//! soon as its first page is missed, while the reader waits for that page.

use units::Pages;

use crate::page::{Extent, Page};

/// Prefetches the rest of a short run when a reader of one open file misses its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissPrefetch {
    run: Pages,
    asked: Extent,
}

impl MissPrefetch {
    /// For runs of so many pages.
    pub fn new(run: Pages) -> Self {
        Self { run, asked: Extent::new(Page::FIRST, Pages::ZERO) }
    }

    /// A reader missed this page, and so many from there on are being read for it: what else to
    /// have read of a file of this size. Nothing within a run that was answered just before.
    pub fn miss(&mut self, index: Page, pages: Pages, file: Pages) -> Option<Extent> {
        if self.asked.contains(index) && index != self.asked.start {
            return None;
        }
        let end = (index.get() + self.run.get()).min(file.get());
        let from = index.get() + pages.get().max(1);
        self.asked = Extent::new(index, Pages::new(end.saturating_sub(index.get())));
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
        let mut answer = MissPrefetch::new(Pages::new(4));
        let mut miss =
            |page, pages| answer.miss(Page::new(page), Pages::new(pages), Pages::new(102));
        assert_eq!(miss(10, 1), extent(11, 3));
        assert_eq!(miss(12, 1), None, "that is on its way");
        assert_eq!(miss(14, 1), extent(15, 3), "the run goes on");
        assert_eq!(miss(50, 4), None, "all of it was asked for at once");
        assert_eq!(miss(50, 0), extent(51, 3), "it was evicted and is read again");
        assert_eq!(miss(53, 1), None);
        assert_eq!(miss(100, 1), extent(101, 1));
        assert_eq!(miss(200, 1), None, "the file is shorter by now");
    }
}
