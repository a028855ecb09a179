//! Activity of the device and of read-ahead over time.
//!
//! The duration of a simulation is not known at its start. Therefore slots are short at first and
//! are merged in pairs whenever there are too many of them.

use units::{Bytes, Nanos, Pages};

/// Maximum number of slots; more are merged in pairs.
const SLOTS_MAX: usize = 96;
/// Initial length of a slot.
const INITIAL_SLOT_SPAN: Nanos = Nanos::from_micros(250);
/// Number of classes of request sizes, by powers of two from 4 KiB on.
const SIZE_CLASSES: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineSlot {
    pub requests: u64,
    pub bytes: Bytes,
    /// Time integral of the number of requests in flight.
    pub queued: Nanos,
    /// Windows that the policy submitted.
    pub windows: u64,
    pub window_pages: Pages,
}

/// Activity during a simulation, in slots of equal length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimTimeline {
    pub slot: Nanos,
    pub slots: Vec<TimelineSlot>,
    /// Device requests by size: the first class up to 4 KiB, each next one up to twice as large.
    pub sizes: [u64; SIZE_CLASSES],
}

impl Default for SimTimeline {
    fn default() -> Self {
        Self {
            slot: INITIAL_SLOT_SPAN,
            slots: Vec::with_capacity(SLOTS_MAX),
            sizes: [0; SIZE_CLASSES],
        }
    }
}

impl SimTimeline {
    fn fold(&mut self) {
        let both = |pair: &[TimelineSlot]| {
            pair.iter().fold(TimelineSlot::default(), |sum, one| TimelineSlot {
                requests: sum.requests + one.requests,
                bytes: sum.bytes + one.bytes,
                queued: sum.queued + one.queued,
                windows: sum.windows + one.windows,
                window_pages: sum.window_pages + one.window_pages,
            })
        };
        self.slots = self.slots.chunks(2).map(both).collect();
        self.slot = Nanos::new(self.slot.get().saturating_mul(2));
    }
}

/// A timeline during recording, and its last written slot: the next event usually belongs to the
/// same slot, which is then found without a division.
#[derive(Debug, Default)]
pub(crate) struct TimelineRecorder {
    timeline: SimTimeline,
    place: usize,
    begin: u64,
    end: u64,
}

impl TimelineRecorder {
    /// Returns the time integral of the number of requests in flight.
    pub(crate) fn queued(&self) -> Nanos {
        self.timeline.slots.iter().map(|slot| slot.queued).sum()
    }

    pub(crate) fn into_timeline(self) -> SimTimeline {
        self.timeline
    }

    #[inline]
    fn at(&mut self, now: Nanos) -> &mut TimelineSlot {
        if !(self.begin..self.end).contains(&now.get()) {
            self.turn_to(now);
        }
        &mut self.timeline.slots[self.place]
    }

    fn turn_to(&mut self, now: Nanos) {
        let timeline = &mut self.timeline;
        let mut place = now.get() / timeline.slot.get();
        while place >= SLOTS_MAX as u64 {
            timeline.fold();
            place = now.get() / timeline.slot.get();
        }
        self.begin = place * timeline.slot.get();
        self.end = self.begin.saturating_add(timeline.slot.get());
        self.place = place as usize;
        if self.place >= timeline.slots.len() {
            timeline.slots.resize(self.place + 1, TimelineSlot::default());
        }
    }

    #[inline]
    pub(crate) fn request(&mut self, now: Nanos, length: Bytes) {
        let pages = length.get().div_ceil(4096).max(1);
        let class = pages.next_power_of_two().trailing_zeros() as usize;
        self.timeline.sizes[class.min(SIZE_CLASSES - 1)] += 1;
        let slot = self.at(now);
        slot.requests += 1;
        slot.bytes += length;
    }

    #[inline]
    pub(crate) fn window(&mut self, now: Nanos, pages: Pages) {
        let slot = self.at(now);
        slot.windows += 1;
        slot.window_pages += pages;
    }

    /// Records that `depth` requests were in flight from `from` to `to`.
    #[inline]
    pub(crate) fn queue(&mut self, mut from: Nanos, to: Nanos, depth: u64) {
        if depth == 0 {
            return;
        }
        if self.begin <= from.get() && to.get() <= self.end {
            let span = to.saturating_sub(from).get().saturating_mul(depth);
            self.timeline.slots[self.place].queued += Nanos::new(span);
            return;
        }
        while from < to {
            self.at(from);
            let end = Nanos::new(self.end).min(to);
            let span = end.saturating_sub(from).get().saturating_mul(depth);
            self.timeline.slots[self.place].queued += Nanos::new(span);
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_with_the_time_and_lose_nothing() {
        let mut timeline = TimelineRecorder::default();
        for millis in 0..1000 {
            timeline.request(Nanos::from_millis(millis), Bytes::from_kib(millis % 64 + 1));
            timeline.window(Nanos::from_millis(millis), Pages::new(4));
        }
        timeline.queue(Nanos::ZERO, Nanos::from_secs(1), 3);
        let timeline = timeline.into_timeline();
        assert!(timeline.slots.len() <= SLOTS_MAX && timeline.slots.len() > SLOTS_MAX / 3);
        let sum = |of: fn(&TimelineSlot) -> u64| timeline.slots.iter().map(of).sum::<u64>();
        assert_eq!((sum(|s| s.requests), sum(|s| s.windows)), (1000, 1000));
        assert_eq!(sum(|s| s.window_pages.get()), 4000);
        assert_eq!(sum(|s| s.queued.get()), 3_000_000_000);
        assert_eq!(timeline.sizes.iter().sum::<u64>(), 1000);
        assert_eq!(timeline.sizes[0], 64, "one in 16 is of 1 to 4 KiB: four of 64");
    }

    #[test]
    fn the_longest_simulation_has_room() {
        let mut timeline = TimelineRecorder::default();
        timeline.request(Nanos::from_secs(7 * 24 * 3600), Bytes::from_mib(512));
        let timeline = timeline.into_timeline();
        assert!(timeline.slots.len() <= SLOTS_MAX);
        assert_eq!(timeline.sizes[SIZE_CLASSES - 1], 1);
    }
}
