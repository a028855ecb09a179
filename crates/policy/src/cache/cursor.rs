//! The kernel's search for a missing page (`page_cache_next_miss`, `page_cache_prev_miss`),
//! including its inexactness.
//!
//! The kernel loads the first page through an XArray cursor. If that page lies inside a large
//! folio, the cursor is at the slot of the folio's *head* but keeps the index of the page. Slot and
//! index then advance together, so the index is too large until the walk enters another node, which
//! it does by index. The windows of interleaved streams depend on these results, so a simulator
//! must reproduce them. (Confirmed on 6.18: an exact search contradicts recorded decisions.)

use units::Pages;

use super::leaves::CHUNK_SHIFT;
use super::tree::PageTree;
use crate::page::Page;

const LAST_SLOT: u64 = 63;
/// The level at which one node covers all 64-bit indices.
const TOP_LEVEL: u32 = 10;

/// The content of a slot.
enum Slot {
    Empty,
    /// A folio or a sibling of its head.
    Folio,
    Node,
}

/// A cursor: an index, and a slot that does not always correspond to that index.
struct Cursor<'a, S> {
    tree: &'a PageTree<S>,
    index: u64,
    /// A slot of this level covers 64^level pages.
    level: u32,
    /// Number of the node in its level, counted from the start of the file.
    node: u64,
    slot: u64,
}

impl<'a, S: Copy + Default> Cursor<'a, S> {
    /// Returns a cursor at the slot of the folio that contains `index`, if there is such a folio.
    fn load(tree: &'a PageTree<S>, index: u64) -> Option<Self> {
        let folio = tree.folio(Page::new(index))?;
        let level = u32::from(folio.order) / CHUNK_SHIFT;
        let slot = folio.head.get() >> (level * CHUNK_SHIFT);
        Some(Self { tree, index, level, node: slot >> CHUNK_SHIFT, slot: slot & LAST_SLOT })
    }

    /// Returns the slot of `index` in the node of this cursor.
    fn own_slot(&self) -> u64 {
        self.index >> (self.level * CHUNK_SHIFT) & LAST_SLOT
    }

    fn read_slot(&self) -> Slot {
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

    /// Moves to the parent node. Returns false at the top.
    fn up(&mut self) -> bool {
        self.slot = self.node & LAST_SLOT;
        self.node >>= CHUNK_SHIFT;
        self.level += 1;
        self.level <= TOP_LEVEL
    }

    /// Descends by the cursor's index. Returns whether a folio is there.
    fn down(&mut self) -> bool {
        loop {
            match self.read_slot() {
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

    /// Moves to the next index. Returns whether the new slot holds a folio.
    fn next(&mut self) -> bool {
        self.index = self.index.wrapping_add(1);
        if self.level == 0 && self.slot < LAST_SLOT {
            self.slot += 1;
            return matches!(self.read_slot(), Slot::Folio);
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

    /// Moves to the previous index. Returns whether the new slot holds a folio.
    fn prev(&mut self) -> bool {
        self.index = self.index.wrapping_sub(1);
        if self.level == 0 && self.slot > 0 {
            self.slot -= 1;
            return matches!(self.read_slot(), Slot::Folio);
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

    /// Skips up to `steps` steps at once, as long as they neither reach an empty slot nor leave the
    /// node. Returns the number of skipped steps.
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

    /// As [`Self::skip_forward`], towards the start of the file.
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
    /// Implements the kernel's `page_cache_next_miss`: see [`super::Cache::next_miss`].
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

    /// Implements the kernel's `page_cache_prev_miss`: see [`super::Cache::prev_miss`].
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
    fn the_search_over_single_pages_is_exact() {
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
    fn a_search_that_starts_inside_a_large_folio_ends_too_late() {
        let tree = tree(&[(8, 3), (16, 3)]);
        assert_eq!(next(&tree, 8, 32), Some(24));
        assert_eq!(next(&tree, 9, 32), Some(25));
        assert_eq!(next(&tree, 12, 32), Some(28));
        // A backward search ends too early, by the distance from the head of the folio.
        assert_eq!(prev(&tree, 16, 32), Some(7));
        assert_eq!(prev(&tree, 23, 32), Some(14));
    }

    #[test]
    fn the_first_slots_of_the_next_leaf_are_skipped() {
        // The walk leaves slot 63 with index 65, so it enters leaf 1 at slot 2.
        let tree = tree(&[(56, 3), (66, 1)]);
        assert_eq!(next(&tree, 58, 64), Some(68));
    }

    #[test]
    fn huge_folios_are_searched_on_their_own_level() {
        let tree = tree(&[(512, 9), (1024, 9)]);
        assert_eq!(next(&tree, 513, 4096), Some(1536));
        assert_eq!(prev(&tree, 1100, 4096), Some(1091));
        // Each page is one slot back: nine pages from the head's slot 16 to the empty slot 7.
        assert_eq!(prev(&tree, 1535, 4096), Some(1526));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The optimised walk over bitmaps returns the same as the plain walk over a tree of nodes.
        #[test]
        fn the_search_equals_that_of_an_xarray(
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
        fn the_search_over_any_single_pages_is_exact(
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
