//! The mechanism of a drive: seek, read or write, read-ahead.

use units::Nanos;

use super::queue::Command;
use super::rotation::{Turns, floor};
use super::segments::{Lookup, PreRead, ReadSpan};
use super::{Drive, QueueOrder, ReadBefore, SAME_PLACE};

/// Margin in nanoseconds; rounding errors are about ten, and a rotation takes millions.
const ROUND_MARGIN: f64 = 100.0;

impl Drive {
    /// Returns the time of a seek to a place, in nanoseconds.
    fn seek_to(&self, place: Turns, is_write: bool) -> u64 {
        let ahead = place - self.head;
        if ahead.abs() <= SAME_PLACE {
            return 0;
        }
        // Up to one rotation ahead, the track skew hides the track switch, so waiting suffices.
        let seek = if (0.0..1.0).contains(&ahead) || floor(place) == floor(self.head) {
            0
        } else {
            let distance = self.platter.cylinder(place) - self.platter.cylinder(self.head);
            self.seek.time(distance.abs().max(1.0)) as u64
        };
        seek.max(self.times.settle) + if is_write { self.times.write_settle } else { 0 }
    }

    /// Returns the part of a rotation for which the head waits for a place after a seek.
    fn wait_for(&self, place: Turns, seek: u64) -> f64 {
        self.platter.wait_turns(place, self.clock.saturating_add(seek))
    }

    /// Returns the nanoseconds until the head is over a place, `within` ns after a rotation began.
    #[inline]
    fn positioning(&self, place: Turns, is_write: bool, within: u64) -> f64 {
        let seek = self.seek_to(place, is_write);
        let wait = self.platter.wait_from(place, self.platter.within_after(within, seek));
        seek as f64 + self.platter.span(wait) as f64
    }

    /// Returns a lower bound of the positioning time in nanoseconds, at this angle. However short
    /// the seek, the place must pass under the head. If it passes before the arm can reach another
    /// track, the next pass counts. (The bound treats a place that has just passed, within the
    /// rounding error, as present.)
    #[inline]
    fn least_positioning(&self, place: Turns, angle: f64) -> f64 {
        let round = self.platter.comes_round(place, angle) - ROUND_MARGIN;
        // A place on this track or up to one rotation ahead needs no seek.
        let seeks = (place - self.head).abs() >= 1.0;
        if seeks && round < self.times.least_seek - 2.0 * ROUND_MARGIN {
            round + self.platter.turn()
        } else {
            round
        }
    }

    pub(super) fn stop_reading(&mut self) {
        if let Some(place) = self.segments.stop(self.clock, &self.platter) {
            self.head = place;
        }
    }

    /// Stops read-ahead, for another operation.
    fn free_the_head(&mut self) {
        self.stop_reading();
        self.absorb();
    }

    /// Starts the next command in the queue.
    pub(super) fn start(&mut self) {
        self.free_the_head();
        self.destaged_last = false;
        let taken = match self.spec.queue_order {
            QueueOrder::Fifo => self.queue.take_oldest(self.clock),
            QueueOrder::Nearest => {
                let mut queue = std::mem::take(&mut self.queue);
                let within = self.platter.within_turn(self.clock);
                let angle = self.platter.angle(within);
                let least = |command: &Command| self.least_positioning(command.place, angle);
                let cost =
                    |command: &Command| self.positioning(command.place, command.is_write, within);
                let taken = queue.take_nearest(self.clock, self.spec.ageing, least, cost);
                self.queue = queue;
                taken
            }
        };
        let Some(command) = taken else { return };
        if !command.is_write && self.is_cached(&command) {
            return;
        }
        let waited = command.ready < self.clock;
        let (on_track, begin, done) = self.operate(command.place, command.end, command.is_write);
        if command.is_write {
            let at = self.bus_free.max(command.ready).saturating_add(
                ((command.end - command.start) as f64 * self.times.bus).round() as u64,
            );
            return self.finish(command.id, at.max(done));
        }
        self.deliver(command.id, command.start, command.end, begin, done);
        self.fill(&command, on_track, begin, waited);
    }

    /// Serves a read from the cache if its data arrived there while the command waited.
    fn is_cached(&mut self, command: &Command) -> bool {
        let Command { id, start, end, missed_in, .. } = *command;
        if missed_in == Some(self.segments.generation()) && self.writes.is_empty() {
            return false;
        }
        match self.segments.lookup(start, end, self.clock, &self.platter) {
            Lookup::Hit { segment } => self.segments.deliver(segment, end),
            _ if self.writes.covers(start, end) => {}
            _ => return false,
        }
        self.counters.cache_hits += 1;
        self.deliver(id, start, end, self.clock, self.clock);
        true
    }

    pub(super) fn count_busy(&mut self, span: u64) {
        self.counters.busy = Nanos::new(self.counters.busy.get().saturating_add(span));
    }

    /// Moves the head from `place` to the byte `end`. Returns the times at which the head is on the
    /// track, at `place`, and at `end`.
    fn operate(&mut self, place: Turns, end: u64, is_write: bool) -> (u64, u64, u64) {
        let last = self.platter.turns(end);
        let seek = self.seek_to(place, is_write);
        let wait = self.wait_for(place, seek);
        if (place - self.head).abs() > SAME_PLACE {
            self.counters.seeks += 1;
        }
        let on_track = self.after(seek);
        let begin = on_track.saturating_add(self.platter.span(wait));
        let done = begin.saturating_add(self.platter.span(last - place));
        self.count_busy(done.saturating_sub(self.clock));
        self.head = last;
        self.mechanism_free = done;
        (on_track, begin, done)
    }

    /// Adds a read to the cache, with the data that the head reads before and after it.
    fn fill(&mut self, command: &Command, on_track: u64, begin: u64, waited: bool) {
        let pre_read = self.pre_read(command, on_track, begin);
        let undisturbed = !waited && self.queue.is_empty();
        let may = (self.spec.read_ahead_when_queued || undisturbed)
            && (!self.spec.read_ahead_after_run || self.segments.goes_on(command.start));
        let ahead = if may { self.spec.read_ahead.get() } else { 0 };
        let limit = self.ahead_of(command.end, ahead);
        let (start, from) = (command.start, command.place);
        let span = ReadSpan { pre_read, start, from, limit, since: begin };
        let segment = self.segments.read(span, &self.platter);
        self.segments.deliver(segment, command.end);
        let forced = self.spec.read_ahead_at_least.get();
        if self.spec.read_ahead_when_queued && forced > 0 {
            let until = command.end.saturating_add(forced).min(limit);
            let passed = self.segments.passes(until, &self.platter).unwrap_or(0);
            self.mechanism_free = self.mechanism_free.max(passed);
        }
    }

    /// Returns the data that the head reads before the wanted data, if it is on the track at
    /// `on_track` and over the wanted data at `begin`.
    fn pre_read(&self, command: &Command, on_track: u64, begin: u64) -> PreRead {
        let track = floor(command.place);
        let landed = (command.place - self.platter.turned(begin - on_track)).max(track);
        let offset_of = |place| self.platter.offset_at(place).min(command.start);
        match self.spec.read_before {
            ReadBefore::Nothing => PreRead { passed: command.start, all: command.start, at: 0 },
            ReadBefore::Passing => {
                PreRead { passed: offset_of(landed), all: offset_of(landed), at: 0 }
            }
            ReadBefore::Track => PreRead {
                passed: offset_of(landed),
                all: offset_of(track),
                at: on_track.saturating_add(self.platter.span(1.0)),
            },
        }
    }

    /// Writes the piece of the write cache with the shortest positioning time.
    pub(super) fn destage(&mut self) {
        self.free_the_head();
        self.destaged_last = true;
        let near = self.platter.offset_at(self.head);
        let within = self.platter.within_turn(self.clock);
        let cost = |start| self.positioning(self.platter.turns(start), true, within);
        let nearest = self
            .writes
            .candidates(near)
            .map(|start| (cost(start), start))
            .min_by(|left, right| left.0.total_cmp(&right.0));
        let Some((start, end)) = nearest.and_then(|(_, start)| self.writes.piece(start)) else {
            return;
        };
        let (_, _, done) = self.operate(self.platter.turns(start), end, true);
        self.writes.remove(start, end, done);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Bytes;

    use super::*;
    use crate::drive::DriveSpec;

    proptest! {
        /// `least_positioning` is a lower bound of `positioning`.
        #[test]
        fn positioning_never_takes_less_than_the_least(
            head in 0u64..1 << 38, ahead in prop_oneof![0u64..1 << 22, 0u64..1 << 38],
            clock in 0u64..1 << 40, settle_ms in prop::sample::select(vec![0.0, 0.5, 2.0]),
            track_ms in 0.1f64..8.0,
        ) {
            let mut spec =
                DriveSpec::new(Bytes::new(1 << 39), 7200.0, [track_ms, 8.5], [107.0, 52.0]);
            spec.settle_ms = settle_ms;
            let mut drive = Drive::new(&spec, 1).expect("a drive");
            (drive.head, drive.clock) = (drive.platter.turns(head), clock);
            let within = drive.platter.within_turn(clock);
            for byte in [head + ahead, head.saturating_sub(ahead)] {
                let place = drive.platter.turns(byte);
                let least = drive.least_positioning(place, drive.platter.angle(within));
                let takes = drive.positioning(place, false, within);
                // A place that has just passed counts as present.
                let passed = drive.platter.comes_round(place, drive.platter.angle(within))
                    > drive.platter.turn() - ROUND_MARGIN;
                prop_assert!(passed || least <= takes, "{least} {takes}");
            }
        }
    }
}
