//! A plain tree of nodes like the kernel's: the reference for tests of the search over bitmaps.

const CHUNK: usize = 64;

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Folio,
    /// Another slot of the folio whose head is in this slot.
    Sibling(usize),
    Node(Box<Node>),
}

struct Node {
    /// A slot covers 2^shift pages.
    shift: u32,
    slots: Vec<Slot>,
}

impl Node {
    fn new(shift: u32) -> Self {
        Self { shift, slots: std::iter::repeat_with(Slot::default).take(CHUNK).collect() }
    }

    fn slot_of(&self, index: u64) -> usize {
        (index >> self.shift) as usize % CHUNK
    }
}

#[derive(Default)]
pub(super) struct XArray {
    root: Option<Box<Node>>,
}

impl XArray {
    pub(super) fn insert(&mut self, head: u64, order: u8) {
        let shift = u32::from(order) / 6 * 6;
        let mut root = self.root.take().unwrap_or_else(|| Box::new(Node::new(shift)));
        while root.shift < shift || head >> root.shift >= CHUNK as u64 {
            let mut above = Box::new(Node::new(root.shift + 6));
            above.slots[0] = Slot::Node(root);
            root = above;
        }
        let mut node = &mut *root;
        while node.shift > shift {
            let (slot, below) = (node.slot_of(head), node.shift - 6);
            if !matches!(node.slots[slot], Slot::Node(_)) {
                node.slots[slot] = Slot::Node(Box::new(Node::new(below)));
            }
            let Slot::Node(next) = &mut node.slots[slot] else { unreachable!() };
            node = next;
        }
        let first = node.slot_of(head);
        node.slots[first] = Slot::Folio;
        for sibling in 1..1 << (u32::from(order) - shift) {
            node.slots[first + sibling] = Slot::Sibling(first);
        }
        self.root = Some(root);
    }

    fn load(&self, index: u64) -> Option<Walk<'_>> {
        let root = self.root.as_deref().filter(|root| index >> root.shift < CHUNK as u64)?;
        let mut walk = Walk { index, path: vec![(root, root.slot_of(index))] };
        loop {
            let (node, slot) = walk.path.last_mut()?;
            if let Slot::Sibling(head) = node.slots[*slot] {
                *slot = head;
            }
            match &node.slots[*slot] {
                Slot::Empty => return None,
                Slot::Node(below) => walk.path.push((below, below.slot_of(index))),
                Slot::Folio | Slot::Sibling(_) => return Some(walk),
            }
        }
    }

    pub(super) fn next_miss(&self, from: u64, max: u64) -> Option<u64> {
        let Some(mut walk) = self.load(from) else { return Some(from) };
        for _ in 1..max {
            if !walk.step(1) {
                return Some(walk.index);
            }
        }
        Some(from + max)
    }

    pub(super) fn prev_miss(&self, from: u64, max: u64) -> Option<u64> {
        let Some(mut walk) = self.load(from) else { return Some(from) };
        for _ in 1..max {
            let cached = walk.step(-1);
            if walk.index == u64::MAX {
                return None;
            }
            if !cached {
                break;
            }
        }
        Some(walk.index)
    }
}

struct Walk<'a> {
    index: u64,
    /// Nodes from the root down, and the slot in each.
    path: Vec<(&'a Node, usize)>,
}

impl Walk<'_> {
    /// Moves by one page. Returns whether a folio is there.
    fn step(&mut self, by: i64) -> bool {
        self.index = self.index.wrapping_add_signed(by);
        let Some(&(node, slot)) = self.path.last() else { return false };
        let edge = if by > 0 { CHUNK - 1 } else { 0 };
        let mut moves = node.shift == 0 && slot != edge || slot != node.slot_of(self.index);
        while moves {
            let Some((_, slot)) = self.path.last_mut() else { return false };
            moves = *slot == edge;
            if moves {
                self.path.pop();
            } else {
                *slot = slot.wrapping_add_signed(by as isize);
            }
        }
        self.descend()
    }

    fn descend(&mut self) -> bool {
        loop {
            let Some(&(node, slot)) = self.path.last() else { return false };
            match &node.slots[slot] {
                Slot::Empty => return false,
                Slot::Folio | Slot::Sibling(_) => return true,
                Slot::Node(below) => self.path.push((below, below.slot_of(self.index))),
            }
        }
    }
}
