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
pub struct CourseSlot {
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
    pub slots: Vec<CourseSlot>,
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
        let both = |pair: &[CourseSlot]| {
            pair.iter().fold(CourseSlot::default(), |sum, one| CourseSlot {
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
    course: SimTimeline,
    place: usize,
    begin: u64,
    end: u64,
}

impl TimelineRecorder {
    /// Returns the time integral of the number of requests in flight.
    pub(crate) fn queued(&self) -> Nanos {
        self.course.slots.iter().map(|slot| slot.queued).sum()
    }

    pub(crate) fn into_course(self) -> SimTimeline {
        self.course
    }

    #[inline]
    fn at(&mut self, now: Nanos) -> &mut CourseSlot {
        if !(self.begin..self.end).contains(&now.get()) {
            self.turn_to(now);
        }
        &mut self.course.slots[self.place]
    }

    fn turn_to(&mut self, now: Nanos) {
        let course = &mut self.course;
        let mut place = now.get() / course.slot.get();
        while place >= SLOTS_MAX as u64 {
            course.fold();
            place = now.get() / course.slot.get();
        }
        self.begin = place * course.slot.get();
        self.end = self.begin.saturating_add(course.slot.get());
        self.place = place as usize;
        if self.place >= course.slots.len() {
            course.slots.resize(self.place + 1, CourseSlot::default());
        }
    }

    #[inline]
    pub(crate) fn request(&mut self, now: Nanos, length: Bytes) {
        let pages = length.get().div_ceil(4096).max(1);
        let class = pages.next_power_of_two().trailing_zeros() as usize;
        self.course.sizes[class.min(SIZE_CLASSES - 1)] += 1;
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
            self.course.slots[self.place].queued += Nanos::new(span);
            return;
        }
        while from < to {
            self.at(from);
            let end = Nanos::new(self.end).min(to);
            let span = end.saturating_sub(from).get().saturating_mul(depth);
            self.course.slots[self.place].queued += Nanos::new(span);
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_with_the_time_and_lose_nothing() {
        let mut course = TimelineRecorder::default();
        for millis in 0..1000 {
            course.request(Nanos::from_millis(millis), Bytes::from_kib(millis % 64 + 1));
            course.window(Nanos::from_millis(millis), Pages::new(4));
        }
        course.queue(Nanos::ZERO, Nanos::from_secs(1), 3);
        let course = course.into_course();
        assert!(course.slots.len() <= SLOTS_MAX && course.slots.len() > SLOTS_MAX / 3);
        let sum = |of: fn(&CourseSlot) -> u64| course.slots.iter().map(of).sum::<u64>();
        assert_eq!((sum(|s| s.requests), sum(|s| s.windows)), (1000, 1000));
        assert_eq!(sum(|s| s.window_pages.get()), 4000);
        assert_eq!(sum(|s| s.queued.get()), 3_000_000_000);
        assert_eq!(course.sizes.iter().sum::<u64>(), 1000);
        assert_eq!(course.sizes[0], 64, "one in 16 is of 1 to 4 KiB: four of 64");
    }

    #[test]
    fn the_longest_simulation_has_room() {
        let mut course = TimelineRecorder::default();
        course.request(Nanos::from_secs(7 * 24 * 3600), Bytes::from_mib(512));
        let course = course.into_course();
        assert!(course.slots.len() <= SLOTS_MAX);
        assert_eq!(course.sizes[SIZE_CLASSES - 1], 1);
    }
}
