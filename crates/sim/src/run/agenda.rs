//! The order in which readers resume.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

/// A reader's turn: its time, the sequence number of its entry, and the reader.
type Turn = (Nanos, u64, u32);

const NEVER: Turn = (Nanos::MAX, u64::MAX, 0);

/// Readers to resume, earliest first; at the same time, in order of entry. Most readers wait for
/// the device and few are here, so the earliest is stored separately, and the heap of the others is
/// mostly empty.
#[derive(Debug)]
pub(super) struct ReaderAgenda {
    first: Turn,
    rest: BinaryHeap<Reverse<Turn>>,
    entered: u64,
}

impl ReaderAgenda {
    pub(super) fn new() -> Self {
        Self { first: NEVER, rest: BinaryHeap::new(), entered: 0 }
    }

    /// Returns the time of the first turn; [`Nanos::MAX`] if there is none.
    #[inline]
    pub(super) fn next_at(&self) -> Nanos {
        self.first.0
    }

    #[inline]
    pub(super) fn push(&mut self, at: Nanos, reader: u32) {
        let mut turn = (at, self.entered, reader);
        self.entered += 1;
        if at < self.first.0 {
            turn = std::mem::replace(&mut self.first, turn);
        }
        if turn != NEVER {
            self.rest.push(Reverse(turn));
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Nanos, u32)> {
        let (at, reader) = (self.first.0, self.first.2);
        if at == Nanos::MAX {
            return None;
        }
        self.first = self.rest.pop().map_or(NEVER, |Reverse(turn)| turn);
        Some((at, reader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_of_equals_the_one_put_down_first() {
        let mut agenda = ReaderAgenda::new();
        assert_eq!((agenda.next_at(), agenda.pop()), (Nanos::MAX, None));
        for (at, reader) in [(5, 0), (3, 1), (5, 2), (3, 3), (9, 4), (1, 5)] {
            agenda.push(Nanos::new(at), reader);
        }
        assert_eq!(agenda.next_at(), Nanos::new(1));
        let order: Vec<u32> = std::iter::from_fn(|| agenda.pop()).map(|turn| turn.1).collect();
        assert_eq!(order, [5, 1, 3, 0, 2, 4]);
    }
}
