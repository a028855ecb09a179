//! The block layer: requests wait, are merged and sorted, and are dispatched to the device.

use std::collections::{BTreeMap, VecDeque};

use model::{Completion, Device, Request, RequestId, RequestKind, Scheduler, SpecError};
use policy::Extent;
use units::{Bytes, Nanos};

use crate::delayed::DelayedDevice;
use crate::machine::SimMachine;
use crate::outcome::DeviceUse;
use crate::timeline::{SimTimeline, TimelineRecorder};

/// Purpose of a request, or of a part of a merged request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartPurpose {
    Data {
        file: u32,
        /// Pages that the request reads.
        extent: Extent,
    },
    /// Metadata that locate other data; the reader waits for them.
    Metadata,
}

/// A range of the device to read, and its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) purpose: PartPurpose,
}

/// A part of a request: its reader and its purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) reader: u32,
    pub(crate) purpose: PartPurpose,
}

#[derive(Debug)]
struct Pending {
    length: u64,
    since: Nanos,
    first: Part,
    merged: Vec<Part>,
}

/// After this time a read request goes first (`read_expire` of mq-deadline).
const READ_EXPIRE_TIME: Nanos = Nanos::from_millis(500);
/// Bits of a request ID that hold the request's index in the table.
const PLACE_BITS: u32 = 20;

/// The device, with the requests that wait for it and those in flight.
pub(crate) struct BlockQueue {
    device: Box<dyn Device>,
    scheduler: Scheduler,
    max_request: u64,
    depth: usize,
    waiting: BTreeMap<(u64, u64), Pending>,
    turns: VecDeque<(u64, u64)>,
    position: u64,
    in_flight: Vec<Option<Pending>>,
    /// Total time of completed requests, from submission to completion.
    time: Nanos,
    completed: u64,
    completed_bytes: Bytes,
    free: Vec<usize>,
    flying: usize,
    serial: u64,
    /// Number of waiting requests of each reader.
    undispatched: Vec<u32>,
    done: Vec<Completion>,
    counts: DeviceUse,
    counted_at: Nanos,
    timeline: TimelineRecorder,
}

impl BlockQueue {
    pub(crate) fn new(machine: &SimMachine, readers: usize) -> Result<Self, SpecError> {
        let host = machine.model.host();
        let device = machine.model.build(machine.seed)?;
        let delay = machine.request_delay;
        Ok(Self {
            device: match delay {
                Nanos::ZERO => device,
                _ => Box::new(DelayedDevice::new(device, delay)),
            },
            scheduler: host.scheduler,
            max_request: host.max_request.get() / 4096 * 4096,
            depth: host.nr_requests,
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            position: 0,
            in_flight: Vec::new(),
            time: Nanos::ZERO,
            completed: 0,
            completed_bytes: Bytes::ZERO,
            free: Vec::new(),
            flying: 0,
            serial: 0,
            undispatched: vec![0; readers],
            done: Vec::new(),
            counts: DeviceUse::default(),
            counted_at: Nanos::ZERO,
            timeline: TimelineRecorder::default(),
        })
    }

    /// Returns the largest request in bytes, a multiple of the page size.
    pub(crate) fn max_request(&self) -> u64 {
        self.max_request
    }

    /// Returns the time of the device's next event.
    pub(crate) fn next_wake(&self) -> Nanos {
        self.device.next_wake().unwrap_or(Nanos::MAX)
    }

    /// Returns whether old kernels would call the device congested: its queue is 7/8 full.
    pub(crate) fn congested(&self) -> bool {
        (self.flying + self.waiting.len()) * 8 >= self.depth * 7
    }

    /// Returns the number of waiting requests of a reader.
    pub(crate) fn undispatched(&self, reader: u32) -> u32 {
        self.undispatched[reader as usize]
    }

    pub(crate) fn counts(&self) -> DeviceUse {
        let (busy, queued) = (self.device.counters().busy, self.timeline.queued());
        DeviceUse { busy, queued, ..self.counts }
    }

    pub(crate) fn timeline_recorder(&mut self) -> &mut TimelineRecorder {
        &mut self.timeline
    }

    /// Takes the timeline at the end of the simulation.
    pub(crate) fn take_timeline(&mut self) -> SimTimeline {
        std::mem::take(&mut self.timeline).into_timeline()
    }

    /// Returns the completions so far, like a kernel's counters.
    pub(crate) fn completions(&self) -> policy::DeviceCompletions {
        policy::DeviceCompletions {
            reads: self.completed,
            bytes: self.completed_bytes,
            time: self.time,
        }
    }

    /// Submits a request.
    ///
    /// Always inlined, like [`Self::send`]: an item that is stored in parts for a call, and loaded
    /// as a whole by the callee, waits until the stores have left the processor's store buffer.
    #[inline(always)]
    pub(crate) fn submit(&mut self, now: Nanos, reader: u32, item: Item) {
        let part = Part { reader, purpose: item.purpose };
        if item.purpose == PartPurpose::Metadata {
            self.counts.metadata += Bytes::new(item.length);
        }
        if self.waiting.is_empty() && self.flying < self.depth {
            let Item { offset, length, .. } = item;
            self.position = offset + length;
            let pending = Pending { length, since: now, first: part, merged: Vec::new() };
            return self.send(now, offset, pending);
        }
        self.undispatched[reader as usize] += 1;
        if self.scheduler == Scheduler::MqDeadline && self.merge(item, part) {
            return;
        }
        let key = (item.offset, self.serial);
        self.serial += 1;
        let Item { length, .. } = item;
        let pending = Pending { length, since: now, first: part, merged: Vec::new() };
        self.waiting.insert(key, pending);
        self.turns.push_back(key);
    }

    /// Appends an item to a waiting request that ends where it starts. Returns whether it did.
    fn merge(&mut self, item: Item, part: Part) -> bool {
        let before = self.waiting.range_mut(..(item.offset, 0)).next_back();
        let Some((key, pending)) = before else { return false };
        let fits = pending.length + item.length <= self.max_request;
        if key.0 + pending.length != item.offset || !fits {
            return false;
        }
        pending.length += item.length;
        pending.merged.push(part);
        true
    }

    /// Sends waiting requests while the device accepts more. Appends the readers that have no more
    /// waiting requests to `freed`.
    #[inline]
    pub(crate) fn dispatch(&mut self, now: Nanos, freed: &mut Vec<u32>) {
        if !self.waiting.is_empty() {
            self.dispatch_waiting(now, freed);
        }
    }

    fn dispatch_waiting(&mut self, now: Nanos, freed: &mut Vec<u32>) {
        while self.flying < self.depth {
            let Some(key) = self.next_turn(now) else { return };
            let Some(pending) = self.waiting.remove(&key) else { return };
            self.position = key.0 + pending.length;
            for part in std::iter::once(&pending.first).chain(&pending.merged) {
                let left = &mut self.undispatched[part.reader as usize];
                *left -= 1;
                if *left == 0 {
                    freed.push(part.reader);
                }
            }
            self.send(now, key.0, pending);
        }
    }

    /// Returns the next request: the oldest, or, with an elevator, the next one upward.
    fn next_turn(&mut self, now: Nanos) -> Option<(u64, u64)> {
        while let Some(oldest) = self.turns.front().copied() {
            match self.waiting.get(&oldest) {
                None => {
                    self.turns.pop_front();
                }
                Some(pending) => {
                    let expired = now.saturating_sub(pending.since) > READ_EXPIRE_TIME;
                    if expired || self.scheduler == Scheduler::None {
                        return Some(oldest);
                    }
                    break;
                }
            }
        }
        let above = self.waiting.range((self.position, 0)..).next();
        above.or_else(|| self.waiting.first_key_value()).map(|(key, _)| *key)
    }

    #[inline(always)]
    fn send(&mut self, now: Nanos, offset: u64, pending: Pending) {
        self.integrate(now);
        self.counts.requests += 1;
        self.counts.bytes += Bytes::new(pending.length);
        self.timeline.request(now, Bytes::new(pending.length));
        let length = Bytes::new(pending.length);
        let place = match self.free.pop() {
            Some(place) => {
                self.in_flight[place] = Some(pending);
                place
            }
            None => {
                self.in_flight.push(Some(pending));
                self.in_flight.len() - 1
            }
        };
        self.flying += 1;
        let id = RequestId(self.serial << PLACE_BITS | place as u64);
        self.serial += 1;
        let offset = Bytes::new(offset);
        self.device.submit(now, Request { id, kind: RequestKind::Read, offset, length });
    }

    #[inline]
    fn integrate(&mut self, now: Nanos) {
        self.timeline.queue(self.counted_at, now, self.flying as u64);
        self.counted_at = now.max(self.counted_at);
    }

    /// Advances the device to its first completion, or to `until` if there is none before. Appends
    /// the completed parts, and returns the time of the completion.
    pub(crate) fn advance(&mut self, until: Nanos, parts: &mut Vec<Part>) -> Option<Nanos> {
        let mut done = std::mem::take(&mut self.done);
        let at = self.device.advance_to_completion(until, &mut done);
        for completion in done.drain(..) {
            self.integrate(completion.at);
            let place = (completion.id.0 & ((1 << PLACE_BITS) - 1)) as usize;
            let Some(pending) = self.in_flight.get_mut(place).and_then(Option::take) else {
                continue;
            };
            self.free.push(place);
            self.flying -= 1;
            self.time += completion.at.saturating_sub(pending.since);
            self.completed += 1;
            self.completed_bytes += Bytes::new(pending.length);
            parts.push(pending.first);
            if !pending.merged.is_empty() {
                parts.extend(pending.merged);
            }
        }
        self.done = done;
        at
    }
}
