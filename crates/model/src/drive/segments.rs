//! The drive's cache segments, and its read-ahead.
//!
//! Read-ahead needs no events. The active segment stores where and when reading started and where
//! it will stop, and computes its end on demand.

use super::rotation::{Platter, Turns};
use super::segment_index::SegmentIndex;
use crate::order::LruList;

/// A contiguous byte range in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
}

/// The state of the segment that the head is reading into.
#[derive(Clone, Debug)]
struct Reading {
    segment: usize,
    since: u64,
    from: Turns,
    limit: u64,
    /// The time at which the head reaches `limit`.
    stops: u64,
    pre_read: PreRead,
}

impl Reading {
    /// Returns the time at which the head, if it continues to read, reaches a byte.
    fn time_of(&self, offset: u64, platter: &Platter) -> u64 {
        self.since.saturating_add(platter.span(platter.turns(offset) - self.from))
    }

    /// Returns the state with another limit.
    fn until(mut self, limit: u64, platter: &Platter) -> Self {
        self.limit = limit;
        self.stops = self.time_of(limit, platter);
        self
    }
}

/// The sectors before the wanted data on the same track that enter the cache: from `passed` on
/// immediately, from `all` on when the platter has completed a revolution at time `at`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PreRead {
    pub(super) passed: u64,
    pub(super) all: u64,
    pub(super) at: u64,
}

/// The result of a cache lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    Miss,
    Hit {
        segment: usize,
    },
    /// All data will be present at time `at` if the head continues as planned.
    Coming {
        segment: usize,
        at: u64,
    },
    /// The data starts within the range being read and ends beyond the planned limit.
    Beyond {
        segment: usize,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    /// Excludes all segments at once for most requests, which match none.
    index: SegmentIndex,
    /// The segments in order of use.
    order: LruList,
    size: u64,
    keep_delivered: bool,
    reading: Option<Reading>,
    uses: u64,
    /// Increases with each change after which the cache may receive other data than planned.
    generation: u64,
}

impl Segments {
    pub(super) fn new(count: usize, size: u64, keep_delivered: bool) -> Self {
        let count = count.max(1);
        Self {
            all: vec![Segment::default(); count],
            index: SegmentIndex::new(count),
            order: LruList::new(count),
            size,
            keep_delivered,
            reading: None,
            uses: 0,
            generation: 0,
        }
    }

    /// Changes the range of a segment.
    fn place(&mut self, index: usize, start: u64, end: u64) {
        let segment = &mut self.all[index];
        (segment.start, segment.end) = (start, end);
        self.index.set(index, start, end);
    }

    /// Returns the generation of the cache. While it is unchanged, data that was neither present
    /// nor [planned](Self::may_come) is still not present.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether `start` is in the range that the head is about to read or has just read.
    pub(super) fn may_come(&self, start: u64) -> bool {
        self.reading.as_ref().is_some_and(|reading| {
            let segment = &self.all[reading.segment];
            let first = reading.pre_read.all.min(segment.start);
            first <= start && start <= reading.limit.max(segment.end)
        })
    }

    /// Returns the end of a segment at `time`.
    fn end(&self, index: usize, time: u64, platter: &Platter) -> u64 {
        let end = self.all[index].end;
        match &self.reading {
            Some(reading) if reading.segment == index && time > reading.since => {
                if time >= reading.stops {
                    return reading.limit.max(end);
                }
                let place = reading.from + platter.turned(time - reading.since);
                platter.offset_at(place).clamp(end, reading.limit.max(end))
            }
            _ => end,
        }
    }

    /// Returns the start of a segment at `time`.
    fn start(&self, index: usize, time: u64) -> u64 {
        let start = self.all[index].start;
        match &self.reading {
            Some(reading) if reading.segment == index && time >= reading.pre_read.at => {
                start.min(reading.pre_read.all)
            }
            _ => start,
        }
    }

    /// Looks up `start..end` at `time`.
    pub(super) fn lookup(&self, start: u64, end: u64, time: u64, platter: &Platter) -> Lookup {
        let being_read = self.reading.as_ref().map_or(usize::MAX, |reading| reading.segment);
        let holds = |segment: &Segment| {
            (segment.start <= start)
                & (end <= segment.end)
                & (segment.start != segment.end)
                & (segment.end.saturating_sub(self.size) <= start)
        };
        let known = |&index: &usize| (index != being_read) & holds(&self.all[index]);
        let hit = self.candidates(start).find(known);
        if being_read < hit.unwrap_or(usize::MAX)
            && let Some(found) = self.lookup_active_segment(start, end, time, platter)
        {
            return found;
        }
        hit.map_or(Lookup::Miss, |segment| Lookup::Hit { segment })
    }

    /// Looks up a range in the active segment.
    fn lookup_active_segment(
        &self,
        start: u64,
        end: u64,
        time: u64,
        platter: &Platter,
    ) -> Option<Lookup> {
        let reading = self.reading.as_ref()?;
        let index = reading.segment;
        let segment = self.all.get(index)?;
        let limit = reading.limit.max(segment.end);
        let first = reading.pre_read.all.min(segment.start);
        if start < first || start > limit || limit == first {
            return None;
        }
        let now = self.end(index, time, platter);
        if start < self.start(index, time).max(now.saturating_sub(self.size)) {
            return None;
        }
        if end <= now {
            return Some(Lookup::Hit { segment: index });
        }
        if time >= reading.stops {
            return None;
        }
        if end > limit {
            return Some(Lookup::Beyond { segment: index });
        }
        let at = reading.time_of(end, platter).max(time);
        Some(Lookup::Coming { segment: index, at })
    }

    /// Returns whether a segment contains, or recently contained, the byte before `start`.
    pub(super) fn goes_on(&self, start: u64) -> bool {
        self.continued_by(start).is_some()
    }

    fn continued_by(&self, start: u64) -> Option<usize> {
        let holds = |&index: &usize| {
            let segment = &self.all[index];
            (segment.used > 0) & (segment.start <= start) & (start <= segment.end)
        };
        self.candidates(start).find(holds)
    }

    /// Returns the segments that may contain a byte or end right before it.
    #[inline]
    fn candidates(&self, offset: u64) -> std::ops::Range<usize> {
        let count = self.all.len();
        self.index.first(offset).map_or(count..count, |first| first..count)
    }

    /// Returns the segment that `start` continues, or the least recently used one.
    fn choose(&self, start: u64) -> usize {
        self.continued_by(start).unwrap_or_else(|| self.order.oldest())
    }

    /// Starts a read and returns its segment.
    pub(super) fn read(&mut self, span: ReadSpan, platter: &Platter) -> usize {
        self.stop(span.since, platter);
        self.generation += 1;
        let index = self.choose(span.start);
        self.touch(index);
        let Segment { start, end, .. } = self.all[index];
        if end == start || !(start..=end).contains(&span.start) {
            self.place(index, span.pre_read.passed, span.start);
        } else {
            self.place(index, start.min(span.pre_read.passed), end);
        }
        let limit = span.limit.max(span.start);
        let ReadSpan { since, from, pre_read, .. } = span;
        let reading = Reading { segment: index, since, from, limit, stops: 0, pre_read };
        self.reading = Some(reading.until(limit, platter));
        index
    }

    /// Extends reading to `limit` if the head is reading this segment and has not stopped by
    /// `time`. Returns whether the head is reading, for this or another segment.
    pub(super) fn prolong(
        &mut self,
        segment: usize,
        limit: u64,
        time: u64,
        platter: &Platter,
    ) -> bool {
        let Some(reading) = &mut self.reading else { return false };
        let goes_on = time < reading.stops;
        if goes_on && reading.segment == segment && limit > reading.limit {
            self.generation += 1;
            *reading = reading.clone().until(limit, platter);
        }
        goes_on
    }

    /// Resumes read-ahead at time `since`, from the end of a segment.
    pub(super) fn restart(&mut self, index: usize, since: u64, limit: u64, platter: &Platter) {
        self.generation += 1;
        let start = self.all[index].end;
        let from = platter.turns(start);
        let pre_read = PreRead { passed: start, all: start, at: 0 };
        let limit = limit.max(start);
        let reading = Reading { segment: index, since, from, limit, stops: 0, pre_read };
        self.reading = Some(reading.until(limit, platter));
    }

    /// Stops reading and keeps the data read by `time`. Returns the head's place, if known.
    pub(super) fn stop(&mut self, time: u64, platter: &Platter) -> Option<Turns> {
        let reading = self.reading.as_ref()?;
        let (index, begun) = (reading.segment, time >= reading.since);
        let (start, end) = (self.start(index, time), self.end(index, time, platter));
        self.reading = None;
        self.place(index, start.max(end.saturating_sub(self.size)), end);
        begun.then(|| platter.turns(end))
    }

    /// Returns the time at which read-ahead stops; `None` if there is none.
    pub(super) fn stops_at(&self) -> Option<u64> {
        let reading = self.reading.as_ref()?;
        Some(reading.stops.max(reading.pre_read.at))
    }

    /// Returns the time at which the head, if it continues to read, passes `offset`.
    pub(super) fn passes(&self, offset: u64, platter: &Platter) -> Option<u64> {
        self.reading.as_ref().map(|reading| reading.time_of(offset, platter))
    }

    /// Returns the end of a segment's settled data, which excludes data that is being read.
    pub(super) fn settled_end(&self, index: usize) -> u64 {
        self.all[index].end
    }

    /// Records that the host has received this segment's data up to `end`.
    pub(super) fn deliver(&mut self, index: usize, end: u64) {
        self.touch(index);
        if !self.keep_delivered {
            let Segment { start, end: last, .. } = self.all[index];
            let start = start.max(end);
            self.place(index, start, last.max(start));
            if let Some(reading) = self.reading.as_mut().filter(|reading| reading.segment == index)
            {
                reading.pre_read.all = start;
            }
        }
    }

    /// Adds the data `start..end`, which the host wrote, unless it is already cached.
    pub(super) fn write(&mut self, start: u64, end: u64, time: u64, platter: &Platter) {
        if self.lookup(start, end, time, platter) != Lookup::Miss {
            return;
        }
        self.generation += 1;
        let being_read = self.reading.as_ref().map(|reading| reading.segment);
        let free = |&index: &usize| Some(index) != being_read;
        let goes_on = |&index: &usize| {
            let segment = &self.all[index];
            free(&index) && segment.end > segment.start && segment.end == start
        };
        let oldest = || (0..self.all.len()).filter(free).min_by_key(|&index| self.all[index].used);
        let Some(index) = (0..self.all.len()).find(goes_on).or_else(oldest) else { return };
        self.touch(index);
        let before = &self.all[index];
        let goes_on = before.end == start && before.end != before.start;
        let start = if goes_on { before.start } else { start };
        self.place(index, start.max(end.saturating_sub(self.size)), end);
    }

    fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.all[index].used = self.uses;
        self.order.use_again(index);
    }
}

/// A read of `start..limit` from the time `since` on, possibly with data before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadSpan {
    pub(super) pre_read: PreRead,
    pub(super) start: u64,
    /// The position of `start` on the platter.
    pub(super) from: Turns,
    pub(super) limit: u64,
    pub(super) since: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn platter() -> Platter {
        Platter::new(1 << 30, 6000.0, [100.0, 100.0], 0.0).with_cylinders(100.0)
    }

    fn segments(keep_delivered: bool) -> Segments {
        let mut segments = Segments::new(4, 1 << 20, keep_delivered);
        let pre_read = PreRead::default();
        let span = ReadSpan { pre_read, start: 0, from: 0.0, limit: 500_000, since: 1_000 };
        segments.read(span, &platter());
        segments
    }

    #[test]
    fn what_the_head_has_passed_is_a_hit_and_the_rest_is_coming() {
        let segments = segments(true);
        // 100 MB/s is 0.1 bytes per nanosecond.
        let lookup = |start, end, time| segments.lookup(start, end, time, &platter());
        assert_eq!(lookup(0, 4096, 1_000), Lookup::Coming { segment: 0, at: 1_000 + 40_960 });
        assert_eq!(lookup(0, 4096, 50_000), Lookup::Hit { segment: 0 });
        assert_eq!(lookup(490_000, 510_000, 50_000), Lookup::Beyond { segment: 0 });
        assert_eq!(lookup(490_000, 510_000, 6_000_000), Lookup::Miss);
        assert_eq!(lookup(490_000, 500_000, 6_000_000), Lookup::Hit { segment: 0 });
        assert_eq!(lookup(600_000, 610_000, 50_000), Lookup::Miss);
    }

    #[test]
    fn stopping_freezes_what_there_is() {
        let mut segments = segments(true);
        let head = segments.stop(1_001_000, &platter()).expect("it was reading");
        assert!((head - platter().turns(100_000)).abs() < 1e-6);
        assert_eq!(segments.lookup(0, 99_000, 9_000_000, &platter()), Lookup::Hit { segment: 0 });
        assert_eq!(segments.lookup(0, 101_000, 9_000_000, &platter()), Lookup::Miss);
    }

    #[test]
    fn delivered_data_may_be_forgotten() {
        let mut segments = segments(false);
        segments.deliver(0, 4096);
        assert_eq!(segments.lookup(0, 4096, 9_000_000, &platter()), Lookup::Miss);
        assert_eq!(segments.lookup(4096, 8192, 9_000_000, &platter()), Lookup::Hit { segment: 0 });
    }

    #[test]
    fn a_segment_holds_no_more_than_its_size() {
        let mut segments = Segments::new(2, 1 << 16, true);
        let pre_read = PreRead::default();
        let span = ReadSpan { pre_read, start: 0, from: 0.0, limit: 1 << 20, since: 0 };
        segments.read(span, &platter());
        let late = 1_000_000_000;
        assert_eq!(segments.lookup(0, 4096, late, &platter()), Lookup::Miss);
        let start = (1 << 20) - 4096;
        assert_eq!(segments.lookup(start, 1 << 20, late, &platter()), Lookup::Hit { segment: 0 });
    }
}
