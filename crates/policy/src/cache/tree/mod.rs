//! The cached pages of a file, structured like the kernel's XArray: leaves of 64 pages, groups of
//! 64 leaves. A leaf consists of bitmaps, so a search or fill processes a whole word of pages at
//! once.

use units::Pages;

use super::leaves::{CHUNK_SHIFT, Leaf, Leaves};
use crate::page::{Extent, Folio, Page};

/// The largest folio order: one PMD of 4 KiB pages.
pub const MAX_ORDER: u8 = 9;

/// Largest file size, 256 TiB. The groups are in a plain array, so a lookup takes two steps.
pub const MAX_FILE: Pages = Pages::new(1 << 36);

/// The smallest order of folios that fill whole leaves.
const LEAF_ORDER: u8 = CHUNK_SHIFT as u8;

/// The cached pages of one file. The owner of the cache may store a state `S` for each 64 pages;
/// the tree does not interpret it.
#[derive(Clone, Debug)]
pub struct PageTree<S = ()> {
    pub(super) leaves: Leaves<S>,
    cached: u64,
}

impl<S> Default for PageTree<S> {
    fn default() -> Self {
        Self { leaves: Leaves::default(), cached: 0 }
    }
}

/// Returns `count` set bits, starting at bit `from`.
#[inline]
fn mask(from: u64, count: u64) -> u64 {
    (if count >= 64 { u64::MAX } else { (1 << count) - 1 }) << from
}

/// Returns the index of a page's leaf, and the page's bit in the leaf.
#[inline]
fn place(page: u64) -> (u64, u64) {
    (page >> CHUNK_SHIFT, page & 63)
}

impl PageTree {
    /// Creates an empty tree.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S: Copy + Default> PageTree<S> {
    /// Returns the owner's state for the 64 pages around `page`, if their leaf is allocated.
    #[inline]
    pub fn state(&self, page: Page) -> Option<&S> {
        self.leaves.get(page.get() >> CHUNK_SHIFT).map(|leaf| &leaf.state)
    }

    /// As [`Self::state`], mutable. The state of pages that are not cached may be lost.
    #[inline]
    pub fn state_mut(&mut self, page: Page) -> Option<&mut S> {
        self.leaves.get_mut(page.get() >> CHUNK_SHIFT).map(|leaf| &mut leaf.state)
    }

    /// Returns the number of cached pages.
    pub fn cached(&self) -> Pages {
        Pages::new(self.cached)
    }

    /// Returns whether `page` is cached.
    #[inline]
    pub fn contains(&self, page: Page) -> bool {
        let (leaf, bit) = place(page.get());
        self.leaves.get(leaf).is_some_and(|leaf| leaf.present >> bit & 1 == 1)
    }

    /// Returns the folio that holds `page`.
    #[inline]
    pub fn folio(&self, page: Page) -> Option<Folio> {
        let (index, bit) = place(page.get());
        let leaf = self.leaves.get(index).filter(|leaf| leaf.present >> bit & 1 == 1)?;
        if leaf.big > 0 {
            let head = index >> (leaf.big - LEAF_ORDER) << (leaf.big - LEAF_ORDER);
            let marked = self.leaves.get(head).is_some_and(|leaf| leaf.marks & 1 == 1);
            return Some(Folio { head: Page::new(head << CHUNK_SHIFT), order: leaf.big, marked });
        }
        // A cached page of a small folio has its head in the same leaf, at or before it.
        let head = 63 - u64::from((leaf.heads & mask(0, bit + 1)).leading_zeros());
        let tail = (leaf.present & !leaf.heads) >> head >> 1;
        let order = (tail.trailing_ones() + 1).ilog2() as u8;
        let marked = leaf.marks >> head & 1 == 1;
        Some(Folio { head: Page::new((index << CHUNK_SHIFT) | head), order, marked })
    }

    /// Returns whether any page of `extent` is cached.
    pub fn overlaps(&self, extent: Extent) -> bool {
        self.absent_run(extent.start, extent.pages) < extent.pages
    }

    /// Returns the number of consecutive uncached pages from `from`, at most `max`.
    #[inline]
    pub fn absent_run(&self, from: Page, max: Pages) -> Pages {
        self.run(from, max, |leaf| leaf.map_or(0, |leaf| leaf.present))
    }

    /// Returns the number of consecutive cached pages from `from`, at most `max`.
    #[inline]
    pub fn present_run(&self, from: Page, max: Pages) -> Pages {
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, |leaf| !leaf.present))
    }

    /// Returns whether `page` is cached and its folio is not marked.
    #[inline]
    pub fn is_plain_hit(&self, page: Page) -> bool {
        let (index, bit) = place(page.get());
        let Some(leaf) = self.leaves.get(index).filter(|leaf| leaf.present >> bit & 1 == 1) else {
            return false;
        };
        if leaf.big == 0 && leaf.marks == 0 {
            return true;
        }
        self.folio(page).is_some_and(|folio| !folio.marked)
    }

    /// Returns the number of consecutive pages from `from`, at most `max`, that are cached and not
    /// marked. A reader of such pages does not call the policy.
    #[inline]
    pub fn plain_hit_run(&self, from: Page, max: Pages) -> Pages {
        self.plain_hit_run_except(from, max, |_| 0)
    }

    /// As [`Self::plain_hit_run`], but ends before the first page whose bit is set in the result of
    /// `stops` for the state of the page's 64 pages.
    #[inline]
    pub fn plain_hit_run_except(&self, from: Page, max: Pages, stops: impl Fn(&S) -> u64) -> Pages {
        if !self.is_plain_hit(from) {
            return Pages::ZERO;
        }
        let stops = |leaf: &Leaf<S>| !leaf.present | leaf.marks | stops(&leaf.state);
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, &stops))
    }

    /// Returns the distance from `from` to the first bit that `stops` sets, at most `max`.
    #[inline]
    fn run(&self, from: Page, max: Pages, stops: impl Fn(Option<&Leaf<S>>) -> u64) -> Pages {
        let (start, max) = (from.get(), max.get());
        let mut done = 0;
        while done < max {
            let Some(page) = start.checked_add(done) else { break };
            let (leaf, bit) = place(page);
            let stop = stops(self.leaves.get(leaf)) >> bit;
            if stop != 0 {
                return Pages::new(max.min(done + u64::from(stop.trailing_zeros())));
            }
            done = done.saturating_add(self.leaves.free_step(page, bit));
        }
        Pages::new(max)
    }

    /// Inserts a folio. Does nothing and returns false if any of its pages is cached or beyond
    /// [`MAX_FILE`], or if it is not aligned.
    pub fn insert(&mut self, folio: Folio) -> bool {
        if folio.order > MAX_ORDER {
            return false;
        }
        let extent = Extent::new(folio.head, folio.pages());
        let aligned = folio.head.get() & (folio.pages().get() - 1) == 0;
        if folio.head.get() >= MAX_FILE.get() || !aligned || self.overlaps(extent) {
            return false;
        }
        let (first, bit) = place(folio.head.get());
        if folio.order < LEAF_ORDER {
            let leaf = self.leaves.occupy(first);
            leaf.present |= mask(bit, folio.pages().get());
            leaf.heads |= 1 << bit;
            leaf.marks |= u64::from(folio.marked) << bit;
        } else {
            for index in first..first + (1 << (folio.order - LEAF_ORDER)) {
                let leaf = self.leaves.occupy(index);
                leaf.present = u64::MAX;
                leaf.big = folio.order;
                leaf.heads = u64::from(index == first);
                leaf.marks = u64::from(index == first && folio.marked);
            }
        }
        self.cached += folio.pages().get();
        true
    }

    /// Inserts unmarked single pages, none of which may be cached already.
    #[inline]
    pub(super) fn insert_run(&mut self, extent: Extent) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        while page < end {
            let (leaf, bit) = place(page);
            let count = (64 - bit).min(end - page);
            let leaf = self.leaves.occupy(leaf);
            leaf.present |= mask(bit, count);
            leaf.heads |= mask(bit, count);
            page += count;
            self.cached += count;
        }
    }

    /// Inserts one unmarked page, the usual case of random reads, and returns its state. Returns
    /// `None` if the page is cached or beyond [`MAX_FILE`].
    #[inline]
    pub fn insert_single(&mut self, page: Page) -> Option<&mut S> {
        let (index, bit) = place(page.get());
        if page.get() >= MAX_FILE.get() || self.contains(page) {
            return None;
        }
        let leaf = self.leaves.occupy(index);
        leaf.present |= 1 << bit;
        leaf.heads |= 1 << bit;
        self.cached += 1;
        Some(&mut leaf.state)
    }

    /// Removes the folio that contains `page`. Only the owner of the cache may call this, not a
    /// policy.
    pub fn remove(&mut self, page: Page) -> Option<Folio> {
        let folio = self.folio(page)?;
        let (first, bit) = place(folio.head.get());
        let leaves = 1 << folio.order.saturating_sub(LEAF_ORDER);
        for index in first..first + leaves {
            self.remove_from_leaf(index, mask(bit, folio.pages().get()));
        }
        self.cached -= folio.pages().get();
        Some(folio)
    }

    /// Removes a page of a file with single pages only. Returns whether it was used, or `None` if
    /// it is not cached.
    pub fn remove_single(&mut self, page: Page) -> Option<bool> {
        let (index, bit) = place(page.get());
        let leaf = self.leaves.get(index).filter(|leaf| leaf.present >> bit & 1 == 1)?;
        let used = leaf.used >> bit & 1 == 1;
        self.remove_from_leaf(index, 1 << bit);
        self.cached -= 1;
        Some(used)
    }

    /// Removes the cached pages of `extent`, which must be whole folios. Returns their number, and
    /// the number of those that were not used.
    pub fn remove_folios(&mut self, extent: Extent) -> (Pages, Pages) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        let (before, mut unused) = (self.cached, 0);
        while page < end {
            let (index, bit) = place(page);
            let count = (64 - bit).min(end - page);
            page += count;
            let out = mask(bit, count);
            let Some(leaf) = self.leaves.get(index).filter(|leaf| leaf.present & out != 0) else {
                continue;
            };
            let removed = leaf.present & out;
            unused += u64::from((removed & !leaf.used).count_ones());
            self.remove_from_leaf(index, out);
            self.cached -= u64::from(removed.count_ones());
        }
        (Pages::new(before - self.cached), Pages::new(unused))
    }

    /// Removes whole folios, at least one page, from a leaf.
    #[inline]
    fn remove_from_leaf(&mut self, index: u64, out: u64) {
        let Some(leaf) = self.leaves.get_mut(index) else { return };
        leaf.present &= !out;
        leaf.heads &= !out;
        leaf.marks &= !out;
        leaf.used &= !out;
        leaf.big = 0;
        if leaf.present == 0 {
            self.leaves.vacate(index);
        }
    }

    /// The number of consecutive pages from `from`, at most `max`, that are cached as single pages.
    #[inline]
    pub fn single_run(&self, from: Page, max: Pages) -> Pages {
        let single = |leaf: &Leaf<S>| leaf.heads & !((leaf.present & !leaf.heads) >> 1);
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, |leaf| !single(leaf)))
    }

    /// Records a use of `page` if it is cached and its folio is not marked. Returns whether it was.
    #[inline]
    pub fn use_plain_hit(&mut self, page: Page) -> bool {
        let (index, bit) = place(page.get());
        let Some(leaf) = self.leaves.get_mut(index) else { return false };
        if leaf.present >> bit & 1 == 0 {
            return false;
        }
        if leaf.big == 0 && leaf.marks == 0 {
            leaf.used |= 1 << bit;
            return true;
        }
        let plain_hit = self.is_plain_hit(page);
        if plain_hit {
            self.set_used(Extent::new(page, Pages::new(1)));
        }
        plain_hit
    }

    /// Sets or clears the mark of the folio that contains `page`.
    pub fn set_mark(&mut self, page: Page, marked: bool) {
        if let Some(folio) = self.folio(page) {
            let (leaf, bit) = place(folio.head.get());
            if let Some(leaf) = self.leaves.get_mut(leaf) {
                leaf.marks = leaf.marks & !(1 << bit) | u64::from(marked) << bit;
            }
        }
    }

    /// Returns whether a reader has used `page` since it was cached.
    pub fn is_used(&self, page: Page) -> bool {
        let (leaf, bit) = place(page.get());
        self.leaves.get(leaf).is_some_and(|leaf| leaf.used >> bit & 1 == 1)
    }

    /// Returns the number of cached pages of `extent`, and the number of those that were not used.
    pub fn unused(&self, extent: Extent) -> (Pages, Pages) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        let (mut cached, mut unused) = (0, 0);
        while page < end {
            let (index, bit) = place(page);
            if bit == 0 && self.leaves.get(index).is_none() {
                page = page.saturating_add(self.leaves.free_step(page, bit));
                continue;
            }
            let count = (64 - bit).min(end - page);
            if let Some(leaf) = self.leaves.get(index) {
                let there = leaf.present & mask(bit, count);
                cached += u64::from(there.count_ones());
                unused += u64::from((there & !leaf.used).count_ones());
            }
            page += count;
        }
        (Pages::new(cached), Pages::new(unused))
    }

    /// Records a use of all cached pages of `extent`.
    #[inline]
    pub fn set_used(&mut self, extent: Extent) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        while page < end {
            let (index, bit) = place(page);
            let count = (64 - bit).min(end - page);
            if let Some(leaf) = self.leaves.get_mut(index) {
                leaf.used |= mask(bit, count) & leaf.present;
            }
            page += count;
        }
    }

    /// Returns all folios that overlap `extent`, in order.
    pub fn folios(&self, extent: Extent) -> impl Iterator<Item = Folio> {
        let mut at = extent.start;
        std::iter::from_fn(move || {
            at = at.plus(self.absent_run(at, extent.end().since(at)));
            let folio = if at < extent.end() { self.folio(at) } else { None }?;
            at = folio.end();
            Some(folio)
        })
    }
}

#[cfg(test)]
mod tests;
