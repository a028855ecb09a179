//! A volume behind a network, as offered by clouds and file servers.
//!
//! The model covers the visible behaviour: a varying latency, a charge for each request in I/Os and
//! in bytes, two token buckets for these charges, a limit on concurrency, and a link. Small
//! sequential requests are charged as if merged, long ones as if split, at the accounting size.

mod bucket;

use units::{Bytes, Nanos};

use crate::agenda::Agenda;
use crate::device::{after, ceil};
use crate::front::{Front, Fronted};
use crate::jitter::Jitter;
use crate::slots::{SlotIndex, Slots};
pub use crate::spec::VolumeSpec;
use crate::{Request, RequestId, RequestKind};
use bucket::Bucket;

/// Maximum number of request runs that are tracked to detect sequential requests.
const MAX_STREAMS: usize = 64;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The charge of the request has been paid; its service starts.
    Admitted(SlotIndex),
    /// The server has the request's data ready.
    Ready(SlotIndex),
    Done(SlotIndex),
}

#[derive(Debug)]
struct Call {
    id: RequestId,
    length: u64,
    latency: f64,
}

/// The end of a request run, and the bytes that its last I/O charge still covers.
#[derive(Clone, Copy, Debug)]
struct Stream {
    end: u64,
    paid: u64,
    used: u64,
}

#[derive(Debug)]
pub struct Volume {
    spec: VolumeSpec,
    jitter: Jitter,
    iops: Option<Bucket>,
    throughput: Option<Bucket>,
    streams: Vec<Stream>,
    clock: u64,
    agenda: Agenda<Event>,
    calls: Slots<Call>,
    front: Front,
    link_free: Nanos,
    /// Transfer time in nanoseconds per byte, of the shared link and of a single request.
    link: f64,
    alone: f64,
}

impl Volume {
    /// Creates a volume with full buckets; the specification must [validate](VolumeSpec::validate).
    pub(crate) fn new(spec: &VolumeSpec, seed: u64) -> Self {
        let per_byte = |mib: f64| if mib > 0.0 { 1e9 / (mib * 1_048_576.0) } else { 0.0 };
        let rate = spec.throughput_mib_s * 1_048_576.0;
        Self {
            jitter: Jitter::new(seed),
            iops: Bucket::new(spec.iops, spec.iops_burst),
            throughput: Bucket::new(rate, spec.throughput_burst.get() as f64),
            streams: Vec::with_capacity(MAX_STREAMS),
            clock: 0,
            agenda: Agenda::new(),
            calls: Slots::new(),
            front: Front::new(spec.concurrency),
            link_free: Nanos::ZERO,
            link: per_byte(spec.link_mib_s),
            alone: per_byte(spec.stream_mib_s),
            spec: spec.clone(),
        }
    }

    fn serve(&mut self, at: Nanos, slot: SlotIndex) {
        let factor = (self.spec.latency_spread * self.jitter.normal()).exp();
        let Some(call) = self.calls.get_mut(slot) else { return };
        let span = Nanos::new((call.latency * factor + call.length as f64 * self.alone) as u64);
        self.front.counters.work(span.get());
        self.agenda.push(after(at, span), Event::Ready(slot));
    }

    /// Returns whether a request continues an earlier one, and its charge in I/Os.
    fn follow(&mut self, offset: u64, length: u64, kind: RequestKind) -> (bool, u64) {
        if kind == RequestKind::Flush || length == 0 {
            return (false, 0);
        }
        self.clock += 1;
        let unit = self.spec.accounting.get();
        let end = offset + length;
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.end == offset) {
            let ios = length.saturating_sub(stream.paid).div_ceil(unit);
            let paid = stream.paid + ios * unit - length;
            *stream = Stream { end, paid, used: self.clock };
            return (true, ios);
        }
        self.front.counters.seeks += 1;
        let ios = length.div_ceil(unit);
        let fresh = Stream { end, paid: ios * unit - length, used: self.clock };
        if self.streams.len() < MAX_STREAMS {
            self.streams.push(fresh);
        } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = fresh;
        }
        (false, ios)
    }
}

impl Fronted for Volume {
    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    fn size(&self) -> Bytes {
        self.spec.capacity
    }

    fn start(&mut self, at: Nanos, request: Request) {
        let (offset, length) = request.extent(self.spec.capacity);
        let (sequential, ios) = self.follow(offset, length, request.kind);
        let random = self.spec.latency_ms;
        let latency = match (sequential, request.kind) {
            (true, RequestKind::Read) => self.spec.sequential_latency_ms.unwrap_or(random),
            _ => random,
        };
        let slot = self.calls.insert(Call { id: request.id, length, latency: latency * 1e6 });
        let charge = if sequential { length } else { length.max(self.spec.random_charge.get()) };
        let mut admitted = at;
        if request.kind != RequestKind::Flush && length > 0 {
            if let Some(bucket) = &mut self.iops {
                admitted = admitted.max(bucket.take(at, ios as f64));
            }
            if let Some(bucket) = &mut self.throughput {
                admitted = admitted.max(bucket.take(at, charge as f64));
            }
        }
        self.agenda.push(admitted, Event::Admitted(slot));
    }

    fn step(&mut self, until: Nanos) -> Option<Nanos> {
        let (at, event) = self.agenda.pop_due(until)?;
        match event {
            Event::Admitted(slot) => self.serve(at, slot),
            Event::Ready(slot) => {
                let length = self.calls.get_mut(slot).map_or(0, |call| call.length);
                let span = Nanos::new(ceil(length as f64 * self.link));
                self.link_free = after(self.link_free.max(at), span);
                self.agenda.push_in_line(0, self.link_free, Event::Done(slot));
            }
            Event::Done(slot) => {
                let id = self.calls.remove(slot).map(|call| call.id);
                self.finish(at, id);
            }
        }
        Some(at)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.agenda.next_at()
    }
}
