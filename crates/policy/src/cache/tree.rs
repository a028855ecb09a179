//! A file's cached pages in the shape of the kernel's XArray: leaves of 64 pages, groups of 64
//! leaves. A leaf is three bitmaps, so that runs of pages are found and filled by words.

use units::Pages;

use crate::page::{Extent, Folio, Page};

/// The largest order that a folio may have: one PMD of 4 KiB pages.
pub const MAX_ORDER: u8 = 9;

/// The pages of the largest file that a tree takes: 256 TiB. The directory of its groups is a
/// plain array, so that finding a page costs two steps.
pub const MAX_FILE: Pages = Pages::new(1 << 36);

/// Pages of a leaf and leaves of a group, as a power of two (XA_CHUNK_SHIFT).
pub(super) const SHIFT: u32 = 6;
const SLOTS: usize = 1 << SHIFT;
/// The smallest order that takes whole leaves.
const LEAF_ORDER: u8 = SHIFT as u8;

/// 64 pages: which are cached, which begin a folio, which of those are marked, which pages a
/// reader has used. In a line of the processor's cache of its own: who reads at random waits for
/// each of them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Leaf {
    pub(super) present: u64,
    heads: u64,
    marks: u64,
    used: u64,
    /// The order of the folio that this leaf is a part of, where that is of whole leaves; else 0.
    pub(super) big: u8,
}

#[derive(Clone, Debug)]
struct Group {
    leaves: [Leaf; SLOTS],
    /// Leaves that hold any page.
    occupied: u32,
}

impl Group {
    fn empty() -> Box<Self> {
        Box::new(Self { leaves: [Leaf::default(); SLOTS], occupied: 0 })
    }
}

/// The cached pages of one file.
#[derive(Clone, Debug, Default)]
pub struct PageTree {
    groups: Vec<Option<Box<Group>>>,
    cached: u64,
}

/// `count` ones from bit `from` on.
#[inline]
fn mask(from: u64, count: u64) -> u64 {
    (if count >= 64 { u64::MAX } else { (1 << count) - 1 }) << from
}

/// The index of the leaf of a page, and the page's bit in it.
#[inline]
fn place(page: u64) -> (u64, u64) {
    (page >> SHIFT, page & 63)
}

impl PageTree {
    /// A file of which nothing is cached.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many pages are cached.
    pub fn cached(&self) -> Pages {
        Pages::new(self.cached)
    }

    /// Whether `page` is cached.
    #[inline]
    pub fn contains(&self, page: Page) -> bool {
        let (leaf, bit) = place(page.get());
        self.leaf(leaf).is_some_and(|leaf| leaf.present >> bit & 1 == 1)
    }

    /// The folio that holds `page`.
    #[inline]
    pub fn folio(&self, page: Page) -> Option<Folio> {
        let (index, bit) = place(page.get());
        let leaf = self.leaf(index).filter(|leaf| leaf.present >> bit & 1 == 1)?;
        if leaf.big > 0 {
            let head = index >> (leaf.big - LEAF_ORDER) << (leaf.big - LEAF_ORDER);
            let marked = self.leaf(head).is_some_and(|leaf| leaf.marks & 1 == 1);
            return Some(Folio { head: Page::new(head << SHIFT), order: leaf.big, marked });
        }
        // A present page of a small folio has a head at or below it.
        let head = 63 - u64::from((leaf.heads & mask(0, bit + 1)).leading_zeros());
        let tail = (leaf.present & !leaf.heads) >> head >> 1;
        let order = (tail.trailing_ones() + 1).ilog2() as u8;
        let marked = leaf.marks >> head & 1 == 1;
        Some(Folio { head: Page::new((index << SHIFT) | head), order, marked })
    }

    /// Whether any page of `extent` is cached.
    pub fn overlaps(&self, extent: Extent) -> bool {
        self.absent_run(extent.start, extent.pages) < extent.pages
    }

    /// How many pages from `from` on are not cached, looking at `max` at most.
    #[inline]
    pub fn absent_run(&self, from: Page, max: Pages) -> Pages {
        self.run(from, max, |leaf| leaf.map_or(0, |leaf| leaf.present))
    }

    /// How many pages from `from` on are cached, looking at `max` at most.
    #[inline]
    pub fn present_run(&self, from: Page, max: Pages) -> Pages {
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, |leaf| !leaf.present))
    }

    /// Whether `page` is cached and its folio not marked.
    #[inline]
    pub fn is_quiet(&self, page: Page) -> bool {
        let (index, bit) = place(page.get());
        let Some(leaf) = self.leaf(index).filter(|leaf| leaf.present >> bit & 1 == 1) else {
            return false;
        };
        if leaf.big == 0 && leaf.marks == 0 {
            return true;
        }
        self.folio(page).is_some_and(|folio| !folio.marked)
    }

    /// How many pages from `from` on are cached and not marked, looking at `max` at most: what a
    /// reader passes without calling its policy.
    #[inline]
    pub fn quiet_run(&self, from: Page, max: Pages) -> Pages {
        if !self.is_quiet(from) {
            return Pages::ZERO;
        }
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, |leaf| !leaf.present | leaf.marks))
    }

    /// The distance from `from` to the first bit that `stops` sets.
    #[inline]
    fn run(&self, from: Page, max: Pages, stops: impl Fn(Option<&Leaf>) -> u64) -> Pages {
        let (start, max) = (from.get(), max.get());
        let mut done = 0;
        while done < max {
            let Some(page) = start.checked_add(done) else { break };
            let (leaf, bit) = place(page);
            let stop = stops(self.leaf(leaf)) >> bit;
            if stop != 0 {
                return Pages::new(max.min(done + u64::from(stop.trailing_zeros())));
            }
            done = done.saturating_add(self.free_step(page, bit));
        }
        Pages::new(max)
    }

    /// How far a walk that found nothing in a leaf may go on: past groups that do not exist,
    /// and past the last of all.
    #[inline]
    fn free_step(&self, page: u64, bit: u64) -> u64 {
        let group = page >> (2 * SHIFT);
        if group >= self.groups.len() as u64 {
            u64::MAX - page
        } else if self.group(group).is_some() {
            64 - bit
        } else {
            4096 - (page & 4095)
        }
    }

    /// Puts in a folio, unless any of its pages is cached or beyond [`MAX_FILE`], or it is not
    /// aligned: then nothing.
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
            let leaf = self.leaf_mut(first);
            leaf.present |= mask(bit, folio.pages().get());
            leaf.heads |= 1 << bit;
            leaf.marks |= u64::from(folio.marked) << bit;
        } else {
            for index in first..first + (1 << (folio.order - LEAF_ORDER)) {
                let leaf = self.leaf_mut(index);
                leaf.present = u64::MAX;
                leaf.big = folio.order;
                leaf.heads = u64::from(index == first);
                leaf.marks = u64::from(index == first && folio.marked);
            }
        }
        self.cached += folio.pages().get();
        true
    }

    /// Puts in single pages, all of them unmarked; the caller knows that none is cached.
    #[inline]
    pub(super) fn insert_run(&mut self, extent: Extent) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        while page < end {
            let (leaf, bit) = place(page);
            let count = (64 - bit).min(end - page);
            let leaf = self.leaf_mut(leaf);
            leaf.present |= mask(bit, count);
            leaf.heads |= mask(bit, count);
            page += count;
            self.cached += count;
        }
    }

    /// Puts in one page, unmarked, unless it is cached or beyond [`MAX_FILE`]: most that is read at
    /// random is not more.
    #[inline]
    pub fn insert_single(&mut self, page: Page) -> bool {
        let (index, bit) = place(page.get());
        if page.get() >= MAX_FILE.get() || self.contains(page) {
            return false;
        }
        let leaf = self.leaf_mut(index);
        leaf.present |= 1 << bit;
        leaf.heads |= 1 << bit;
        self.cached += 1;
        true
    }

    /// Takes out the folio that holds `page`, for the cache's owner: policies cannot.
    pub fn remove(&mut self, page: Page) -> Option<Folio> {
        let folio = self.folio(page)?;
        let (first, bit) = place(folio.head.get());
        let leaves = 1 << folio.order.saturating_sub(LEAF_ORDER);
        for index in first..first + leaves {
            let keep = if folio.order < LEAF_ORDER { !mask(bit, folio.pages().get()) } else { 0 };
            let leaf = self.leaf_mut(index);
            leaf.present &= keep;
            leaf.heads &= keep;
            leaf.marks &= keep;
            leaf.used &= keep;
            leaf.big = 0;
            let empty = leaf.present == 0;
            self.forget(index, empty);
        }
        self.cached -= folio.pages().get();
        Some(folio)
    }

    /// Takes out a page, where all folios of the file are single pages, and says whether a reader
    /// had used it; `None` if it is not cached.
    pub fn remove_single(&mut self, page: Page) -> Option<bool> {
        let (index, bit) = place(page.get());
        let group = self.groups.get_mut((index >> SHIFT) as usize)?.as_deref_mut()?;
        let leaf = &mut group.leaves[(index & 63) as usize];
        if leaf.present >> bit & 1 == 0 {
            return None;
        }
        let (used, out) = (leaf.used >> bit & 1 == 1, !(1 << bit));
        leaf.present &= out;
        leaf.heads &= out;
        leaf.marks &= out;
        leaf.used &= out;
        let empty = leaf.present == 0;
        self.cached -= 1;
        self.forget(index, empty);
        Some(used)
    }

    /// Takes out the pages of `extent` that are cached, which must be whole folios, and says how
    /// many there were, and how many of those no reader had used.
    pub fn remove_folios(&mut self, extent: Extent) -> (Pages, Pages) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        let (before, mut unused) = (self.cached, 0);
        while page < end {
            let (index, bit) = place(page);
            let count = (64 - bit).min(end - page);
            page += count;
            let out = mask(bit, count);
            if self.leaf(index).is_none_or(|leaf| leaf.present & out == 0) {
                continue;
            }
            let leaf = self.leaf_mut(index);
            let removed = leaf.present & out;
            unused += u64::from((removed & !leaf.used).count_ones());
            leaf.present &= !out;
            leaf.heads &= !out;
            leaf.marks &= !out;
            leaf.used &= !out;
            leaf.big = 0;
            let empty = leaf.present == 0;
            self.cached -= u64::from(removed.count_ones());
            self.forget(index, empty);
        }
        (Pages::new(before - self.cached), Pages::new(unused))
    }

    /// How many pages from `from` on are cached as folios of one page, looking at `max` at most.
    #[inline]
    pub fn single_run(&self, from: Page, max: Pages) -> Pages {
        let single = |leaf: &Leaf| leaf.heads & !((leaf.present & !leaf.heads) >> 1);
        self.run(from, max, |leaf| leaf.map_or(u64::MAX, |leaf| !single(leaf)))
    }

    /// Notes that a reader has used `page` if it is cached and its folio not marked; whether it
    /// is.
    #[inline]
    pub fn use_quiet(&mut self, page: Page) -> bool {
        let (index, bit) = place(page.get());
        let Some(Some(group)) = self.groups.get_mut((index >> SHIFT) as usize) else {
            return false;
        };
        let leaf = &mut group.leaves[(index & 63) as usize];
        if leaf.present >> bit & 1 == 0 {
            return false;
        }
        if leaf.big == 0 && leaf.marks == 0 {
            leaf.used |= 1 << bit;
            return true;
        }
        let quiet = self.is_quiet(page);
        if quiet {
            self.set_used(Extent::new(page, Pages::new(1)));
        }
        quiet
    }

    /// Sets or clears the mark of the folio that holds `page`.
    pub fn set_mark(&mut self, page: Page, marked: bool) {
        if let Some(folio) = self.folio(page) {
            let (leaf, bit) = place(folio.head.get());
            let leaf = self.leaf_mut(leaf);
            leaf.marks = leaf.marks & !(1 << bit) | u64::from(marked) << bit;
        }
    }

    /// Whether a reader has used `page` since it was cached.
    pub fn is_used(&self, page: Page) -> bool {
        let (leaf, bit) = place(page.get());
        self.leaf(leaf).is_some_and(|leaf| leaf.used >> bit & 1 == 1)
    }

    /// How many pages of `extent` are cached, and how many of those no reader has used.
    pub fn unused(&self, extent: Extent) -> (Pages, Pages) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        let (mut cached, mut unused) = (0, 0);
        while page < end {
            let (index, bit) = place(page);
            if bit == 0 && self.group(index >> SHIFT).is_none() {
                page = page.saturating_add(self.free_step(page, bit));
                continue;
            }
            let count = (64 - bit).min(end - page);
            if let Some(leaf) = self.leaf(index) {
                let there = leaf.present & mask(bit, count);
                cached += u64::from(there.count_ones());
                unused += u64::from((there & !leaf.used).count_ones());
            }
            page += count;
        }
        (Pages::new(cached), Pages::new(unused))
    }

    /// Notes that a reader has used the cached pages of `extent`.
    #[inline]
    pub fn set_used(&mut self, extent: Extent) {
        let (mut page, end) = (extent.start.get(), extent.end().get().min(MAX_FILE.get()));
        while page < end {
            let (index, bit) = place(page);
            let count = (64 - bit).min(end - page);
            if let Some(leaf) = self.known_mut(index) {
                leaf.used |= mask(bit, count) & leaf.present;
            }
            page += count;
        }
    }

    /// Every folio that touches `extent`, in order.
    pub fn folios(&self, extent: Extent) -> impl Iterator<Item = Folio> {
        let mut at = extent.start;
        std::iter::from_fn(move || {
            at = at.plus(self.absent_run(at, extent.end().since(at)));
            let folio = if at < extent.end() { self.folio(at) } else { None }?;
            at = folio.end();
            Some(folio)
        })
    }

    #[inline]
    fn group(&self, index: u64) -> Option<&Group> {
        self.groups.get(usize::try_from(index).ok()?)?.as_deref()
    }

    #[inline]
    pub(super) fn leaf(&self, index: u64) -> Option<&Leaf> {
        self.group(index >> SHIFT).map(|group| &group.leaves[(index & 63) as usize])
    }

    /// A leaf to change, if there is its group.
    #[inline]
    fn known_mut(&mut self, index: u64) -> Option<&mut Leaf> {
        let group = self.groups.get_mut((index >> SHIFT) as usize)?.as_deref_mut()?;
        Some(&mut group.leaves[(index & 63) as usize])
    }

    /// Whether any page of the groups `[first, first + count)` is cached.
    pub(super) fn any_group(&self, first: u64, count: u64) -> bool {
        let known = self.groups.len() as u64;
        let end = first.saturating_add(count).min(known);
        (first..end).any(|index| self.group(index).is_some())
    }

    /// The leaf, made if there is none, and counted as occupied: the caller puts pages into it.
    #[inline]
    fn leaf_mut(&mut self, index: u64) -> &mut Leaf {
        let group = (index >> SHIFT) as usize;
        if self.groups.len() <= group {
            self.groups.resize(group + 1, None);
        }
        let group = self.groups[group].get_or_insert_with(Group::empty);
        let leaf = (index & 63) as usize;
        group.occupied += u32::from(group.leaves[leaf].present == 0);
        &mut group.leaves[leaf]
    }

    /// Drops the count of a leaf that has become empty, and its group with the last.
    fn forget(&mut self, leaf: u64, empty: bool) {
        let slot = &mut self.groups[(leaf >> SHIFT) as usize];
        if let Some(group) = slot.as_mut().filter(|_| empty) {
            group.occupied -= 1;
            if group.occupied == 0 {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folio(head: u64, order: u8) -> Folio {
        Folio { head: Page::new(head), order, marked: false }
    }

    #[test]
    fn finds_the_folio_of_each_page() {
        let mut tree = PageTree::new();
        for (head, order) in [(4, 2), (8, 0), (9, 0), (16, 4), (63, 0), (64, 6), (512, 9)] {
            assert!(tree.insert(folio(head, order)));
            for page in head..head + (1 << order) {
                assert_eq!(tree.folio(Page::new(page)), Some(folio(head, order)), "page {page}");
            }
        }
        assert_eq!(tree.cached(), Pages::new(4 + 1 + 1 + 16 + 1 + 64 + 512));
        assert_eq!(tree.folio(Page::new(10)), None);
        assert_eq!(tree.folios(Extent::new(Page::FIRST, Pages::new(2000))).count(), 7);
    }

    #[test]
    fn refuses_what_overlaps_or_is_not_aligned() {
        let mut tree = PageTree::new();
        assert!(tree.insert(folio(70, 0)));
        assert!(!tree.insert(folio(64, 3)));
        assert!(!tree.insert(folio(64, 6)));
        assert!(!tree.insert(folio(2, 2)));
        assert!(!tree.insert(folio(0, MAX_ORDER + 1)));
        assert!(tree.insert(folio(64, 2)));
        assert_eq!(tree.cached(), Pages::new(5));
    }

    #[test]
    fn removing_gives_back_the_whole_folio_and_its_mark() {
        let mut tree = PageTree::new();
        let marked = Folio { marked: true, ..folio(128, 7) };
        assert!(tree.insert(marked));
        tree.set_mark(Page::new(200), false);
        assert_eq!(tree.folio(Page::new(130)), Some(folio(128, 7)));
        tree.set_mark(Page::new(255), true);
        assert_eq!(tree.remove(Page::new(190)), Some(marked));
        assert_eq!(tree.remove(Page::new(190)), None);
        assert_eq!(tree.cached(), Pages::ZERO);
        assert!(!tree.any_group(0, 1));
    }

    #[test]
    fn only_cached_pages_can_have_been_used() {
        let mut tree = PageTree::new();
        tree.insert_run(Extent::new(Page::new(60), Pages::new(6)));
        tree.set_used(Extent::new(Page::new(58), Pages::new(5)));
        let used: Vec<_> = (50..70).filter(|&page| tree.is_used(Page::new(page))).collect();
        assert_eq!(used, [60, 61, 62]);
        tree.remove(Page::new(61));
        tree.insert(folio(61, 0));
        assert!(!tree.is_used(Page::new(61)));
    }

    #[test]
    fn single_pages_are_removed_by_the_run() {
        let mut tree = PageTree::new();
        tree.insert_run(Extent::new(Page::new(4000), Pages::new(300)));
        tree.set_used(Extent::new(Page::new(4000), Pages::new(100)));
        let all = Extent::new(Page::FIRST, Pages::new(1 << 20));
        assert_eq!(tree.unused(all), (Pages::new(300), Pages::new(200)));
        assert_eq!(tree.remove_single(Page::new(3999)), None);
        let mut other = tree.clone();
        assert_eq!(other.remove_single(Page::new(4050)), Some(true));
        assert_eq!(other.remove_single(Page::new(4299)), Some(false));
        assert_eq!(other.cached(), Pages::new(298));
        let (gone, unused) = tree.remove_folios(Extent::new(Page::new(3000), Pages::new(1050)));
        assert_eq!((gone, unused, tree.cached()), (Pages::new(50), Pages::ZERO, Pages::new(250)));
        assert_eq!(tree.absent_run(Page::FIRST, Pages::new(1 << 20)), Pages::new(4050));
        assert_eq!(tree.remove_folios(all), (Pages::new(250), Pages::new(200)));
        assert!(!tree.any_group(0, 100) && !tree.is_used(Page::new(4060)));
    }

    #[test]
    fn whole_folios_are_removed_by_the_run() {
        let mut tree = PageTree::new();
        for (head, order) in [(60, 2), (64, 6), (128, 0), (129, 0), (130, 1), (512, 9)] {
            assert!(tree.insert(folio(head, order)));
        }
        let singles = |from| tree.single_run(Page::new(from), Pages::new(9)).get();
        assert_eq!((singles(60), singles(64), singles(128), singles(129)), (0, 0, 2, 1));
        tree.set_used(Extent::new(Page::new(62), Pages::new(10)));
        let gone = tree.remove_folios(Extent::new(Page::new(60), Pages::new(70)));
        assert_eq!(gone, (Pages::new(70), Pages::new(60)));
        assert_eq!(tree.folio(Page::new(130)), Some(folio(130, 1)));
        assert!(tree.insert(folio(64, 6)), "nothing is left of what was there");
        tree.remove_folios(Extent::new(Page::new(512), Pages::new(512)));
        assert!(tree.insert(folio(520, 0)));
        assert_eq!(tree.folio(Page::new(520)), Some(folio(520, 0)));
    }

    #[test]
    fn only_unmarked_pages_are_used_without_ado() {
        let mut tree = PageTree::new();
        tree.insert_run(Extent::new(Page::new(10), Pages::new(3)));
        tree.set_mark(Page::new(11), true);
        let quiet: Vec<_> = (9..14).map(|page| tree.use_quiet(Page::new(page))).collect();
        assert_eq!(quiet, [false, true, false, true, false]);
        assert!(tree.is_used(Page::new(10)) && !tree.is_used(Page::new(11)));
    }

    #[test]
    fn runs_cross_leaves_and_groups() {
        let mut tree = PageTree::new();
        tree.insert_run(Extent::new(Page::new(4000), Pages::new(300)));
        let run = |from, max| tree.present_run(Page::new(from), Pages::new(max)).get();
        assert_eq!((run(4000, 1000), run(4100, 10), run(3999, 5)), (300, 10, 0));
        let gap = |from, max| tree.absent_run(Page::new(from), Pages::new(max)).get();
        assert_eq!((gap(0, 1 << 40), gap(4299, 9), gap(4300, 1 << 40)), (4000, 0, 1 << 40));
        tree.set_mark(Page::new(4200), true);
        assert_eq!(tree.quiet_run(Page::new(4000), Pages::new(900)), Pages::new(200));
        assert_eq!(tree.quiet_run(Page::new(4200), Pages::new(900)), Pages::ZERO);
    }
}
