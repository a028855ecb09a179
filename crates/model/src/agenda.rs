//! What a model has still to do, in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use units::Nanos;

/// Things to happen, earliest first; what is due at the same time happens in the order in which
/// it was put down, so that a model never depends on the heap's own order.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Nanos,
    order: u64,
    what: T,
}

impl<T> Agenda<T> {
    /// An agenda with nothing on it.
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }

    /// Puts something down for `at`.
    pub(crate) fn push(&mut self, at: Nanos, what: T) {
        self.heap.push(Reverse(Entry { at, order: self.entered, what }));
        self.entered += 1;
    }

    /// When the next thing is due.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next thing off if it is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

#[cfg(test)]
mod tests {
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
}
