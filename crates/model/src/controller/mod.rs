//! A controller (or a file server) in front of another device: a processor with a time per command,
//! a cache with read-ahead, and a link.
//!
//! The controller starts read-ahead at the second request of a run and stops it with the run. It
//! reads ahead only while few host requests are open: with many, the host's read-ahead keeps the
//! disks busy. A write passes the link and then goes to the device. If a non-volatile write cache
//! has space for the write, it completes at once and goes to the device later.

mod cache;
mod streams;

use std::collections::VecDeque;

use units::{Bytes, Nanos};

use crate::agenda::Agenda;
use crate::device::{after, ceil};
use crate::front::{drain_completions, run_to_completion};
use crate::jitter::Jitter;
use crate::slots::{SlotIndex, Slots};
pub use crate::spec::ControllerSpec;
use crate::{Completion, Counters, Device, Request, RequestId, RequestKind};
use cache::{CacheLookup, ControllerCache};
use streams::StreamTable;

/// A request from the host.
#[derive(Debug)]
struct Call {
    id: RequestId,
    kind: RequestKind,
    offset: u64,
    length: u64,
    left: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The processor has decoded the command.
    Decoded(SlotIndex),
    Received(SlotIndex),
    Done(SlotIndex),
}

/// A request to the device behind the controller.
#[derive(Clone, Copy, Debug)]
enum Fetch {
    Call(SlotIndex),
    /// Read-ahead of a range of lines; the end is exclusive.
    Lines(u64, u64),
    /// A write of this many bytes from the write cache.
    Destage(u64),
}

/// The times of a [`ControllerSpec`] in nanoseconds.
#[derive(Debug)]
struct Times {
    overhead: u64,
    latency: u64,
    jitter: f64,
    /// Transfer time in nanoseconds per byte.
    link: f64,
}

pub struct Controller {
    spec: ControllerSpec,
    times: Times,
    jitter: Jitter,
    behind: Box<dyn Device>,
    /// The next wake time of the device behind; `Nanos::MAX` if it has none.
    behind_wakes: Nanos,
    agenda: Agenda<Event>,
    calls: Slots<Call>,
    open: usize,
    fetches: Slots<Fetch>,
    cache: ControllerCache,
    streams: StreamTable,
    processor_free: Nanos,
    link_free: Nanos,
    dirty: u64,
    arrived: Vec<Completion>,
    finished: VecDeque<Completion>,
    counters: Counters,
}

impl Controller {
    /// Creates the controller of a valid specification in front of `behind`.
    pub(crate) fn new(spec: &ControllerSpec, behind: Box<dyn Device>, seed: u64) -> Self {
        let nanos = |millis: f64| Nanos::from_secs_f64(millis / 1e3).get();
        let lines = spec.cache.get() / spec.cache_line.get();
        Self {
            times: Times {
                overhead: nanos(spec.overhead_ms),
                latency: nanos(spec.latency_ms),
                jitter: spec.jitter_ms * 1e6,
                link: if spec.link_mb_s > 0.0 { 1e3 / spec.link_mb_s } else { 0.0 },
            },
            jitter: Jitter::new(seed),
            behind,
            behind_wakes: Nanos::MAX,
            agenda: Agenda::new(),
            calls: Slots::new(),
            open: 0,
            fetches: Slots::new(),
            cache: ControllerCache::new(usize::try_from(lines).unwrap_or(usize::MAX)),
            streams: StreamTable::new(spec.streams),
            processor_free: Nanos::ZERO,
            link_free: Nanos::ZERO,
            dirty: 0,
            arrived: Vec::new(),
            finished: VecDeque::new(),
            counters: Counters::default(),
            spec: spec.clone(),
        }
    }

    /// Performs all steps due by `now` in order of time; those of the device behind first.
    fn run(&mut self, now: Nanos) {
        while self.take(now).is_some() {}
    }

    /// Performs the next step if it is due by `now`; returns its time.
    fn take(&mut self, now: Nanos) -> Option<Nanos> {
        let own = self.agenda.next_at().unwrap_or(Nanos::MAX);
        if let Some(at) = self.run_behind(own.min(now)) {
            return Some(at);
        }
        let (at, event) = self.agenda.pop_due(now)?;
        self.step(at, event);
        Some(at)
    }

    /// Advances the device behind to its first completion by `until`; returns that time.
    #[inline]
    fn run_behind(&mut self, until: Nanos) -> Option<Nanos> {
        if self.behind_wakes > until || self.behind_wakes == Nanos::MAX {
            return None;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        let at = self.behind.advance_to_completion(until, &mut arrived);
        for completion in arrived.drain(..) {
            self.fetched(completion);
        }
        self.arrived = arrived;
        self.look_behind();
        at
    }

    fn look_behind(&mut self) {
        self.behind_wakes = self.behind.next_wake().unwrap_or(Nanos::MAX);
    }

    fn step(&mut self, at: Nanos, event: Event) {
        match event {
            Event::Decoded(slot) => self.decoded(at, slot),
            Event::Received(slot) => self.received(at, slot),
            Event::Done(slot) => {
                if let Some(call) = self.calls.remove(slot) {
                    self.open -= 1;
                    self.finished.push_back(Completion { id: call.id, at });
                }
            }
        }
    }

    fn decoded(&mut self, at: Nanos, slot: SlotIndex) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let (kind, offset, length) = (call.kind, call.offset, call.length);
        match kind {
            // Data in a non-volatile write cache need not be flushed.
            RequestKind::Flush if self.spec.write_cache.is_zero() => {
                self.fetch(at, slot, RequestKind::Flush, 0, 0);
            }
            RequestKind::Read if length > 0 => self.read(at, slot, offset, length),
            RequestKind::Write if length > 0 => {
                let end = self.transfer(at, length);
                self.agenda.push(end, Event::Received(slot));
            }
            _ => self.answer(at, slot),
        }
    }

    fn read(&mut self, at: Nanos, slot: SlotIndex, offset: u64, length: u64) {
        let end = offset + length;
        let following = self.streams.follow(offset, end);
        if self.spec.prefetch.is_zero() {
            return self.fetch(at, slot, RequestKind::Read, offset, length);
        }
        let line = self.spec.cache_line.get();
        let mut missing_from = None;
        for number in offset / line..end.div_ceil(line) {
            let found = self.cache.read(number, slot);
            match (found, missing_from) {
                (CacheLookup::Missing, None) => missing_from = Some(offset.max(number * line)),
                (CacheLookup::Ready | CacheLookup::Coming, Some(from)) => {
                    self.fetch(at, slot, RequestKind::Read, from, number * line - from);
                    missing_from = None;
                }
                _ => {}
            }
            if found == CacheLookup::Coming {
                self.wait(slot);
            }
        }
        if let Some(from) = missing_from {
            self.fetch(at, slot, RequestKind::Read, from, end - from);
        }
        if self.calls.get_mut(slot).is_some_and(|call| call.left == 0) {
            self.counters.cache_hits += 1;
            self.ready(at, slot);
        }
        if following && self.open <= self.spec.prefetch_open {
            self.prefetch(at, end);
        }
    }

    /// Fetches missing lines from the byte `from` on, in as few requests as possible.
    fn prefetch(&mut self, at: Nanos, from: u64) {
        let line = self.spec.cache_line.get();
        let end = (from + self.spec.prefetch.get()).min(self.behind.capacity().get());
        let mut run: Option<(u64, u64)> = None;
        for number in from / line..end / line {
            let wanted = self.cache.has(number) == CacheLookup::Missing;
            if wanted && self.cache.reserve(number) {
                run = Some((run.map_or(number, |(first, _)| first), number + 1));
            } else if let Some(lines) = run.take() {
                self.fetch_lines(at, lines);
            }
        }
        if let Some(lines) = run {
            self.fetch_lines(at, lines);
        }
    }

    fn fetch_lines(&mut self, at: Nanos, (first, end): (u64, u64)) {
        let line = self.spec.cache_line.get();
        let (offset, length) = (first * line, (end - first) * line);
        self.send(at, Fetch::Lines(first, end), RequestKind::Read, offset, length);
    }

    fn wait(&mut self, slot: SlotIndex) {
        if let Some(call) = self.calls.get_mut(slot) {
            call.left += 1;
        }
    }

    fn fetch(&mut self, at: Nanos, slot: SlotIndex, kind: RequestKind, offset: u64, length: u64) {
        self.wait(slot);
        self.send(at, Fetch::Call(slot), kind, offset, length);
    }

    fn send(&mut self, at: Nanos, fetch: Fetch, kind: RequestKind, offset: u64, length: u64) {
        let id = RequestId(self.fetches.insert(fetch) as u64);
        let (offset, length) = (Bytes::new(offset), Bytes::new(length));
        self.behind.submit(at, Request { id, kind, offset, length });
        self.look_behind();
    }

    fn fetched(&mut self, completion: Completion) {
        match self.fetches.remove(completion.id.0 as SlotIndex) {
            Some(Fetch::Call(slot)) => self.part_done(completion.at, slot),
            Some(Fetch::Lines(first, end)) => {
                for number in first..end {
                    for slot in self.cache.arrived(number) {
                        self.part_done(completion.at, slot);
                    }
                }
            }
            Some(Fetch::Destage(bytes)) => self.dirty -= bytes,
            None => {}
        }
    }

    fn part_done(&mut self, at: Nanos, slot: SlotIndex) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        call.left -= 1;
        if call.left > 0 {
            return;
        }
        if call.kind == RequestKind::Read {
            self.ready(at, slot);
        } else {
            self.answer(at, slot);
        }
    }

    /// Transfers a read's data to the host.
    fn ready(&mut self, at: Nanos, slot: SlotIndex) {
        let length = self.calls.get_mut(slot).map_or(0, |call| call.length);
        let end = self.transfer(at, length);
        self.answer(end, slot);
    }

    fn received(&mut self, at: Nanos, slot: SlotIndex) {
        let Some(call) = self.calls.get_mut(slot) else { return };
        let (offset, length) = (call.offset, call.length);
        if self.dirty + length <= self.spec.write_cache.get() {
            self.dirty += length;
            self.send(at, Fetch::Destage(length), RequestKind::Write, offset, length);
            self.answer(at, slot);
        } else {
            self.fetch(at, slot, RequestKind::Write, offset, length);
        }
    }

    fn transfer(&mut self, at: Nanos, bytes: u64) -> Nanos {
        let span = Nanos::new(ceil(bytes as f64 * self.times.link));
        self.link_free = after(self.link_free.max(at), span);
        self.link_free
    }

    fn answer(&mut self, at: Nanos, slot: SlotIndex) {
        let jitter = (self.times.jitter * self.jitter.uniform()) as u64;
        self.agenda.push(after(at, Nanos::new(self.times.latency + jitter)), Event::Done(slot));
    }
}

impl Device for Controller {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.run(now);
        let (offset, length) = request.extent(self.capacity());
        self.counters.count(length);
        self.open += 1;
        let call = Call { id: request.id, kind: request.kind, offset, length, left: 0 };
        let slot = self.calls.insert(call);
        let span = Nanos::new(self.times.overhead);
        self.processor_free = after(self.processor_free.max(now), span);
        self.agenda.push_in_line(0, self.processor_free, Event::Decoded(slot));
    }

    fn next_wake(&self) -> Option<Nanos> {
        if let Some(done) = self.finished.front() {
            return Some(done.at);
        }
        let own = self.agenda.next_at().unwrap_or(Nanos::MAX);
        Some(own.min(self.behind_wakes)).filter(|&wake| wake < Nanos::MAX)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now);
        drain_completions(&mut self.finished, done);
    }

    fn advance_to_completion(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        run_to_completion(self, until, done, Self::take, |it| &mut it.finished)
    }

    fn in_flight(&self) -> usize {
        self.open + self.finished.len()
    }

    fn capacity(&self) -> Bytes {
        self.behind.capacity()
    }

    fn counters(&self) -> Counters {
        self.counters.with_part(self.behind.counters())
    }
}
