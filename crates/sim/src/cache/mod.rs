//! The page cache: files with their pages, two lists, and what leaves when it is full.

mod lists;
mod states;

use policy::cache::{MAX_ORDER, fill_into};
use policy::{Eviction, Extent, FileId, Folio, Page, Policy, Submission};
use units::Pages;

use crate::machine::Replacement;
use crate::outcome::CacheUse;
use lists::{EntryId, List, Lists};
pub(crate) use states::Tree;

/// Pages that reclaim takes at once at least (SWAP_CLUSTER_MAX).
const BATCH: u64 = 32;

/// A file's pages.
#[derive(Default)]
struct CachedFile {
    tree: Tree,
    pages: Pages,
    folio_limit: Option<u8>,
    /// Grows with each change that may end a run of pages which are there and unmarked. Pages that
    /// enter or arrive, and marks that they bring along, are of no such run.
    epoch: u64,
    /// Pages that left the cache and may still be mapped.
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

    pub(crate) fn tree(&self, file: u32) -> &Tree {
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

    /// A run of a file's pages that are there and unmarked is one until this changes.
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

    /// Pages that are not used more than once.
    pub(crate) fn available(&self) -> Pages {
        Pages::new(self.capacity.saturating_sub(self.lists.pages(List::Active)))
    }

    pub(crate) fn aged(&self) -> Pages {
        Pages::new(self.aged)
    }

    pub(crate) fn pending(&self) -> Pages {
        Pages::new(self.pending)
    }

    /// Puts a window's missing pages in, on their way, and adds them to `batches`.
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

    /// The same of one page without a mark, which however it is to enter the cache enters it so.
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

    /// Pages have arrived.
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

    /// How many pages from `page` on, `max` at most, a reader passes without waiting and without
    /// its policy hearing of it.
    pub(crate) fn quiet_run(&self, file: u32, page: Page, max: Pages) -> Pages {
        let this = &self.files[file as usize];
        this.tree.quiet_run_but(page, max, |states| states.pending)
    }

    /// A reader uses pages for the first time in its visit to their folios. Returns where the last
    /// of these folios begins and ends: to go on within it is no further visit.
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

    /// A reader uses one folio.
    #[inline]
    fn touch_folio(&mut self, file: u32, folio: Folio) {
        match states::reference_single(&mut self.files[file as usize].tree, folio.head) {
            Some(true) => self.activate(file, folio.head),
            Some(false) => self.aged += folio.pages().get(),
            None => {}
        }
    }

    /// A reader uses a run of folios.
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

    /// Notes which pages of those that a reader has come by were used.
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

    /// A referenced page is referenced again.
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

    /// Moves pages that are in one entry to the young end of a list.
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

    /// Moves cached pages out of danger: to the young end of the inactive list.
    pub(crate) fn rescue(&mut self, file: u32, extent: Extent) {
        let folios: Vec<Folio> = self.files[file as usize].tree.folios(extent).collect();
        for folio in folios {
            let entry = states::entry(&self.files[file as usize].tree, folio.head);
            if entry != EntryId::NONE && self.lists.get(entry).list == List::Inactive {
                self.move_to(List::Inactive, file, folio.head, folio.pages().get());
            }
        }
    }

    /// Lets pages go while there are too many.
    pub(crate) fn reclaim(&mut self, policy: &mut dyn Policy) {
        if self.cached <= self.capacity {
            return;
        }
        let goal = self.cached - (self.cached - self.capacity).max(BATCH).min(self.cached);
        // Each entry is passed over once at most.
        let mut chances = self.lists.count() + 1;
        while self.cached > goal && chances > 0 {
            self.balance();
            let oldest = self.lists.oldest(List::Inactive);
            let Some(id) = oldest.or_else(|| self.lists.oldest(List::Active)) else { return };
            let wanted = self.cached - goal;
            if !self.shrink(id, wanted, policy) {
                chances -= 1;
            }
        }
    }

    /// Has the active list give to the inactive one while that is low: with less than a gibibyte
    /// when it is the smaller, later when it is smaller by √(10 × gibibytes).
    fn balance(&mut self) {
        loop {
            let (inactive, active) =
                (self.lists.pages(List::Inactive), self.lists.pages(List::Active));
            let gib = (inactive + active) >> 18;
            let ratio = if gib > 0 { (10 * gib).isqrt() } else { 1 };
            if active == 0 || inactive.saturating_mul(ratio) >= active {
                return;
            }
            let Some(id) = self.lists.oldest(List::Active) else { return };
            let Some((file, page)) = self.first_of(id) else { return };
            let entry = self.lists.get(id);
            let mut at = page;
            let mut moved = 0;
            while moved < BATCH && at.get() < entry.end {
                let this = &self.files[file as usize];
                let folio = this.tree.folio(at).filter(|_| states::entry(&this.tree, at) == id);
                let Some(folio) = folio else {
                    at = at.plus(Pages::new(1));
                    continue;
                };
                moved += folio.pages().get();
                at = folio.end();
                self.move_to(List::Inactive, file, folio.head, folio.pages().get());
            }
        }
    }

    /// The first page that an entry still has.
    fn first_of(&mut self, id: EntryId) -> Option<(u32, Page)> {
        let entry = self.lists.get(id);
        if self.lists.is_whole(id) {
            return Some((entry.file, Page::new(entry.start)));
        }
        let tree = &self.files[entry.file as usize].tree;
        let is_in = |&page: &u64| states::entry(tree, Page::new(page)) == id;
        let page = (entry.start..entry.end).find(is_in)?;
        self.lists.begin_at(id, page);
        Some((entry.file, Page::new(page)))
    }

    /// Lets up to `wanted` pages of the entry go, or passes it over; whether any went.
    fn shrink(&mut self, id: EntryId, wanted: u64, policy: &mut dyn Policy) -> bool {
        let Some((file, page)) = self.first_of(id) else { return false };
        let this = &self.files[file as usize];
        let left = self.lists.get(id).end - page.get();
        let run = match this.folio_limit {
            None => states::settled_run(&this.tree, page, wanted.min(left), id),
            Some(_) => self.settled_folios(file, page, wanted, id),
        };
        if run == 0 {
            self.lists.renew(id);
            return false;
        }
        if self.guarded && self.retained(file, page, policy) {
            let folio = self.files[file as usize].tree.folio(page);
            let (start, pages) = folio.map_or((page, 1), |folio| (folio.head, folio.pages().get()));
            self.move_to(List::Inactive, file, start, pages);
            return false;
        }
        let run =
            if self.guarded && self.files[file as usize].folio_limit.is_none() { 1 } else { run };
        self.evict(file, id, Extent::new(page, Pages::new(run)));
        true
    }

    /// How many pages from the folio at `page` on make up whole folios that are in the entry and
    /// not on their way, and would go one after another until `wanted` are gone.
    fn settled_folios(&self, file: u32, page: Page, wanted: u64, id: EntryId) -> u64 {
        let this = &self.files[file as usize];
        let Some(first) = this.tree.folio(page) else { return 0 };
        let one = first.pages().get();
        let left = self.lists.get(id).end - page.get();
        let most = if self.guarded || !self.stays_balanced(id, wanted) { one } else { wanted };
        let most = most.clamp(one, left.max(one));
        if most == one {
            return if states::settled_run(&this.tree, page, one, id) == one { one } else { 0 };
        }
        // The last one may reach beyond what is wanted.
        let last = this.tree.folio(page.plus(Pages::new(most - 1)));
        let end = last.map_or(most, |last| last.end().since(page).get());
        let run = states::settled_run(&this.tree, page, end, id);
        if run == end || run == 0 {
            return run;
        }
        // Of a folio that is not ready as a whole nothing goes.
        let cut = this.tree.folio(page.plus(Pages::new(run)));
        cut.map_or(run, |cut| cut.head.since(page).get().min(run))
    }

    /// Whether the active list would give nothing to the inactive one while pages of this entry
    /// go, up to one folio more than `wanted`.
    fn stays_balanced(&self, id: EntryId, wanted: u64) -> bool {
        let (inactive, active) = (self.lists.pages(List::Inactive), self.lists.pages(List::Active));
        let rest = inactive.saturating_sub(wanted + (1 << MAX_ORDER));
        active == 0 || self.lists.get(id).list == List::Inactive && rest >= active
    }

    fn retained(&self, file: u32, page: Page, policy: &mut dyn Policy) -> bool {
        let used = self.files[file as usize].tree.is_used(page);
        policy.evict(FileId(file), page, used) == Eviction::Retain
    }

    fn evict(&mut self, file: u32, id: EntryId, extent: Extent) {
        let this = &mut self.files[file as usize];
        self.counts.evicted += extent.pages;
        self.aged += extent.pages.get();
        self.cached -= extent.pages.get();
        states::leave(&mut this.tree, extent);
        if this.folio_limit.is_none() && extent.pages.get() == 1 {
            let used = this.tree.remove_single(extent.start).unwrap_or(true);
            self.counts.thrashed += Pages::new(u64::from(!used));
        } else {
            self.counts.thrashed += this.tree.remove_folios(extent).1;
        }
        this.epoch += 1;
        self.lists.begin_at(id, extent.end().get());
        self.lists.take(id, extent.pages.get());
        if this.mapped {
            self.unmapped.push((file, extent));
        }
    }

    /// Mapped files' pages that left the cache since this was last asked.
    pub(crate) fn take_unmapped(&mut self) -> Vec<(u32, Extent)> {
        if self.unmapped.is_empty() { Vec::new() } else { std::mem::take(&mut self.unmapped) }
    }

    /// How many pages of a file lie ready, or nearly, from `page` on.
    pub(crate) fn ahead(&self, file: u32, page: Page) -> Pages {
        let this = &self.files[file as usize];
        let end = Page::FIRST.plus(this.pages);
        this.tree.unused(Extent::new(page, end.since(page))).0
    }

    /// Pages that were never used, of all that are cached.
    pub(crate) fn unused(&self) -> Pages {
        let of = |file: &CachedFile| file.tree.unused(Extent::new(Page::FIRST, file.pages)).1;
        self.files.iter().map(of).sum()
    }
}
