//! Reclaim: eviction from a full cache.

use policy::cache::MAX_ORDER;
use policy::{Eviction, Extent, FileId, Folio, Page, Policy};
use units::Pages;

use super::lists::{EntryId, List};
use super::{PageCache, states};

/// Minimum number of pages that reclaim evicts at once (SWAP_CLUSTER_MAX).
const RECLAIM_BATCH_PAGES: u64 = 32;

impl PageCache {
    /// Returns whether the cache exceeds its capacity.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.cached > self.capacity
    }

    /// Evicts the excess pages, or a batch if that is more.
    pub(crate) fn reclaim(&mut self, policy: &mut dyn Policy) {
        if !self.is_full() {
            return;
        }
        let goal =
            self.cached - (self.cached - self.capacity).max(RECLAIM_BATCH_PAGES).min(self.cached);
        // Each entry is passed over at most once.
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

    /// Moves pages from the active to the inactive list while the inactive list is low: below 1 GiB
    /// if it is smaller than the active list, above if it is smaller by a factor of √(10 × GiB).
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
            while moved < RECLAIM_BATCH_PAGES && at.get() < entry.end {
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

    /// Returns the first page that is still in an entry, and its file.
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

    /// Evicts up to `wanted` pages of an entry. Returns false if it passes the entry over.
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

    /// Returns the number of pages from the folio at `page` that form whole folios in the entry,
    /// are not in flight, and would be evicted one after another until `wanted` pages are evicted.
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
        // The last folio may extend beyond `wanted`.
        let last = this.tree.folio(page.plus(Pages::new(most - 1)));
        let end = last.map_or(most, |last| last.end().since(page).get());
        let run = states::settled_run(&this.tree, page, end, id);
        if run == end || run == 0 {
            return run;
        }
        // A folio that is not completely ready is not evicted.
        let cut = this.tree.folio(page.plus(Pages::new(run)));
        cut.map_or(run, |cut| cut.head.since(page).get().min(run))
    }

    /// Returns whether [`Self::balance`] would move no pages while this entry loses up to one folio
    /// more than `wanted` pages.
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

    /// Drops the folios that are completely within `extent`, not in flight, and not in use
    /// according to `is_mapped` (`mapping_try_invalidate`).
    pub(crate) fn drop_pages(
        &mut self,
        file: u32,
        extent: Extent,
        is_mapped: impl Fn(Page) -> bool,
    ) {
        let folios: Vec<Folio> = self.files[file as usize].tree.folios(extent).collect();
        for folio in folios {
            let whole = Extent::new(folio.head, folio.pages());
            let this = &mut self.files[file as usize];
            let id = states::entry(&this.tree, folio.head);
            let inside = extent.start <= folio.head && folio.end() <= extent.end();
            let in_use = (folio.head.get()..folio.end().get()).any(|it| is_mapped(Page::new(it)));
            let pending = states::first_pending(&this.tree, whole).is_some();
            if !inside || in_use || pending || id == EntryId::NONE {
                continue;
            }
            states::leave(&mut this.tree, whole);
            let thrashed = match this.folio_limit.is_none() && whole.pages.get() == 1 {
                true => {
                    let used = this.tree.remove_single(whole.start).unwrap_or(true);
                    Pages::new(u64::from(!used))
                }
                false => this.tree.remove_folios(whole).1,
            };
            this.epoch += 1;
            self.lists.take(id, whole.pages.get());
            self.cached -= whole.pages.get();
            self.counts.evicted += whole.pages;
            self.counts.thrashed += thrashed;
        }
    }

    /// Returns the pages of mapped files that were evicted since the last call.
    pub(crate) fn take_unmapped(&mut self) -> Vec<(u32, Extent)> {
        if self.unmapped.is_empty() { Vec::new() } else { std::mem::take(&mut self.unmapped) }
    }
}
