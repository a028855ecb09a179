//! What the simulator knows of cached pages besides what a policy's tree does: which are still on
//! their way, which were referenced, and their places in the lists.

use policy::{Extent, Page};

use super::lists::EntryId;

/// Pages of a leaf and leaves of a group, as a power of two: the shape of the policy's tree.
const SHIFT: u32 = 6;
const SLOTS: usize = 1 << SHIFT;

/// 64 pages.
#[derive(Clone, Copy)]
struct Leaf {
    pending: u64,
    referenced: u64,
    entry: [EntryId; SLOTS],
}

struct Group {
    leaves: [Leaf; SLOTS],
    /// Pages cached.
    cached: u64,
}

/// What is known of one file's cached pages; of others it says nothing of use.
#[derive(Default)]
pub(super) struct PageStates {
    groups: Vec<Option<Box<Group>>>,
}

/// `count` ones from bit `from` on.
fn mask(from: u64, count: u64) -> u64 {
    (if count >= 64 { u64::MAX } else { (1 << count) - 1 }) << from
}

/// The parts of an extent that lie in one leaf each: leaf, first bit, number of bits.
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

impl PageStates {
    #[inline]
    fn leaf(&self, index: u64) -> Option<&Leaf> {
        let group = self.groups.get((index >> SHIFT) as usize)?.as_deref()?;
        Some(&group.leaves[(index & 63) as usize])
    }

    #[inline]
    fn leaf_mut(&mut self, index: u64) -> Option<&mut Leaf> {
        let group = self.groups.get_mut((index >> SHIFT) as usize)?.as_deref_mut()?;
        Some(&mut group.leaves[(index & 63) as usize])
    }

    /// Pages enter the cache: on their way, not referenced, in this entry of a list.
    pub(super) fn enter(&mut self, extent: Extent, entry: EntryId) {
        for (index, bit, count) in parts(extent) {
            let place = (index >> SHIFT) as usize;
            if self.groups.len() <= place {
                self.groups.resize_with(place + 1, || None);
            }
            let group = self.groups[place].get_or_insert_with(|| {
                let leaf = Leaf { pending: 0, referenced: 0, entry: [EntryId::NONE; SLOTS] };
                Box::new(Group { leaves: [leaf; SLOTS], cached: 0 })
            });
            group.cached += count;
            let leaf = &mut group.leaves[(index & 63) as usize];
            leaf.pending |= mask(bit, count);
            leaf.referenced &= !mask(bit, count);
            leaf.entry[bit as usize..(bit + count) as usize].fill(entry);
        }
    }

    /// Cached pages leave.
    pub(super) fn leave(&mut self, extent: Extent) {
        for (index, bit, count) in parts(extent) {
            let Some(slot) = self.groups.get_mut((index >> SHIFT) as usize) else { return };
            let Some(group) = slot else { continue };
            group.cached -= count.min(group.cached);
            if group.cached == 0 {
                *slot = None;
                continue;
            }
            let leaf = &mut group.leaves[(index & 63) as usize];
            leaf.referenced &= !mask(bit, count);
            leaf.entry[bit as usize..(bit + count) as usize].fill(EntryId::NONE);
        }
    }

    /// Cached pages move to another entry.
    pub(super) fn relabel(&mut self, extent: Extent, entry: EntryId) {
        for (index, bit, count) in parts(extent) {
            if let Some(leaf) = self.leaf_mut(index) {
                leaf.entry[bit as usize..(bit + count) as usize].fill(entry);
            }
        }
    }

    /// A cached page moves to another entry.
    #[inline]
    pub(super) fn relabel_one(&mut self, page: Page, entry: EntryId) {
        if let Some(leaf) = self.leaf_mut(page.get() >> SHIFT) {
            leaf.entry[(page.get() & 63) as usize] = entry;
        }
    }

    /// The entry that a page is in.
    #[inline]
    pub(super) fn entry(&self, page: Page) -> EntryId {
        let leaf = self.leaf(page.get() >> SHIFT);
        leaf.map_or(EntryId::NONE, |leaf| leaf.entry[(page.get() & 63) as usize])
    }

    /// Pages have arrived.
    pub(super) fn arrive(&mut self, extent: Extent) {
        for (index, bit, count) in parts(extent) {
            if let Some(leaf) = self.leaf_mut(index) {
                leaf.pending &= !mask(bit, count);
            }
        }
    }

    /// The first page of `extent` that is on its way.
    pub(super) fn first_pending(&self, extent: Extent) -> Option<Page> {
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
            let Some(leaf) = self.leaf(index) else { return run };
            let places = &leaf.entry[bit as usize..(bit + count) as usize];
            let own = places.iter().position(|place| *place != entry).unwrap_or(places.len());
            let settled = u64::from((leaf.pending >> bit).trailing_zeros());
            let here = settled.min(own as u64);
            run += here.min(count);
            if here < count {
                return run;
            }
        }
        run
    }
}
