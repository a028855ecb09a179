//! The block layer: requests wait, are merged and sorted, and go to the device.

use std::collections::{BTreeMap, VecDeque};

use model::{Completion, Device, Request, RequestId, RequestKind, Scheduler, SpecError};
use policy::Extent;
use units::{Bytes, Nanos};

use crate::delayed::DelayedDevice;
use crate::machine::SimMachine;
use crate::outcome::DeviceUse;
use crate::timeline::{SimTimeline, TimelineRecorder};

/// What a request, or a part of a merged one, is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartPurpose {
    Data {
        file: u32,
        /// Its pages.
        extent: Extent,
    },
    /// What says where other data lie; the reader waits for it.
    Metadata,
}

/// Something to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) purpose: PartPurpose,
}

/// A part of a request: who asked, and for what.
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

/// After this long a reading request goes first (`read_expire` of mq-deadline).
const READ_EXPIRE_TIME: Nanos = Nanos::from_millis(500);
/// Bits of a request's id that name its place in the table.
const PLACE_BITS: u32 = 20;

/// The device with the requests on their way to it and under way.
pub(crate) struct BlockQueue {
    device: Box<dyn Device>,
    scheduler: Scheduler,
    max_request: u64,
    depth: usize,
    waiting: BTreeMap<(u64, u64), Pending>,
    turns: VecDeque<(u64, u64)>,
    position: u64,
    in_flight: Vec<Option<Pending>>,
    /// How long requests took that are done, summed over them.
    time: Nanos,
    completed: u64,
    completed_bytes: Bytes,
    free: Vec<usize>,
    flying: usize,
    serial: u64,
    /// Requests of each reader that wait.
    undispatched: Vec<u32>,
    done: Vec<Completion>,
    counts: DeviceUse,
    counted_at: Nanos,
    course: TimelineRecorder,
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
            course: TimelineRecorder::default(),
        })
    }

    /// The largest request, in whole pages.
    pub(crate) fn max_request(&self) -> u64 {
        self.max_request
    }

    /// When the device has something to say.
    pub(crate) fn next_wake(&self) -> Nanos {
        self.device.next_wake().unwrap_or(Nanos::MAX)
    }

    /// Whether old kernels would call the device congested: seven eighths of its queue are full.
    pub(crate) fn congested(&self) -> bool {
        (self.flying + self.waiting.len()) * 8 >= self.depth * 7
    }

    /// Requests of a reader that wait for their turn.
    pub(crate) fn undispatched(&self, reader: u32) -> u32 {
        self.undispatched[reader as usize]
    }

    pub(crate) fn counts(&self) -> DeviceUse {
        let (busy, queued) = (self.device.counters().busy, self.course.queued());
        DeviceUse { busy, queued, ..self.counts }
    }

    pub(crate) fn timeline_recorder(&mut self) -> &mut TimelineRecorder {
        &mut self.course
    }

    /// The same when all is over.
    pub(crate) fn take_timeline(&mut self) -> SimTimeline {
        std::mem::take(&mut self.course).into_course()
    }

    /// What is done so far, as a kernel's counters have it.
    pub(crate) fn completions(&self) -> policy::DeviceCompletions {
        policy::DeviceCompletions {
            reads: self.completed,
            bytes: self.completed_bytes,
            time: self.time,
        }
    }

    /// Takes a request.
    ///
    /// Inlined always, as [`Self::send`] is: an item that is stored in parts for a call, and loaded
    /// whole by it, waits until the stores have left the processor's store buffer.
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

    /// Adds an item to the end of a request that waits right before it.
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

    /// Sends what waits while the device takes more. `freed` gets the readers of which nothing
    /// waits any more.
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

    /// The next request in turn: the oldest, or, with an elevator, the next one upward.
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
        self.course.request(now, Bytes::new(pending.length));
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
        self.course.queue(self.counted_at, now, self.flying as u64);
        self.counted_at = now.max(self.counted_at);
    }

    /// Lets the device's time run up to its first completion, or to `until` if there is none
    /// before; appends what completed, and returns when that was.
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
