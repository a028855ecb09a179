//! The simulator's state of cached pages, besides that of a policy's tree: which are in flight,
//! which were referenced, and their entries in the lists.
//!
//! The state is stored in the leaves of the tree. For pages that are not cached, it is valid only
//! in that they are in no entry.

use policy::{Extent, Page, PageTree};
use units::Pages;

use super::lists::EntryId;

const LEAF_PAGES: u64 = 64;

/// The cached pages of a file with their states.
pub(crate) type StateTree = PageTree<States>;

/// State of 64 pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct States {
    pub(super) pending: u64,
    referenced: u64,
    /// List entry of each page; zero means none ([`EntryId::word`]).
    entries: [u32; LEAF_PAGES as usize],
}

impl Default for States {
    fn default() -> Self {
        Self { pending: 0, referenced: 0, entries: [0; LEAF_PAGES as usize] }
    }
}

/// Returns `count` set bits, starting at bit `from`.
#[inline]
fn mask(from: u64, count: u64) -> u64 {
    (if count >= LEAF_PAGES { u64::MAX } else { (1 << count) - 1 }) << from
}

/// Returns the position of a page in its leaf.
#[inline]
fn bit(page: Page) -> u64 {
    page.get() % LEAF_PAGES
}

/// Splits an extent into parts within one leaf each: first page, its bit, number of pages.
#[inline]
fn parts(extent: Extent) -> impl Iterator<Item = (Page, u64, u64)> {
    let (mut page, end) = (extent.start.get(), extent.end().get());
    std::iter::from_fn(move || {
        if page >= end {
            return None;
        }
        let (first, bit) = (page, page % LEAF_PAGES);
        let count = (LEAF_PAGES - bit).min(end - page);
        page += count;
        Some((Page::new(first), bit, count))
    })
}

impl States {
    #[inline]
    fn label(&mut self, bit: u64, count: u64, entry: EntryId) {
        self.entries[bit as usize..(bit + count) as usize].fill(entry.word());
    }

    /// Records that a page enters the cache: in flight, not referenced, in this entry of a list.
    #[inline]
    pub(super) fn enter(&mut self, page: Page, entry: EntryId) {
        let bit = bit(page);
        self.pending |= 1 << bit;
        self.referenced &= !(1 << bit);
        self.entries[bit as usize] = entry.word();
    }
}

/// As [`States::enter`], for many pages.
#[inline]
pub(super) fn enter(tree: &mut StateTree, extent: Extent, entry: EntryId) {
    for (page, bit, count) in parts(extent) {
        let Some(states) = tree.state_mut(page) else { continue };
        states.pending |= mask(bit, count);
        states.referenced &= !mask(bit, count);
        states.label(bit, count, entry);
    }
}

/// Records that cached pages leave. Must be called before the tree removes them.
pub(super) fn leave(tree: &mut StateTree, extent: Extent) {
    for (page, bit, count) in parts(extent) {
        let Some(states) = tree.state_mut(page) else { continue };
        states.referenced &= !mask(bit, count);
        states.label(bit, count, EntryId::NONE);
    }
}

/// Records that cached pages move to another entry.
pub(super) fn relabel(tree: &mut StateTree, extent: Extent, entry: EntryId) {
    for (page, bit, count) in parts(extent) {
        if let Some(states) = tree.state_mut(page) {
            states.label(bit, count, entry);
        }
    }
}

/// Prefetches the two cache lines that are read or written for a page, without waiting for them if
/// the processor supports that.
#[inline]
pub(super) fn fetch(tree: &StateTree, page: Page) {
    if let Some(states) = tree.state(page) {
        #[cfg(target_arch = "x86_64")]
        {
            safe_arch::prefetch_t0(&states.pending);
            safe_arch::prefetch_t0(&states.entries[bit(page) as usize]);
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::hint::black_box((states.pending, states.entries[bit(page) as usize]));
    }
}

/// Returns the entry of a cached page.
#[inline]
pub(super) fn entry(tree: &StateTree, page: Page) -> EntryId {
    let states = tree.state(page);
    states.map_or(EntryId::NONE, |states| EntryId::of_word(states.entries[bit(page) as usize]))
}

#[inline]
pub(super) fn arrive(tree: &mut StateTree, extent: Extent) {
    for (page, bit, count) in parts(extent) {
        if let Some(states) = tree.state_mut(page) {
            states.pending &= !mask(bit, count);
        }
    }
}

/// Returns the first page of `extent` that is in flight.
#[inline]
pub(super) fn first_pending(tree: &StateTree, extent: Extent) -> Option<Page> {
    if extent.pages.get() == 1 {
        return is_pending(tree, extent.start).then_some(extent.start);
    }
    parts(extent).find_map(|(page, bit, count)| {
        let pending = tree.state(page)?.pending & mask(bit, count);
        let after = u64::from(pending.trailing_zeros()).checked_sub(bit)?;
        (pending != 0).then(|| page.plus(Pages::new(after)))
    })
}

/// Returns whether a page is in flight.
#[inline]
pub(super) fn is_pending(tree: &StateTree, page: Page) -> bool {
    tree.state(page).is_some_and(|states| states.pending >> bit(page) & 1 == 1)
}

/// Records a reference to the pages of `extent`. Appends those that were referenced before to
/// `again`, and returns the number of the others.
#[inline]
pub(super) fn reference(tree: &mut StateTree, extent: Extent, again: &mut Vec<Page>) -> u64 {
    let mut first = 0;
    for (page, bit, count) in parts(extent) {
        let Some(states) = tree.state_mut(page) else { continue };
        let all = mask(bit, count);
        let mut before = states.referenced & all;
        states.referenced |= all;
        first += u64::from((all & !before).count_ones());
        while before != 0 {
            again.push(page.plus(Pages::new(u64::from(before.trailing_zeros()) - bit)));
            before &= before - 1;
        }
    }
    first
}

/// Records a reference to a page. Returns whether it was referenced before, if its state is known.
#[inline]
pub(super) fn reference_single(tree: &mut StateTree, page: Page) -> Option<bool> {
    let states = tree.state_mut(page)?;
    let bit = 1 << bit(page);
    let before = states.referenced & bit != 0;
    states.referenced |= bit;
    Some(before)
}

/// Clears the reference to a page.
pub(super) fn forget_reference(tree: &mut StateTree, page: Page) {
    if let Some(states) = tree.state_mut(page) {
        states.referenced &= !(1 << bit(page));
    }
}

/// Returns the number of pages from `from`, at most `max`, that are in `entry` and not in flight.
pub(super) fn settled_run(tree: &StateTree, from: Page, max: u64, entry: EntryId) -> u64 {
    let mut run = 0;
    for (page, bit, count) in parts(Extent::new(from, Pages::new(max))) {
        let Some(states) = tree.state(page) else { return run };
        let places = &states.entries[bit as usize..(bit + count) as usize];
        let other = |place: &u32| *place != entry.word();
        let own = places.iter().position(other).unwrap_or(places.len());
        let settled = u64::from((states.pending >> bit).trailing_zeros());
        let here = settled.min(own as u64);
        run += here.min(count);
        if here < count {
            return run;
        }
    }
    run
}
