//! Storage for the leaves of a tree, in groups of 64. Empty groups are not allocated.

/// Pages of a leaf and leaves of a group, as a power of two (XA_CHUNK_SHIFT).
pub(super) const CHUNK_SHIFT: u32 = 6;
const CHUNK_SLOTS: usize = 1 << CHUNK_SHIFT;

/// The state of 64 pages as bitmaps (cached, first of a folio, marked, used) and the state of the
/// cache's owner. The fields are contiguous because in simulations of random reads each access to a
/// leaf misses the processor's cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Leaf<S> {
    pub(super) present: u64,
    pub(super) heads: u64,
    pub(super) marks: u64,
    pub(super) used: u64,
    pub(super) state: S,
    /// The order of the folio that contains this whole leaf; 0 if there is none.
    pub(super) big: u8,
}

type Group<S> = Box<[Leaf<S>; CHUNK_SLOTS]>;

/// A group of leaves, if one is allocated.
#[derive(Clone, Debug)]
struct GroupSlot<S> {
    group: Option<Group<S>>,
    /// Number of leaves that hold pages.
    occupied: u32,
}

/// The leaves of one file, by leaf number.
#[derive(Clone, Debug)]
pub(super) struct Leaves<S> {
    groups: Vec<GroupSlot<S>>,
    /// Empty groups for reuse; all their bits are zero.
    spare: Vec<Group<S>>,
}

impl<S> Default for Leaves<S> {
    fn default() -> Self {
        Self { groups: Vec::new(), spare: Vec::new() }
    }
}

impl<S: Copy + Default> Leaves<S> {
    #[inline]
    fn group(&self, index: u64) -> Option<&Group<S>> {
        self.groups.get(usize::try_from(index).ok()?)?.group.as_ref()
    }

    /// Returns the leaf, if its group is allocated.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<&Leaf<S>> {
        self.group(index >> CHUNK_SHIFT).map(|group| &group[(index & 63) as usize])
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut Leaf<S>> {
        let group = self.groups.get_mut((index >> CHUNK_SHIFT) as usize)?.group.as_mut()?;
        Some(&mut group[(index & 63) as usize])
    }

    /// Returns the leaf, allocated if necessary. Counts it as occupied: the caller inserts pages.
    #[inline]
    pub(super) fn occupy(&mut self, index: u64) -> &mut Leaf<S> {
        let number = (index >> CHUNK_SHIFT) as usize;
        if self.groups.len() <= number {
            self.groups.resize_with(number + 1, || GroupSlot { group: None, occupied: 0 });
        }
        let place = &mut self.groups[number];
        let spare = &mut self.spare;
        let empty = || spare.pop().unwrap_or_else(empty_group);
        let leaf = &mut place.group.get_or_insert_with(empty)[(index & 63) as usize];
        place.occupied += u32::from(leaf.present == 0);
        leaf
    }

    /// Counts a leaf as empty. Frees the group after its last leaf.
    pub(super) fn vacate(&mut self, index: u64) {
        let place = &mut self.groups[(index >> CHUNK_SHIFT) as usize];
        place.occupied -= 1;
        if place.occupied == 0 {
            self.spare.extend(place.group.take());
        }
    }

    /// Returns whether any of the groups `[first, first + count)` holds a page.
    pub(super) fn any_group(&self, first: u64, count: u64) -> bool {
        let known = self.groups.len() as u64;
        let end = first.saturating_add(count).min(known);
        (first..end).any(|index| self.group(index).is_some())
    }

    /// Returns the number of pages that a walk may skip after an empty leaf: to the next allocated
    /// group, or all after the last one. `bit` is the position of the page in its leaf.
    #[inline]
    pub(super) fn free_step(&self, page: u64, bit: u64) -> u64 {
        let group = page >> (2 * CHUNK_SHIFT);
        if group >= self.groups.len() as u64 {
            u64::MAX - page
        } else if self.group(group).is_some() {
            64 - bit
        } else {
            4096 - (page & 4095)
        }
    }
}

/// Builds an empty group on the heap; an array would be built on the stack first.
#[cold]
fn empty_group<S: Copy + Default>() -> Group<S> {
    let leaves = vec![Leaf::default(); CHUNK_SLOTS].into_boxed_slice();
    leaves.try_into().unwrap_or_else(|_| Box::new([Leaf::default(); CHUNK_SLOTS]))
}
