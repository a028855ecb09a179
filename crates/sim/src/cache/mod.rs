//! The page cache: files with their pages, two lists, and reclaim.

mod lists;
mod reclaim;
mod states;

use policy::cache::fill_into;
use policy::{Extent, Folio, Page, Submission};
use units::Pages;

use crate::machine::Replacement;
use crate::outcome::CacheUse;
use lists::{EntryId, List, Lists};
pub(crate) use states::StateTree;

/// A file and its cached pages.
#[derive(Default)]
struct CachedFile {
    tree: StateTree,
    pages: Pages,
    folio_limit: Option<u8>,
    /// Increases with each change that may end a run of cached, unmarked pages. Pages that enter or
    /// arrive, and the marks that they bring, are not part of such a run.
    epoch: u64,
    /// Whether the file may be mapped; its evicted pages are then recorded for unmapping.
    mapped: bool,
}

/// The page cache of a machine.
pub(crate) struct PageCache {
    files: Vec<CachedFile>,
    lists: Lists,
    capacity: u64,
    replacement: Replacement,
    guarded: bool,
    cached: u64,
    pending: u64,
    /// Pages that were referenced for the first time or scanned by reclaim, so far.
    aged: u64,
    counts: CacheUse,
    again: Vec<Page>,
    unmapped: Vec<(u32, Extent)>,
}

impl PageCache {
    pub(crate) fn new(capacity: Pages, replacement: Replacement, guarded: bool) -> Self {
        Self {
            files: Vec::new(),
            lists: Lists::new(),
            capacity: capacity.get(),
            replacement,
            guarded,
            cached: 0,
            pending: 0,
            aged: 0,
            counts: CacheUse::default(),
            again: Vec::new(),
            unmapped: Vec::new(),
        }
    }

    pub(crate) fn add_file(&mut self, pages: Pages, folio_limit: Option<u8>, mapped: bool) {
        self.files.push(CachedFile { pages, folio_limit, mapped, ..CachedFile::default() });
    }

    pub(crate) fn tree(&self, file: u32) -> &StateTree {
        &self.files[file as usize].tree
    }

    pub(crate) fn set_mark(&mut self, file: u32, page: Page, marked: bool) {
        let file = &mut self.files[file as usize];
        file.tree.set_mark(page, marked);
        file.epoch += u64::from(marked);
    }

    pub(crate) fn file_pages(&self, file: u32) -> Pages {
        self.files[file as usize].pages
    }

    pub(crate) fn folio_limit(&self, file: u32) -> Option<u8> {
        self.files[file as usize].folio_limit
    }

    /// Returns the file's epoch. A run of cached, unmarked pages stays one until the epoch changes.
    #[inline]
    pub(crate) fn epoch(&self, file: u32) -> u64 {
        self.files[file as usize].epoch
    }

    pub(crate) fn counts(&self) -> CacheUse {
        self.counts
    }

    pub(crate) fn capacity(&self) -> Pages {
        Pages::new(self.capacity)
    }

    /// Returns the capacity in pages, without the pages of the active list.
    pub(crate) fn available(&self) -> Pages {
        Pages::new(self.capacity.saturating_sub(self.lists.pages(List::Active)))
    }

    pub(crate) fn aged(&self) -> Pages {
        Pages::new(self.aged)
    }

    pub(crate) fn pending(&self) -> Pages {
        Pages::new(self.pending)
    }

    /// Inserts a window's missing pages as in flight, and appends them to `batches`.
    pub(crate) fn submit(
        &mut self,
        file: u32,
        window: &Submission,
        batches: &mut Vec<Extent>,
    ) -> Pages {
        if window.pages.get() == 1 && window.lookahead.is_zero() {
            return self.submit_single(file, window.start, batches);
        }
        let this = &mut self.files[file as usize];
        let end = Page::FIRST.plus(this.pages);
        let first = batches.len();
        fill_into(&mut this.tree, window, end, this.folio_limit, batches);
        if batches.len() == first {
            return Pages::ZERO;
        }
        self.counts.windows += 1;
        let mut filled = Pages::ZERO;
        for batch in &batches[first..] {
            let pages = batch.pages.get();
            let entry = self.lists.push(List::Inactive, file, batch.start.get(), pages);
            states::enter(&mut this.tree, *batch, entry);
            filled += batch.pages;
        }
        self.cached += filled.get();
        self.pending += filled.get();
        self.counts.read += filled;
        filled
    }

    /// As `submit`, for one page without a mark, for which the kind of fill makes no difference.
    fn submit_single(&mut self, file: u32, page: Page, batches: &mut Vec<Extent>) -> Pages {
        let this = &mut self.files[file as usize];
        if page.get() >= this.pages.get() {
            return Pages::ZERO;
        }
        let Some(states) = this.tree.insert_single(page) else { return Pages::ZERO };
        states.enter(page, self.lists.push(List::Inactive, file, page.get(), 1));
        let one = Pages::new(1);
        batches.push(Extent::new(page, one));
        self.counts.windows += 1;
        self.counts.read += one;
        self.cached += 1;
        self.pending += 1;
        one
    }

    #[inline]
    pub(crate) fn arrive(&mut self, file: u32, extent: Extent) {
        let this = &mut self.files[file as usize];
        states::arrive(&mut this.tree, extent);
        self.pending -= extent.pages.get();
    }

    pub(crate) fn is_pending(&self, file: u32, page: Page) -> bool {
        states::is_pending(&self.files[file as usize].tree, page)
    }

    pub(crate) fn first_pending(&self, file: u32, extent: Extent) -> Option<Page> {
        states::first_pending(&self.files[file as usize].tree, extent)
    }

    /// Prefetches the state of a page into the processor's cache.
    #[inline]
    pub(crate) fn fetch(&self, file: u32, page: Page) {
        states::fetch(&self.files[file as usize].tree, page);
    }

    /// Returns the number of pages from `page`, at most `max`, that a reader passes without waiting
    /// and without a call of its policy.
    pub(crate) fn plain_hit_run(&self, file: u32, page: Page, max: Pages) -> Pages {
        let this = &self.files[file as usize];
        this.tree.plain_hit_run_except(page, max, |states| states.pending)
    }

    /// Records a reader's use of pages, the first in its visit to their folios. Returns the start
    /// and end of the last of these folios: continuing within it is not another visit.
    pub(crate) fn touch(&mut self, file: u32, extent: Extent) -> (Page, Page) {
        let last = extent.end().minus(Pages::new(1));
        let this = &self.files[file as usize];
        let folio = this.folio_limit.and_then(|_| this.tree.folio(last));
        match (self.replacement, folio) {
            (Replacement::Lru, _) => self.touch_lru(file, extent),
            (Replacement::TwoLists, Some(folio)) if folio.head <= extent.start => {
                self.touch_folio(file, folio);
            }
            (Replacement::TwoLists, _) => self.touch_run(file, extent),
        }
        folio.map_or((last, extent.end()), |folio| (folio.head, folio.end()))
    }

    #[inline]
    fn touch_folio(&mut self, file: u32, folio: Folio) {
        match states::reference_single(&mut self.files[file as usize].tree, folio.head) {
            Some(true) => self.activate(file, folio.head),
            Some(false) => self.aged += folio.pages().get(),
            None => {}
        }
    }

    /// Records a reader's use of a run of folios.
    fn touch_run(&mut self, file: u32, extent: Extent) {
        let this = &mut self.files[file as usize];
        let mut again = std::mem::take(&mut self.again);
        if this.folio_limit.is_none() {
            self.aged += states::reference(&mut this.tree, extent, &mut again);
        } else {
            let mut at = extent.start;
            while at < extent.end() {
                let singles = this.tree.single_run(at, extent.end().since(at));
                self.aged +=
                    states::reference(&mut this.tree, Extent::new(at, singles), &mut again);
                at = at.plus(singles);
                if at >= extent.end() {
                    break;
                }
                let rest = Extent::new(at, extent.end().since(at));
                let Some(folio) = this.tree.folios(rest).next() else { break };
                let head = Extent::new(folio.head, Pages::new(1));
                self.aged +=
                    states::reference(&mut this.tree, head, &mut again) * folio.pages().get();
                at = folio.end();
            }
        }
        for page in again.drain(..) {
            self.activate(file, page);
        }
        self.again = again;
    }

    /// Records that the cached pages of `extent` were used.
    pub(crate) fn set_used(&mut self, file: u32, extent: Extent) {
        self.files[file as usize].tree.set_used(extent);
    }

    fn touch_lru(&mut self, file: u32, extent: Extent) {
        let mut page = extent.start;
        while page < extent.end() {
            let this = &self.files[file as usize];
            let folio = this.folio_limit.and_then(|_| this.tree.folio(page));
            let (start, pages) = folio.map_or((page, 1), |folio| (folio.head, folio.pages().get()));
            self.aged += pages;
            if folio.is_none() && !this.tree.contains(page) {
                page = page.plus(Pages::new(1));
                continue;
            }
            let entry = states::entry(&this.tree, start);
            let end = start.get() + pages;
            if !self.lists.is_youngest(List::Inactive, entry, end - 1) {
                self.move_to(List::Inactive, file, start, pages);
            }
            page = start.plus(Pages::new(pages));
        }
    }

    /// Moves the folio of a page that is referenced again to the active list.
    fn activate(&mut self, file: u32, page: Page) {
        let this = &mut self.files[file as usize];
        let entry = states::entry(&this.tree, page);
        if entry == EntryId::NONE || self.lists.get(entry).list == List::Active {
            return;
        }
        let Some(folio) = this.tree.folio(page) else { return };
        states::forget_reference(&mut this.tree, folio.head);
        self.counts.activated += folio.pages();
        self.move_to(List::Active, file, folio.head, folio.pages().get());
    }

    /// Moves pages of one entry to the young end of a list.
    fn move_to(&mut self, list: List, file: u32, start: Page, pages: u64) {
        let this = &mut self.files[file as usize];
        let from = states::entry(&this.tree, start);
        if from == EntryId::NONE {
            return;
        }
        self.lists.take(from, pages);
        let to = self.lists.push(list, file, start.get(), pages);
        states::relabel(&mut this.tree, Extent::new(start, Pages::new(pages)), to);
    }

    /// Moves the inactive pages of `extent` to the young end of the list, away from eviction.
    pub(crate) fn rescue(&mut self, file: u32, extent: Extent) {
        let folios: Vec<Folio> = self.files[file as usize].tree.folios(extent).collect();
        for folio in folios {
            let entry = states::entry(&self.files[file as usize].tree, folio.head);
            if entry != EntryId::NONE && self.lists.get(entry).list == List::Inactive {
                self.move_to(List::Inactive, file, folio.head, folio.pages().get());
            }
        }
    }

    /// Returns the number of consecutive pages of a file from `page` that are cached or in flight.
    pub(crate) fn ahead(&self, file: u32, page: Page) -> Pages {
        let this = &self.files[file as usize];
        let end = Page::FIRST.plus(this.pages);
        let end = this.tree.next_miss(page, end.since(page)).unwrap_or(end);
        this.tree.unused(Extent::new(page, end.since(page))).0
    }

    /// Returns the number of cached pages that were never used.
    pub(crate) fn unused(&self) -> Pages {
        let of = |file: &CachedFile| file.tree.unused(Extent::new(Page::FIRST, file.pages)).1;
        self.files.iter().map(of).sum()
    }
}
