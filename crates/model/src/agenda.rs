//! The future events of a model, ordered by time.
//!
//! A drive with many dies has hundreds of events in the next millisecond, and a binary heap would
//! be too slow for them. Events of the near future are therefore in slots of half a microsecond,
//! which bitmaps find; a heap holds later events until they are near. Events that are created in
//! order of time, such as the replies of a link, are in separate queues (lines).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use units::Nanos;

/// The base-2 logarithm of a slot's span in nanoseconds.
const SLOT_SPAN_LOG2_NS: u32 = 9;
/// The number of slots, and so the length of the near future in slots.
const SLOT_COUNT: u64 = 2048;
const BITMAP_WORDS: usize = SLOT_COUNT as usize / 64;
const LIST_END: u32 = u32::MAX;

/// The future events, earliest first. Events with the same time are in order of insertion, so that
/// a model never depends on the order of a container.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    entries: Vec<Entry<T>>,
    /// The first free index in `entries`; each free entry links to the next.
    free: u32,
    /// The first and last entry of each slot, in order.
    slots: Box<[(u32, u32); SLOT_COUNT as usize]>,
    /// A bitmap of the slots with entries, and a bitmap of its words that are not zero.
    occupied: [u64; BITMAP_WORDS],
    words: u64,
    /// The first slot of the near future, counted in slot spans since time 0.
    base: u64,
    late: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The time and slot of the earliest event in the slots; `NEVER` if they are empty.
    next: (u64, u64),
    lines: [Line<T>; 2],
    entered: u64,
}

/// A queue of events that were inserted in order of time: time, insertion number and event.
#[derive(Debug)]
struct Line<T> {
    things: VecDeque<(u64, u64, T)>,
    /// The time of the first event in nanoseconds; [`u64::MAX`] if there is none.
    next: u64,
}

impl<T: Copy> Line<T> {
    fn new() -> Self {
        Self { things: VecDeque::new(), next: u64::MAX }
    }

    /// Returns the insertion number of the first event if it is due exactly at `at`; otherwise a
    /// number that no event has.
    #[inline]
    fn number_at(&self, at: u64) -> u64 {
        match self.things.front() {
            Some(first) if self.next == at => first.1,
            _ => u64::MAX,
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Nanos, T)> {
        let (at, _, what) = self.things.pop_front()?;
        self.next = self.things.front().map_or(u64::MAX, |first| first.0);
        Some((Nanos::new(at), what))
    }
}

#[derive(Debug)]
struct Entry<T> {
    at: u64,
    order: u64,
    following: u32,
    what: T,
}

const NEVER: (u64, u64) = (u64::MAX, 0);

impl<T: Copy> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: LIST_END,
            slots: Box::new([(LIST_END, LIST_END); SLOT_COUNT as usize]),
            occupied: [0; BITMAP_WORDS],
            words: 0,
            base: 0,
            late: BinaryHeap::new(),
            next: NEVER,
            lines: [Line::new(), Line::new()],
            entered: 0,
        }
    }

    /// Adds an event for `at` to one of the two lines. Efficient if events in that line are rarely
    /// earlier than the previous one.
    #[inline]
    pub(crate) fn push_in_line(&mut self, line: usize, at: Nanos, what: T) {
        let time = at.get();
        let things = &self.lines[line].things;
        if time == u64::MAX || things.back().is_some_and(|last| time < last.0) {
            return self.push(at, what);
        }
        let line = &mut self.lines[line];
        line.next = line.next.min(time);
        line.things.push_back((time, self.entered, what));
        self.entered += 1;
    }

    /// Adds an event for `at`.
    ///
    /// Always inlined: a call would store the value in parts and load it as a whole, which stalls
    /// on the processor's store buffer for longer than the rest of this function takes.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Nanos, what: T) {
        let (at, order) = (at.get(), self.entered);
        self.entered += 1;
        let place = self.free;
        let place = if place == LIST_END {
            self.entries.push(Entry { at, order, following: LIST_END, what });
            self.entries.len() as u32 - 1
        } else {
            // Assigns each field separately, for the same reason.
            let entry = &mut self.entries[place as usize];
            self.free = entry.following;
            (entry.at, entry.order, entry.following) = (at, order, LIST_END);
            entry.what = what;
            place
        };
        if self.words == 0 {
            self.reach(at);
        }
        if at >> SLOT_SPAN_LOG2_NS >= self.base + SLOT_COUNT {
            self.late.push(Reverse((at, order, place)));
        } else {
            self.enter(at, order, place);
        }
    }

    /// Returns the time of the next event.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        let at = self.first_at();
        (self.words != 0 || at != u64::MAX).then_some(Nanos::new(at))
    }

    /// Returns the time of the next event in nanoseconds; `u64::MAX` if there is none.
    #[inline]
    fn first_at(&self) -> u64 {
        self.next.0.min(self.lines[0].next).min(self.lines[1].next)
    }

    /// Removes and returns the next event if it is due by `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let (slots, [one, other]) = (self.next.0, [self.lines[0].next, self.lines[1].next]);
        if slots.min(one).min(other) > now.get() {
            return None;
        }
        if slots < one && slots < other {
            Some(self.take_first())
        } else if one < slots && one < other {
            self.lines[0].pop()
        } else if other < slots && other < one {
            self.lines[1].pop()
        } else {
            self.pop_of_equals(slots.min(one).min(other))
        }
    }

    /// Removes and returns the event that was inserted first of those due exactly at `at`.
    #[cold]
    fn pop_of_equals(&mut self, at: u64) -> Option<(Nanos, T)> {
        let in_slot =
            if self.words != 0 && self.next.0 == at { self.first_in_slot() } else { LIST_END };
        let number = self.entries.get(in_slot as usize).map_or(u64::MAX, |entry| entry.order);
        let [one, other] = [self.lines[0].number_at(at), self.lines[1].number_at(at)];
        if one.min(other) < number {
            return self.lines[usize::from(other < one)].pop();
        }
        (in_slot != LIST_END).then(|| self.take_first())
    }

    /// Returns the first entry of the next slot.
    #[inline]
    fn first_in_slot(&self) -> u32 {
        self.slots[(self.next.1 % SLOT_COUNT) as usize].0
    }

    /// Removes and returns the first entry of the next slot.
    #[inline(always)]
    fn take_first(&mut self) -> (Nanos, T) {
        let slot = self.next.1 % SLOT_COUNT;
        let place = self.slots[slot as usize].0;
        let entry = &mut self.entries[place as usize];
        let (at, what) = (entry.at, entry.what);
        let following = std::mem::replace(&mut entry.following, self.free);
        self.free = place;
        self.begin_at(at >> SLOT_SPAN_LOG2_NS);
        self.slots[slot as usize].0 = following;
        if following != LIST_END {
            self.next.0 = self.entries[following as usize].at;
        } else {
            self.leave(slot);
        }
        (Nanos::new(at), what)
    }

    /// Adds an entry of the near future to its slot. An entry before the near future goes to the
    /// first slot.
    fn enter(&mut self, at: u64, order: u64, place: u32) {
        let slot = (at >> SLOT_SPAN_LOG2_NS).max(self.base) % SLOT_COUNT;
        let (first, last) = self.slots[slot as usize];
        if first == LIST_END {
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

    /// Finds the next slot after the last entry of `slot` was removed.
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

    /// Returns the first slot with entries at or after `slot`, wrapping around.
    fn first_from(&self, slot: u64) -> u64 {
        let (word, bit) = (slot / 64, slot % 64);
        let rest = self.occupied[word as usize] >> bit << bit;
        if rest != 0 {
            return word * 64 + u64::from(rest.trailing_zeros());
        }
        // Search the following words first, then the words up to this one.
        let behind = self.words >> word >> 1 << word << 1;
        let words = if behind != 0 { behind } else { self.words };
        let word = u64::from(words.trailing_zeros());
        word * 64 + u64::from(self.occupied[word as usize].trailing_zeros())
    }

    /// Moves the near future so that it includes `at`; requires that all slots are empty.
    fn reach(&mut self, at: u64) {
        self.begin_at((at >> SLOT_SPAN_LOG2_NS).saturating_sub(SLOT_COUNT / 2));
    }

    /// Moves the start of the near future to slot number `base`, and moves events that are now near
    /// from the heap into slots.
    #[inline]
    fn begin_at(&mut self, base: u64) {
        if base <= self.base {
            return;
        }
        self.base = base;
        while let Some(&Reverse((at, order, place))) = self.late.peek() {
            if at >> SLOT_SPAN_LOG2_NS >= self.base + SLOT_COUNT {
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
        /// For any sequence of insertions and removals, at any distances, the order is that of a
        /// heap.
        #[test]
        fn it_is_a_heap(
            steps in prop::collection::vec(
                (0u64..40, 0u32..50, any::<bool>(), 0usize..4), 1..400,
            ),
        ) {
            let (mut agenda, mut heap) = (Agenda::new(), BinaryHeap::new());
            let mut now = 0;
            for (number, (mantissa, shift, takes, line)) in (0u64..).zip(steps) {
                let at = now + (mantissa << (shift % 34));
                if line < 2 {
                    agenda.push_in_line(line, Nanos::new(at), number);
                } else {
                    agenda.push(Nanos::new(at), number);
                }
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
