//! The kernel's walk over the page cache (`page_cache_next_miss`, `page_cache_prev_miss`), with
//! its quirk.
//!
//! The kernel loads the first page through an XArray cursor. Where that page lies inside a large
//! folio, the cursor stands on the slot of the folio's *head* but keeps the page's own index; from
//! there slot and index move together, so that the index runs ahead of the slot until the walk
//! crosses into another node, which is entered by index. Windows of interleaved streams depend on
//! these answers, so a simulator needs the wrong ones. [Confirmed on 6.18: an exact walk
//! contradicts recorded decisions.]

use units::Pages;

use super::leaves::CHUNK_SHIFT;
use super::tree::PageTree;
use crate::page::Page;

const LAST_SLOT: u64 = 63;
/// The level whose slots cover all indices of 64 bits.
const TOP_LEVEL: u32 = 10;

/// What a slot of the tree holds.
enum Slot {
    Empty,
    /// A folio or a sibling of its head.
    Folio,
    Node,
}

/// A cursor: an index, and a slot that is not always the one of that index.
struct Cursor<'a, S> {
    tree: &'a PageTree<S>,
    index: u64,
    /// A slot of this level covers 64^level pages.
    level: u32,
    /// Which node of its level, counted from the start of the file.
    node: u64,
    slot: u64,
}

impl<'a, S: Copy + Default> Cursor<'a, S> {
    /// Stands on the slot that holds the folio of `index`, if there is one.
    fn load(tree: &'a PageTree<S>, index: u64) -> Option<Self> {
        let folio = tree.folio(Page::new(index))?;
        let level = u32::from(folio.order) / CHUNK_SHIFT;
        let slot = folio.head.get() >> (level * CHUNK_SHIFT);
        Some(Self { tree, index, level, node: slot >> CHUNK_SHIFT, slot: slot & LAST_SLOT })
    }

    /// The slot that `index` has in the node of this cursor.
    fn own_slot(&self) -> u64 {
        self.index >> (self.level * CHUNK_SHIFT) & LAST_SLOT
    }

    fn look(&self) -> Slot {
        let place = self.node << CHUNK_SHIFT | self.slot;
        match self.level {
            0 => match self.tree.leaves.get(self.node) {
                Some(leaf) if leaf.present >> self.slot & 1 == 1 => Slot::Folio,
                _ => Slot::Empty,
            },
            1 => match self.tree.leaves.get(place) {
                Some(leaf) if leaf.big > 0 => Slot::Folio,
                Some(leaf) if leaf.present != 0 => Slot::Node,
                _ => Slot::Empty,
            },
            _ => {
                let groups = (self.level - 2) * CHUNK_SHIFT;
                let first = place.checked_shl(groups).unwrap_or(u64::MAX);
                let count = 1u64.checked_shl(groups).unwrap_or(u64::MAX);
                if self.tree.leaves.any_group(first, count) { Slot::Node } else { Slot::Empty }
            }
        }
    }

    /// Goes to the node above; false at the top.
    fn up(&mut self) -> bool {
        self.slot = self.node & LAST_SLOT;
        self.node >>= CHUNK_SHIFT;
        self.level += 1;
        self.level <= TOP_LEVEL
    }

    /// Enters nodes by the cursor's index until there is none; whether a folio is there.
    fn down(&mut self) -> bool {
        loop {
            match self.look() {
                Slot::Empty => return false,
                Slot::Folio => return true,
                Slot::Node => {
                    self.node = self.node << CHUNK_SHIFT | self.slot;
                    self.level -= 1;
                    self.slot = self.own_slot();
                }
            }
        }
    }

    /// Moves to the next index; whether the slot that it comes to holds a folio.
    fn next(&mut self) -> bool {
        self.index = self.index.wrapping_add(1);
        if self.level == 0 && self.slot < LAST_SLOT {
            self.slot += 1;
            return matches!(self.look(), Slot::Folio);
        }
        if self.slot != self.own_slot() {
            self.slot += 1;
        }
        while self.slot > LAST_SLOT {
            if !self.up() {
                return false;
            }
            self.slot += 1;
        }
        self.down()
    }

    /// Moves to the index before; whether the slot that it comes to holds a folio.
    fn prev(&mut self) -> bool {
        self.index = self.index.wrapping_sub(1);
        if self.level == 0 && self.slot > 0 {
            self.slot -= 1;
            return matches!(self.look(), Slot::Folio);
        }
        if self.slot == self.own_slot() {
            return self.down();
        }
        while self.slot == 0 {
            if !self.up() {
                return false;
            }
        }
        self.slot -= 1;
        self.down()
    }

    /// Takes those of the next `steps` steps that neither meet an empty slot nor leave the node,
    /// and returns how many.
    fn skip_forward(&mut self, steps: u64) -> u64 {
        let safe = match self.level {
            0 => self.tree.leaves.get(self.node).map_or(0, |leaf| {
                u64::from((leaf.present >> self.slot).trailing_ones()).saturating_sub(1)
            }),
            1 if self.slot == self.own_slot() => LAST_SLOT - (self.index & LAST_SLOT),
            _ => 0,
        };
        let taken = safe.min(steps);
        self.index = self.index.wrapping_add(taken);
        self.slot += if self.level == 0 { taken } else { 0 };
        taken
    }

    /// The same towards the start of the file.
    fn skip_back(&mut self, steps: u64) -> u64 {
        let safe = match self.level {
            0 => self.tree.leaves.get(self.node).map_or(0, |leaf| {
                let below = leaf.present << (LAST_SLOT - self.slot);
                u64::from(below.leading_ones()).saturating_sub(1).min(self.index)
            }),
            1 if self.slot == self.own_slot() => self.index & LAST_SLOT,
            _ => 0,
        };
        let taken = safe.min(steps);
        self.index = self.index.wrapping_sub(taken);
        self.slot -= if self.level == 0 { taken } else { 0 };
        taken
    }
}

impl<S: Copy + Default> PageTree<S> {
    /// The kernel's `page_cache_next_miss`: see [`super::Cache::next_miss`].
    pub fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        let end = Page::new(from.get().wrapping_add(max.get()));
        let mut left = max.get();
        if left == 0 {
            return Some(end);
        }
        let Some(mut cursor) = Cursor::load(self, from.get()) else { return Some(from) };
        left -= 1;
        while left > 0 {
            left -= cursor.skip_forward(left);
            if left == 0 {
                break;
            }
            left -= 1;
            let cached = cursor.next();
            if cursor.index == 0 {
                return None;
            }
            if !cached {
                return Some(Page::new(cursor.index));
            }
        }
        (end.get() != 0).then_some(end)
    }

    /// The kernel's `page_cache_prev_miss`: see [`super::Cache::prev_miss`].
    pub fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        let mut left = max.get();
        if left == 0 {
            return Some(from);
        }
        let Some(mut cursor) = Cursor::load(self, from.get()) else { return Some(from) };
        left -= 1;
        while left > 0 {
            left -= cursor.skip_back(left);
            if left == 0 {
                break;
            }
            left -= 1;
            let cached = cursor.prev();
            if cursor.index == u64::MAX {
                return None;
            }
            if !cached {
                break;
            }
        }
        Some(Page::new(cursor.index))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::xarray::XArray;
    use super::*;
    use crate::page::Folio;

    fn tree(folios: &[(u64, u8)]) -> PageTree {
        let mut tree = PageTree::new();
        for &(head, order) in folios {
            tree.insert(Folio { head: Page::new(head), order, marked: false });
        }
        tree
    }

    fn next(tree: &PageTree, from: u64, max: u64) -> Option<u64> {
        tree.next_miss(Page::new(from), Pages::new(max)).map(Page::get)
    }

    fn prev(tree: &PageTree, from: u64, max: u64) -> Option<u64> {
        tree.prev_miss(Page::new(from), Pages::new(max)).map(Page::get)
    }

    #[test]
    fn single_pages_are_walked_exactly() {
        let tree = tree(&[(0, 0), (1, 0), (2, 0), (5, 0), (6, 0)]);
        assert_eq!(next(&tree, 0, 32), Some(3));
        assert_eq!(next(&tree, 5, 32), Some(7));
        assert_eq!(next(&tree, 5, 2), Some(7));
        assert_eq!(next(&tree, 9, 2), Some(9));
        assert_eq!(prev(&tree, 6, 32), Some(4));
        assert_eq!(prev(&tree, 6, 2), Some(5));
        assert_eq!(prev(&tree, 2, 32), None);
        assert_eq!(prev(&tree, 2, 2), Some(1));
    }

    #[test]
    fn beginning_inside_a_large_folio_goes_one_page_too_far() {
        let tree = tree(&[(8, 3), (16, 3)]);
        assert_eq!(next(&tree, 8, 32), Some(24));
        assert_eq!(next(&tree, 9, 32), Some(25));
        assert_eq!(next(&tree, 12, 32), Some(28));
        // Backward the walk stops early by as much as it began inside the folio.
        assert_eq!(prev(&tree, 16, 32), Some(7));
        assert_eq!(prev(&tree, 23, 32), Some(14));
    }

    #[test]
    fn a_lagging_walk_jumps_over_the_first_slots_of_the_next_leaf() {
        // The lag is 2 when slot 63 is left with index 65, so leaf 1 is entered at slot 2.
        let tree = tree(&[(56, 3), (66, 1)]);
        assert_eq!(next(&tree, 58, 64), Some(68));
    }

    #[test]
    fn huge_folios_are_walked_on_their_own_level() {
        let tree = tree(&[(512, 9), (1024, 9)]);
        assert_eq!(next(&tree, 513, 4096), Some(1536));
        assert_eq!(prev(&tree, 1100, 4096), Some(1091));
        // From the head's slot 16, a slot for each page, it is nine pages to the empty slot 7.
        assert_eq!(prev(&tree, 1535, 4096), Some(1526));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The walk over bitmaps, with its short cuts, is the walk over a tree of nodes.
        #[test]
        fn the_walk_is_that_of_an_xarray(
            folios in prop::collection::vec((0u64..400, 0u8..=9), 0..120),
            from in 0u64..9000, max in 1u64..1500,
            base in prop::sample::select(vec![0u64, 1 << 18, (1 << 18) - 4096]),
        ) {
            let (mut tree, mut xarray) = (PageTree::new(), XArray::default());
            for (slot, order) in folios {
                let head = base + ((slot << order) % 8192);
                if tree.insert(Folio { head: Page::new(head), order, marked: false }) {
                    xarray.insert(head, order);
                }
            }
            let from = base + from;
            prop_assert_eq!(next(&tree, from, max), xarray.next_miss(from, max));
            prop_assert_eq!(prev(&tree, from, max), xarray.prev_miss(from, max));
        }

        #[test]
        fn single_pages_are_always_walked_exactly(
            pages in prop::collection::btree_set(0u64..400, 0..300), from in 0u64..400,
            max in 1u64..400,
        ) {
            let tree = tree(&pages.iter().map(|&page| (page, 0)).collect::<Vec<_>>());
            let truth = (from..from + max).find(|page| !pages.contains(page));
            prop_assert_eq!(next(&tree, from, max), Some(truth.unwrap_or(from + max)));
            let low = (from + 1).saturating_sub(max);
            let truth = (low..=from).rev().find(|page| !pages.contains(page));
            let all = if from + 1 < max { None } else { Some(low) };
            prop_assert_eq!(prev(&tree, from, max), truth.or(all));
        }
    }
}
