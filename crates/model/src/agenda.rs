//! What a model has still to do, in order of time.
//!
//! A drive with many dies has hundreds of things to do in the next millisecond, and a binary heap
//! of them costs more than the things. So those of the near future lie in slots of two
//! microseconds, found by bitmaps, and a heap holds the others until they are near.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

/// The span of a slot in nanoseconds, as a power of two.
const SPAN: u32 = 11;
/// Slots; the near future is this many spans long.
const SLOTS: u64 = 1024;
const WORDS: usize = SLOTS as usize / 64;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// Things to happen, earliest first; what is due at the same time happens in the order in which
/// it was put down, so that a model never depends on the order of any container.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    entries: Vec<Entry<T>>,
    /// The first place in `entries` that is free; others follow from one to the next.
    free: u32,
    /// First and last entry of each slot, which is in order.
    slots: Box<[(u32, u32); SLOTS as usize]>,
    /// Which slots have entries, and which words of that are not zero.
    occupied: [u64; WORDS],
    words: u64,
    /// The number of spans before the first slot of the near future.
    base: u64,
    /// What is due later.
    late: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// When the next thing is due, if there is one, and in which slot it is.
    next: (u64, u64),
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: u64,
    order: u64,
    following: u32,
    what: T,
}

/// When nothing is due.
const NEVER: (u64, u64) = (u64::MAX, 0);

impl<T: Copy> Agenda<T> {
    /// An agenda with nothing on it.
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            slots: Box::new([(NONE, NONE); SLOTS as usize]),
            occupied: [0; WORDS],
            words: 0,
            base: 0,
            late: BinaryHeap::new(),
            next: NEVER,
            entered: 0,
        }
    }

    /// Puts something down for `at`.
    ///
    /// Inlined always: what is stored in parts for a call, and loaded whole by it, waits until the
    /// stores have left the processor's store buffer, which took longer than all of this.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Nanos, what: T) {
        let (at, order) = (at.get(), self.entered);
        self.entered += 1;
        let place = self.free;
        let place = if place == NONE {
            self.entries.push(Entry { at, order, following: NONE, what });
            self.entries.len() as u32 - 1
        } else {
            // Field by field, for the same reason.
            let entry = &mut self.entries[place as usize];
            self.free = entry.following;
            (entry.at, entry.order, entry.following) = (at, order, NONE);
            entry.what = what;
            place
        };
        if self.words == 0 {
            self.reach(at);
        }
        if at >> SPAN >= self.base + SLOTS {
            self.late.push(Reverse((at, order, place)));
        } else {
            self.enter(at, order, place);
        }
    }

    /// When the next thing is due.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        (self.words != 0).then_some(Nanos::new(self.next.0))
    }

    /// Takes the next thing off if it is due by `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.words == 0 || self.next.0 > now.get() {
            return None;
        }
        let slot = self.next.1 % SLOTS;
        let place = self.slots[slot as usize].0;
        let entry = &mut self.entries[place as usize];
        let (at, what) = (entry.at, entry.what);
        let following = std::mem::replace(&mut entry.following, self.free);
        self.free = place;
        self.begin_at(at >> SPAN);
        self.slots[slot as usize].0 = following;
        if following != NONE {
            self.next.0 = self.entries[following as usize].at;
        } else {
            self.leave(slot);
        }
        Some((Nanos::new(at), what))
    }

    /// Puts an entry of the near future into its slot. What is due before the near future goes
    /// to the slot that is looked at first, where it comes first.
    fn enter(&mut self, at: u64, order: u64, place: u32) {
        let slot = (at >> SPAN).max(self.base) % SLOTS;
        let (first, last) = self.slots[slot as usize];
        if first == NONE {
            self.slots[slot as usize] = (place, place);
            self.occupied[slot as usize / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
        } else {
            let key = |place: u32| {
                let entry = &self.entries[place as usize];
                (entry.at, entry.order)
            };
            if key(last) < (at, order) {
                self.entries[last as usize].following = place;
                self.slots[slot as usize].1 = place;
            } else if (at, order) < key(first) {
                self.entries[place as usize].following = first;
                self.slots[slot as usize].0 = place;
            } else {
                let mut before = first;
                loop {
                    let following = self.entries[before as usize].following;
                    if (at, order) < key(following) {
                        self.entries[place as usize].following = following;
                        self.entries[before as usize].following = place;
                        break;
                    }
                    before = following;
                }
            }
        }
        if at < self.next.0 {
            self.next = (at, slot);
        }
    }

    /// After the last entry of a slot has left it: what is next?
    fn leave(&mut self, slot: u64) {
        let word = (slot / 64) as usize;
        self.occupied[word] &= !(1 << (slot % 64));
        if self.occupied[word] == 0 {
            self.words &= !(1 << word);
        }
        if self.words == 0 {
            self.next = NEVER;
            if let Some(&Reverse((at, ..))) = self.late.peek() {
                self.reach(at);
            }
            return;
        }
        let slot = self.first_from(slot);
        self.next = (self.entries[self.slots[slot as usize].0 as usize].at, slot);
    }

    /// The first slot that has entries, beginning at this one and coming round.
    fn first_from(&self, slot: u64) -> u64 {
        let (word, bit) = (slot / 64, slot % 64);
        let rest = self.occupied[word as usize] >> bit << bit;
        if rest != 0 {
            return word * 64 + u64::from(rest.trailing_zeros());
        }
        // The words behind this one, and then those up to it.
        let behind = self.words >> word >> 1 << word << 1;
        let words = if behind != 0 { behind } else { self.words };
        let word = u64::from(words.trailing_zeros());
        word * 64 + u64::from(self.occupied[word as usize].trailing_zeros())
    }

    /// Where nothing is near: has the near future reach beyond `at`.
    fn reach(&mut self, at: u64) {
        self.begin_at((at >> SPAN).saturating_sub(SLOTS / 2));
    }

    /// Counts the near future from the end of so many spans, and takes into it what has come
    /// near.
    #[inline]
    fn begin_at(&mut self, base: u64) {
        if base <= self.base {
            return;
        }
        self.base = base;
        while let Some(&Reverse((at, order, place))) = self.late.peek() {
            if at >> SPAN >= self.base + SLOTS {
                return;
            }
            self.late.pop();
            self.enter(at, order, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_due_at_the_same_time_keeps_its_order() {
        let mut agenda = Agenda::new();
        for (at, what) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            agenda.push(Nanos::new(at), what);
        }
        let mut seen = String::new();
        while let Some((_, what)) = agenda.pop_due(Nanos::new(4)) {
            seen.push(what);
        }
        assert_eq!(seen, "ab");
        assert_eq!(agenda.next_at(), Some(Nanos::new(5)));
    }

    proptest! {
        /// Whatever is put down and taken off, and however far apart, it comes as from a heap.
        #[test]
        fn it_is_a_heap(
            steps in prop::collection::vec((0u64..40, 0u32..50, any::<bool>()), 1..400),
        ) {
            let (mut agenda, mut heap) = (Agenda::new(), BinaryHeap::new());
            let mut now = 0;
            for (number, (mantissa, shift, takes)) in (0u64..).zip(steps) {
                let at = now + (mantissa << (shift % 34));
                agenda.push(Nanos::new(at), number);
                heap.push(Reverse((at, number)));
                if takes {
                    now += mantissa << (shift % 20);
                    while heap.peek().is_some_and(|&Reverse((at, _))| at <= now) {
                        let wanted = heap.pop().map(|Reverse((at, what))| (Nanos::new(at), what));
                        prop_assert_eq!(agenda.next_at(), wanted.map(|(at, _)| at));
                        prop_assert_eq!(agenda.pop_due(Nanos::new(now)), wanted);
                    }
                    prop_assert_eq!(agenda.pop_due(Nanos::new(now)), None);
                }
            }
            while let Some(Reverse((at, number))) = heap.pop() {
                prop_assert_eq!(agenda.pop_due(Nanos::MAX), Some((Nanos::new(at), number)));
            }
            prop_assert_eq!(agenda.next_at(), None);
        }
    }
}
