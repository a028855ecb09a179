//! What the simulator knows of cached pages besides what a policy's tree does: which are still on
//! their way, which were referenced, and their places in the lists.

use policy::{Extent, Page};

use super::lists::EntryId;

/// Pages of a leaf, as a power of two.
const SHIFT: u32 = 6;
/// Leaves of a group, likewise: so many that a group comes as untouched memory, of which only what
/// is written to is ever there.
const GROUP: u32 = 10;

/// What is known of 64 pages.
#[derive(Clone, Copy, Default)]
struct Leaf {
    pending: u64,
    referenced: u64,
}

/// 256 MiB of a file.
struct Group {
    leaves: Vec<Leaf>,
    /// By page; zeroes mean none ([`EntryId::word`]).
    entries: Vec<u32>,
    /// Pages cached.
    cached: u64,
}

/// What is known of one file's cached pages; of others it says nothing of use.
#[derive(Default)]
pub(super) struct PageStates {
    groups: Vec<Option<Group>>,
}

impl Group {
    fn empty() -> Self {
        let leaf = Leaf::default();
        Self { leaves: vec![leaf; 1 << GROUP], entries: vec![0; 1 << (GROUP + SHIFT)], cached: 0 }
    }
}

/// `count` ones from bit `from` on.
#[inline]
fn mask(from: u64, count: u64) -> u64 {
    (if count >= 64 { u64::MAX } else { (1 << count) - 1 }) << from
}

/// The parts of an extent that lie in one leaf each: leaf, first bit, number of bits.
#[inline]
fn parts(extent: Extent) -> impl Iterator<Item = (u64, u64, u64)> {
    let (mut page, end) = (extent.start.get(), extent.end().get());
    std::iter::from_fn(move || {
        if page >= end {
            return None;
        }
        let (leaf, bit) = (page >> SHIFT, page & 63);
        let count = (64 - bit).min(end - page);
        page += count;
        Some((leaf, bit, count))
    })
}

/// The place of a leaf within its group.
fn slot(leaf: u64) -> usize {
    (leaf & ((1 << GROUP) - 1)) as usize
}

/// The places of `count` pages of a leaf within its group.
fn places(leaf: u64, bit: u64, count: u64) -> std::ops::Range<usize> {
    let first = (slot(leaf) << SHIFT) + bit as usize;
    first..first + count as usize
}

impl PageStates {
    #[inline]
    fn group(&self, leaf: u64) -> Option<&Group> {
        self.groups.get((leaf >> GROUP) as usize)?.as_ref()
    }

    #[inline]
    fn group_mut(&mut self, leaf: u64) -> Option<&mut Group> {
        self.groups.get_mut((leaf >> GROUP) as usize)?.as_mut()
    }

    #[inline]
    fn group_or_new(&mut self, leaf: u64) -> &mut Group {
        let place = (leaf >> GROUP) as usize;
        if self.groups.len() <= place {
            self.groups.resize_with(place + 1, || None);
        }
        self.groups[place].get_or_insert_with(Group::empty)
    }

    #[inline]
    fn leaf(&self, index: u64) -> Option<&Leaf> {
        self.group(index).map(|group| &group.leaves[slot(index)])
    }

    #[inline]
    fn leaf_mut(&mut self, index: u64) -> Option<&mut Leaf> {
        self.group_mut(index).map(|group| &mut group.leaves[slot(index)])
    }

    /// Pages enter the cache: on their way, not referenced, in this entry of a list.
    #[inline]
    pub(super) fn enter(&mut self, extent: Extent, entry: EntryId) {
        for (index, bit, count) in parts(extent) {
            let group = self.group_or_new(index);
            group.cached += count;
            let leaf = &mut group.leaves[slot(index)];
            leaf.pending |= mask(bit, count);
            leaf.referenced &= !mask(bit, count);
            group.entries[places(index, bit, count)].fill(entry.word());
        }
    }

    /// The same of one page.
    #[inline]
    pub(super) fn enter_single(&mut self, page: Page, entry: EntryId) {
        let (index, bit) = (page.get() >> SHIFT, page.get() & 63);
        let group = self.group_or_new(index);
        group.cached += 1;
        let leaf = &mut group.leaves[slot(index)];
        leaf.pending |= 1 << bit;
        leaf.referenced &= !(1 << bit);
        group.entries[places(index, bit, 1).start] = entry.word();
    }

    /// Cached pages leave.
    pub(super) fn leave(&mut self, extent: Extent) {
        for (index, bit, count) in parts(extent) {
            let Some(kept) = self.groups.get_mut((index >> GROUP) as usize) else { return };
            let Some(group) = kept else { continue };
            group.cached -= count.min(group.cached);
            if group.cached == 0 {
                *kept = None;
                continue;
            }
            // The entry that they were in may stay written down: nobody looks for it again.
            group.leaves[slot(index)].referenced &= !mask(bit, count);
        }
    }

    /// Cached pages move to another entry.
    pub(super) fn relabel(&mut self, extent: Extent, entry: EntryId) {
        for (index, bit, count) in parts(extent) {
            if let Some(group) = self.group_mut(index) {
                group.entries[places(index, bit, count)].fill(entry.word());
            }
        }
    }

    /// The entry that a cached page is in.
    #[inline]
    pub(super) fn entry(&self, page: Page) -> EntryId {
        let (leaf, bit) = (page.get() >> SHIFT, page.get() & 63);
        let group = self.group(leaf);
        group.map_or(EntryId::NONE, |group| {
            EntryId::of_word(group.entries[places(leaf, bit, 1).start])
        })
    }

    /// Pages have arrived.
    #[inline]
    pub(super) fn arrive(&mut self, extent: Extent) {
        for (index, bit, count) in parts(extent) {
            if let Some(leaf) = self.leaf_mut(index) {
                leaf.pending &= !mask(bit, count);
            }
        }
    }

    /// The first page of `extent` that is on its way.
    #[inline]
    pub(super) fn first_pending(&self, extent: Extent) -> Option<Page> {
        if extent.pages.get() == 1 {
            return self.is_pending(extent.start).then_some(extent.start);
        }
        parts(extent).find_map(|(index, bit, count)| {
            let pending = self.leaf(index)?.pending & mask(bit, count);
            (pending != 0)
                .then(|| Page::new((index << SHIFT) + u64::from(pending.trailing_zeros())))
        })
    }

    /// Whether a page is on its way.
    #[inline]
    pub(super) fn is_pending(&self, page: Page) -> bool {
        self.leaf(page.get() >> SHIFT)
            .is_some_and(|leaf| leaf.pending >> (page.get() & 63) & 1 == 1)
    }

    /// Notes that the pages of `extent` are referenced; calls back with runs of those that were
    /// before, and says how many were not.
    #[inline]
    pub(super) fn reference(&mut self, extent: Extent, again: &mut Vec<Page>) -> u64 {
        let mut first = 0;
        for (index, bit, count) in parts(extent) {
            let Some(leaf) = self.leaf_mut(index) else { continue };
            let all = mask(bit, count);
            let mut before = leaf.referenced & all;
            leaf.referenced |= all;
            first += u64::from((all & !before).count_ones());
            while before != 0 {
                again.push(Page::new((index << SHIFT) + u64::from(before.trailing_zeros())));
                before &= before - 1;
            }
        }
        first
    }

    /// Notes that a page is referenced; whether it was before, if it is known.
    #[inline]
    pub(super) fn reference_single(&mut self, page: Page) -> Option<bool> {
        let leaf = self.leaf_mut(page.get() >> SHIFT)?;
        let bit = 1 << (page.get() & 63);
        let before = leaf.referenced & bit != 0;
        leaf.referenced |= bit;
        Some(before)
    }

    /// Takes back that a page is referenced.
    pub(super) fn forget_reference(&mut self, page: Page) {
        if let Some(leaf) = self.leaf_mut(page.get() >> SHIFT) {
            leaf.referenced &= !(1 << (page.get() & 63));
        }
    }

    /// How many pages from `from` on are in `entry` and not on their way, looking at `max` at
    /// most.
    pub(super) fn settled_run(&self, from: Page, max: u64, entry: EntryId) -> u64 {
        let mut run = 0;
        for (index, bit, count) in parts(Extent::new(from, units::Pages::new(max))) {
            let Some(group) = self.group(index) else { return run };
            let places = &group.entries[places(index, bit, count)];
            let other = |place: &u32| *place != entry.word();
            let own = places.iter().position(other).unwrap_or(places.len());
            let settled = u64::from((group.leaves[slot(index)].pending >> bit).trailing_zeros());
            let here = settled.min(own as u64);
            run += here.min(count);
            if here < count {
                return run;
            }
        }
        run
    }
}
