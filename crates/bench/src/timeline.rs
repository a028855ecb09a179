//! The progress of a trial, in slots of equal length.
//!
//! A mean hides a reader that stalls for half of the trial, and a queue that fills only at the end.
//! Each reader therefore records its progress at the end of each slot, at the cost of one
//! comparison per request, and the device's counters are read once per slot.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// Number of slots in a trial of full length.
pub(crate) const SLOT_COUNT: u64 = 50;

/// The device's counters at one time since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceMoment {
    /// Wall time since the start of the readers.
    pub at: Nanos,
    pub requests: u64,
    pub bytes: Bytes,
    /// Number of requests in flight, integrated over the time so far.
    pub queue_time: Nanos,
    /// Requests in flight at this moment.
    pub in_flight: u64,
}

/// The progress of a trial in slots of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a slot in wall time; 0 if the trial has no timeline.
    pub slot: Nanos,
    /// Data that all readers together had received by the end of each slot.
    pub useful: Vec<Bytes>,
    /// Requests that all readers together had completed by the end of each slot.
    pub requests: Vec<u64>,
    /// Device counters, about one per slot; empty without a device.
    pub device: Vec<DeviceMoment>,
}

impl Timeline {
    /// True if the timeline has no data, as in records of earlier versions.
    pub fn is_empty(&self) -> bool {
        self.useful.is_empty() && self.device.is_empty()
    }

    /// Creates a timeline without readers, for a trial of this length.
    pub(crate) fn over(duration: Nanos) -> Self {
        Self { slot: slot_of(duration), ..Self::default() }
    }

    /// Adds a reader; its progress stays constant after its last request.
    pub(crate) fn add(&mut self, pace: &ReaderPace) {
        let before = self.useful.len();
        if before < pace.useful.len() {
            let last = |values: &[u64]| values.last().copied().unwrap_or(0);
            let (useful, requests) = (self.useful.last().copied(), last(&self.requests));
            self.useful.resize(pace.useful.len(), useful.unwrap_or_default());
            self.requests.resize(pace.useful.len(), requests);
        }
        for slot in 0..self.useful.len() {
            let at = slot.min(pace.useful.len().saturating_sub(1));
            self.useful[slot] += pace.useful.get(at).copied().unwrap_or_default();
            self.requests[slot] += pace.requests.get(at).copied().unwrap_or_default();
        }
    }
}

/// Returns the length of a slot, at least 1 ns.
pub(crate) fn slot_of(duration: Nanos) -> Nanos {
    Nanos::new((duration.get() / SLOT_COUNT).max(1))
}

/// The progress of one reader at the end of each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReaderPace {
    slot: Nanos,
    next: Nanos,
    useful: Vec<Bytes>,
    requests: Vec<u64>,
}

impl ReaderPace {
    pub(crate) fn new(duration: Nanos) -> Self {
        let slot = slot_of(duration);
        let room = SLOT_COUNT as usize + 2;
        let (useful, requests) = (Vec::with_capacity(room), Vec::with_capacity(room));
        Self { slot, next: slot, useful, requests }
    }

    /// Records the progress before this moment, if a slot has ended since the last call. A request
    /// that takes longer than a slot counts as no progress.
    #[inline]
    pub(crate) fn pass(&mut self, elapsed: Nanos, useful: impl FnOnce() -> (Bytes, u64)) {
        if elapsed >= self.next {
            self.note(elapsed, useful());
        }
    }

    fn note(&mut self, elapsed: Nanos, (useful, requests): (Bytes, u64)) {
        while self.next <= elapsed && self.useful.len() < 2 * SLOT_COUNT as usize {
            self.useful.push(useful);
            self.requests.push(requests);
            self.next += self.slot;
        }
    }

    /// Records the final progress.
    pub(crate) fn finish(&mut self, useful: Bytes, requests: u64) {
        self.useful.push(useful);
        self.requests.push(requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(n: u64) -> Nanos {
        Nanos::from_millis(n)
    }

    fn pace(ends: &[(u64, u64)], total: u64) -> ReaderPace {
        let mut pace = ReaderPace::new(millis(1000));
        for (at, kib) in ends {
            pace.pass(millis(*at), || (Bytes::from_kib(*kib), *kib));
        }
        pace.finish(Bytes::from_kib(total), total);
        pace
    }

    #[test]
    fn a_long_request_leaves_its_slots_as_they_were() {
        let pace = pace(&[(10, 1), (25, 2), (70, 3)], 4);
        let kib: Vec<u64> = pace.useful.iter().map(|b| b.to_kib_floor().get()).collect();
        assert_eq!(kib, [2, 3, 3, 4]);
        assert_eq!(pace.requests, [2, 3, 3, 4]);
    }

    #[test]
    fn readers_add_up_and_one_that_ended_stays() {
        let mut timeline = Timeline::over(millis(1000));
        timeline.add(&pace(&[(25, 2)], 5));
        timeline.add(&pace(&[(25, 1), (45, 7), (65, 9)], 11));
        assert_eq!(timeline.slot, millis(20));
        assert_eq!(timeline.requests, [3, 12, 14, 16]);
        timeline.add(&pace(&[], 1));
        assert_eq!(timeline.requests, [4, 13, 15, 17]);
        timeline.add(&ReaderPace::default());
        assert_eq!(timeline.requests, [4, 13, 15, 17]);
    }

    #[test]
    fn however_long_it_takes_the_line_stays_short() {
        let mut pace = ReaderPace::new(Nanos::new(1));
        pace.pass(Nanos::MAX, || (Bytes::ZERO, 0));
        assert!(pace.useful.len() <= 2 * SLOT_COUNT as usize);
    }
}
