//! Where the leaves of a tree are kept: in groups of 64, those that hold nothing left out.

/// Pages of a leaf and leaves of a group, as a power of two (XA_CHUNK_SHIFT).
pub(super) const CHUNK_SHIFT: u32 = 6;
const CHUNK_SLOTS: usize = 1 << CHUNK_SHIFT;

/// 64 pages: which are cached, which begin a folio, which of those are marked, which pages a
/// reader has used, and what else the cache's owner knows of them. All of it lies together: who
/// reads at random waits for each line of memory that is looked at.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Leaf<S> {
    pub(super) present: u64,
    pub(super) heads: u64,
    pub(super) marks: u64,
    pub(super) used: u64,
    pub(super) state: S,
    /// The order of the folio that this leaf is a part of, where that is of whole leaves; else 0.
    pub(super) big: u8,
}

type Group<S> = Box<[Leaf<S>; CHUNK_SLOTS]>;

/// A group of leaves, if one is allocated.
#[derive(Clone, Debug)]
struct GroupSlot<S> {
    group: Option<Group<S>>,
    /// Leaves of it that hold any page.
    occupied: u32,
}

/// The leaves of one file by their number.
#[derive(Clone, Debug)]
pub(super) struct Leaves<S> {
    groups: Vec<GroupSlot<S>>,
    /// Groups that were left empty, for those to come: their bits are all zero.
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

    /// A leaf, if there is its group.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<&Leaf<S>> {
        self.group(index >> CHUNK_SHIFT).map(|group| &group[(index & 63) as usize])
    }

    /// The same, to change.
    #[inline]
    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut Leaf<S>> {
        let group = self.groups.get_mut((index >> CHUNK_SHIFT) as usize)?.group.as_mut()?;
        Some(&mut group[(index & 63) as usize])
    }

    /// The leaf, made if there is none, and counted as occupied: the caller puts pages into it.
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

    /// Counts a leaf that has become empty no more; its group goes with the last.
    pub(super) fn vacate(&mut self, index: u64) {
        let place = &mut self.groups[(index >> CHUNK_SHIFT) as usize];
        place.occupied -= 1;
        if place.occupied == 0 {
            self.spare.extend(place.group.take());
        }
    }

    /// Whether any of the groups `[first, first + count)` holds a page.
    pub(super) fn any_group(&self, first: u64, count: u64) -> bool {
        let known = self.groups.len() as u64;
        let end = first.saturating_add(count).min(known);
        (first..end).any(|index| self.group(index).is_some())
    }

    /// How far a walk over pages that found nothing in a leaf may go on: past groups that do not
    /// exist, and past the last of all. `bit` is the place of the page in its leaf.
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

/// A group without pages, made where it is to be: an array would be made on the stack first.
#[cold]
fn empty_group<S: Copy + Default>() -> Group<S> {
    let leaves = vec![Leaf::default(); CHUNK_SLOTS].into_boxed_slice();
    leaves.try_into().unwrap_or_else(|_| Box::new([Leaf::default(); CHUNK_SLOTS]))
}
