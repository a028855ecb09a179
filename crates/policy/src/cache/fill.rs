//! Turns a submission into cached pages and I/O, as the kernel's `page_cache_ra_order` and
//! `page_cache_ra_unbounded` do.

use units::Pages;

use super::tree::{MAX_ORDER, PageTree};
use super::{Fill, Submission};
use crate::page::{Extent, Folio, Page};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FillResult {
    /// Pages to read, one extent for each batch that is passed to the file system.
    pub batches: Vec<Extent>,
    /// Pages read as single pages, if any: a whole plain submission, or the rest after a folio
    /// would have covered a cached page.
    pub plain: Option<Extent>,
}

impl FillResult {
    /// Returns the number of pages to be read.
    pub fn pages(&self) -> Pages {
        self.batches.iter().map(|batch| batch.pages).sum()
    }
}

/// Returns the order of a window's folios: `requested`, limited by the file and the size of the
/// window. `None` if the file can have single pages only.
pub fn folio_order(requested: u8, window: Pages, limit: Option<u8>) -> Option<u8> {
    let order = requested.min(limit?).min(MAX_ORDER);
    // An empty window has no logarithm; in the kernel it does not lower the order.
    Some(window.get().checked_ilog2().map_or(order, |log| order.min(log as u8)))
}

/// Inserts the uncached pages of a window that lie before `end` into `tree`.
pub fn fill<S: Copy + Default>(
    tree: &mut PageTree<S>,
    window: &Submission,
    end: Page,
    limit: Option<u8>,
) -> FillResult {
    let mut filled = FillResult::default();
    filled.plain = fill_into(tree, window, end, limit, &mut filled.batches);
    filled
}

/// As [`fill`], but appends the batches to `batches`. Returns the pages read as single pages.
pub fn fill_into<S: Copy + Default>(
    tree: &mut PageTree<S>,
    window: &Submission,
    end: Page,
    limit: Option<u8>,
    batches: &mut Vec<Extent>,
) -> Option<Extent> {
    let mut done = Pages::ZERO;
    if let Fill::Folios { order } = window.fill
        && let Some(order) = folio_order(order, window.pages, limit)
    {
        match walk_folios(tree, window, end, order) {
            Ok(whole) => {
                batches.extend(whole);
                return None;
            }
            Err(stopped) => {
                done = stopped.since(window.start);
                batches.extend(batch(window.start, stopped));
            }
        }
    }
    let rest = Extent::new(window.start.plus(done), window.pages.saturating_sub(done)).before(end);
    if rest.pages.is_zero() {
        return None;
    }
    fill_plain(tree, rest, window.lookahead, batches);
    Some(rest)
}

fn batch(start: Page, end: Page) -> Option<Extent> {
    (end > start).then(|| Extent::new(start, end.since(start)))
}

/// Inserts folios from the start of the window. Returns the pages to read, or the head of the first
/// folio that would cover a cached page.
fn walk_folios<S: Copy + Default>(
    tree: &mut PageTree<S>,
    window: &Submission,
    end: Page,
    order: u8,
) -> Result<Option<Extent>, Page> {
    let stop = window.start.plus(window.pages).min(end);
    let mark = window.start.get().saturating_add(window.pages.get())
        - window.lookahead.get().min(window.pages.get());
    let mut at = window.start;
    while at < stop {
        let order = fitting(at, stop, order);
        let size = 1u64 << order;
        let marked = !window.lookahead.is_zero() && at.get() == mark & !(size - 1);
        if !tree.insert(Folio { head: at, order, marked }) {
            return Err(at);
        }
        at = at.plus(Pages::new(size));
    }
    Ok(batch(window.start, at))
}

/// Returns the largest order up to `order` of a folio that is aligned at `at` and ends by `stop`.
fn fitting(at: Page, stop: Page, order: u8) -> u8 {
    let aligned = at.get().trailing_zeros().min(u32::from(order));
    let room = stop.since(at).get().max(1).ilog2();
    aligned.min(room) as u8
}

/// Reads the uncached pages of `window`, one batch for each gap. Marks the first of the last
/// `lookahead` pages, if that page is new.
fn fill_plain<S: Copy + Default>(
    tree: &mut PageTree<S>,
    window: Extent,
    lookahead: Pages,
    batches: &mut Vec<Extent>,
) {
    let mut at = window.start;
    loop {
        at = at.plus(tree.present_run(at, window.end().since(at)));
        let gap = Extent::new(at, tree.absent_run(at, window.end().since(at)));
        if gap.pages.is_zero() {
            return;
        }
        tree.insert_run(gap);
        batches.push(gap);
        let mark = window.end().minus(lookahead);
        if !lookahead.is_zero()
            && lookahead <= window.pages
            && gap.start <= mark
            && mark < gap.end()
        {
            tree.set_mark(mark, true);
        }
        at = gap.end();
        if at >= window.end() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Option<u8> = Some(MAX_ORDER);

    fn extent(start: u64, pages: u64) -> Extent {
        Extent::new(Page::new(start), Pages::new(pages))
    }

    fn window(start: u64, pages: u64, lookahead: u64, order: u8) -> Submission {
        let fill = Fill::Folios { order };
        Submission {
            fill,
            ..Submission::marked(Page::new(start), Pages::new(pages), Pages::new(lookahead))
        }
    }

    fn folios(tree: &PageTree) -> Vec<(u64, u8, bool)> {
        let all = extent(0, 1 << 20);
        tree.folios(all).map(|folio| (folio.head.get(), folio.order, folio.marked)).collect()
    }

    #[test]
    fn the_order_of_folios_depends_on_their_alignment() {
        let mut tree = PageTree::new();
        let filled = fill(&mut tree, &window(6, 20, 20, 3), Page::new(1000), LIMIT);
        assert_eq!(filled, FillResult { batches: vec![extent(6, 20)], plain: None });
        assert_eq!(folios(&tree), [(6, 1, true), (8, 3, false), (16, 3, false), (24, 1, false)]);
    }

    #[test]
    fn the_folio_of_the_marked_page_is_marked() {
        let mut tree = PageTree::new();
        fill(&mut tree, &window(0, 32, 5, 4), Page::new(1000), LIMIT);
        assert_eq!(folios(&tree), [(0, 4, false), (16, 4, true)]);
    }

    #[test]
    fn folios_end_at_the_end_of_the_file() {
        let mut tree = PageTree::new();
        let filled = fill(&mut tree, &window(16, 16, 16, 4), Page::new(21), LIMIT);
        assert_eq!(filled.batches, [extent(16, 5)]);
        assert_eq!(folios(&tree), [(16, 2, true), (20, 0, false)]);
        assert_eq!(
            fill(&mut tree, &window(32, 32, 32, 2), Page::new(21), LIMIT),
            FillResult::default()
        );
    }

    #[test]
    fn a_cached_page_turns_the_rest_into_single_pages() {
        let mut tree = PageTree::new();
        fill(&mut tree, &Submission::plain(Page::new(13), Pages::new(1)), Page::new(1000), None);
        let filled = fill(&mut tree, &window(8, 16, 12, 2), Page::new(1000), LIMIT);
        assert_eq!(filled.plain, Some(extent(12, 12)));
        assert_eq!(filled.batches, [extent(8, 4), extent(12, 1), extent(14, 10)]);
        // With a tail of 12 pages, the mark is on the first of the remaining 12.
        assert!(tree.folio(Page::new(12)).is_some_and(|folio| folio.marked && folio.order == 0));
    }

    #[test]
    fn neither_a_cached_page_nor_one_before_the_rest_is_marked() {
        let mut tree = PageTree::new();
        fill(&mut tree, &window(0, 4, 0, 0), Page::new(1000), LIMIT);
        fill(
            &mut tree,
            &Submission::marked(Page::FIRST, Pages::new(8), Pages::new(5)),
            Page::new(1000),
            LIMIT,
        );
        assert!(folios(&tree).iter().all(|&(_, _, marked)| !marked));
        fill(&mut tree, &window(6, 4, 4, 1), Page::new(1000), LIMIT);
        assert!(folios(&tree).iter().all(|&(_, _, marked)| !marked));
    }

    #[test]
    fn a_plain_window_cut_off_at_the_end_moves_its_mark_forward() {
        let mut tree = PageTree::new();
        let filled = fill(&mut tree, &window(16, 32, 8, 2), Page::new(40), None);
        assert_eq!(filled.plain, Some(extent(16, 24)));
        assert!(tree.folio(Page::new(32)).is_some_and(|folio| folio.marked));
    }
}
