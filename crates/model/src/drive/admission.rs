//! Admission of requests to a drive. The drive serves a request from the cache or from the data
//! that the head is reading, accepts it as a write, or queues it for the mechanism.

use std::cmp::Reverse;

use super::queue::Command;
use super::rotation::floor;
use super::segments::Lookup;
use super::{Drive, SAME_PLACE, rounded, unit};
use crate::device::{Request, RequestId, RequestKind};

impl Drive {
    /// Admits waiting requests as far as the queue depth and flushes allow.
    pub(super) fn admit(&mut self) {
        while let Some(&request) = self.outside.front() {
            if !self.has_room(request.kind) {
                return;
            }
            self.outside.pop_front();
            self.let_in(request);
        }
    }

    /// Returns whether a request can be admitted now.
    pub(super) fn has_room(&self, kind: RequestKind) -> bool {
        let room = if kind == RequestKind::Flush { 1 } else { self.spec.queue_depth };
        self.flush.is_none() && self.inside < room
    }

    pub(super) fn let_in(&mut self, request: Request) {
        self.inside += 1;
        self.last_arrival = self.clock;
        let extra = (unit(&mut self.rng) * self.times.jitter) as u64;
        match request.kind {
            RequestKind::Read => self.admit_read(request, extra),
            RequestKind::Write => self.admit_write(request, extra),
            RequestKind::Flush => {
                self.flush = Some((request.id, self.after(self.times.write + extra)));
            }
        }
    }

    /// Returns the start and end of the part of a request within the drive.
    fn span(&self, request: Request) -> (u64, u64) {
        let capacity = self.spec.capacity.get();
        let start = request.offset.get().min(capacity);
        (start, start.saturating_add(request.length.get()).min(capacity))
    }

    pub(super) fn after(&self, span: u64) -> u64 {
        self.clock.saturating_add(span)
    }

    fn admit_read(&mut self, request: Request, extra: u64) {
        self.write_end = None;
        let (start, end) = self.span(request);
        let ready = self.after(self.times.hit + extra);
        if self.writes.covers(start, end) {
            self.counters.cache_hits += 1;
            return self.deliver(request.id, start, end, ready, ready);
        }
        let undisturbed = self.queue.is_empty() && self.mechanism_free <= self.clock;
        match self.segments.lookup(start, end, self.clock, &self.platter) {
            Lookup::Hit { segment } => {
                self.counters.cache_hits += 1;
                self.segments.deliver(segment, end);
                self.deliver(request.id, start, end, ready, ready);
                if undisturbed {
                    self.read_on(segment, end);
                }
            }
            Lookup::Coming { segment, at }
                if self.queue.is_empty() || at <= self.mechanism_free =>
            {
                self.hit_under_the_head(request.id, segment, (start, end), ready, at);
                if undisturbed {
                    self.read_on(segment, end);
                }
            }
            Lookup::Beyond { segment } if undisturbed => {
                self.segments.prolong(segment, end, self.clock, &self.platter);
                let at = self.segments.passes(end, &self.platter).unwrap_or(ready);
                self.hit_under_the_head(request.id, segment, (start, end), ready, at);
                self.read_on(segment, end);
            }
            found => {
                let is_far = found == Lookup::Miss && !self.segments.may_come(start);
                let missed_in = is_far.then(|| self.segments.generation());
                self.enqueue(request, self.after(self.times.read + extra), missed_in);
            }
        }
    }

    /// Serves a read from the data that the head is reading; the mechanism stays busy until then.
    fn hit_under_the_head(
        &mut self,
        id: RequestId,
        segment: usize,
        (start, end): (u64, u64),
        ready: u64,
        at: u64,
    ) {
        self.counters.cache_hits += 1;
        let free = self.mechanism_free.max(self.clock);
        self.count_busy(at.saturating_sub(free));
        self.mechanism_free = self.mechanism_free.max(at);
        self.segments.deliver(segment, end);
        self.deliver(id, start, end, ready, at);
    }

    /// Continues read-ahead after an undisturbed read up to `end`. If the head has stopped,
    /// read-ahead restarts when half of the data read ahead is used.
    fn read_on(&mut self, segment: usize, end: u64) {
        let ahead = self.spec.read_ahead.get();
        let limit = self.ahead_of(end, ahead);
        if ahead == 0 || self.segments.prolong(segment, limit, self.clock, &self.platter) {
            return;
        }
        self.stop_reading();
        let rest = self.segments.settled_end(segment);
        let place = self.platter.turns(rest);
        let there = (place - self.head).abs() <= SAME_PLACE;
        if there && rest.saturating_sub(end) <= ahead / 2 && rest < limit {
            let wait = self.platter.wait_turns(place, self.clock);
            let since = self.after(self.platter.span(wait));
            self.segments.restart(segment, since, limit, &self.platter);
        }
    }

    /// Returns the byte at which read-ahead after `end` stops.
    pub(super) fn ahead_of(&self, end: u64, ahead: u64) -> u64 {
        let limit = end.saturating_add(ahead).min(self.spec.capacity.get());
        if !self.spec.read_ahead_within_track {
            return limit;
        }
        let track = floor(self.platter.turns(end));
        limit.min(self.platter.offset_at(track + 1.0)).max(end)
    }

    /// Transfers `start..end` to the host from `ready` on; completes no earlier than `available`.
    pub(super) fn deliver(
        &mut self,
        id: RequestId,
        start: u64,
        end: u64,
        ready: u64,
        available: u64,
    ) {
        let transfer = rounded((end - start) as f64 * self.times.bus);
        let from = if self.spec.store_and_forward { ready.max(available) } else { ready };
        self.bus_free = self.bus_free.max(from).saturating_add(transfer);
        self.finish(id, self.bus_free.max(available));
    }

    pub(super) fn finish(&mut self, id: RequestId, at: u64) {
        self.sequence += 1;
        self.pending.push(Reverse((at, self.sequence, id)));
    }

    pub(super) fn enqueue(&mut self, request: Request, ready: u64, missed_in: Option<u64>) {
        let (start, end) = self.span(request);
        self.queue.push(Command {
            id: request.id,
            is_write: request.kind == RequestKind::Write,
            start,
            end,
            place: self.platter.turns(start),
            arrival: self.clock,
            ready,
            missed_in,
        });
    }

    fn admit_write(&mut self, request: Request, extra: u64) {
        let (start, end) = self.span(request);
        let streak = if self.write_end == Some(start) { self.times.streak } else { 0 };
        self.write_end = Some(end);
        let ready = self.after(self.times.write.saturating_sub(streak) + extra);
        if !self.writes.may_hold(request.length.get()) {
            return self.enqueue(request, ready, None);
        }
        self.blocked.push_back((request, ready));
        self.absorb();
    }

    /// Accepts waiting writes while the write cache has space.
    pub(super) fn absorb(&mut self) {
        while let Some(&(request, ready)) = self.blocked.front() {
            if !self.writes.has_room(request.length.get(), self.clock) {
                return;
            }
            self.blocked.pop_front();
            let (start, end) = self.span(request);
            self.writes.insert(start, end);
            if self.segments.stops_at().is_some_and(|stops| stops <= self.clock) {
                self.stop_reading();
            }
            self.segments.write(start, end, self.clock, &self.platter);
            let ready = ready.max(self.clock);
            self.deliver(request.id, start, end, ready, ready);
        }
    }
}
