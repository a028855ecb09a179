//! The one interface of every model, for simulated and for real time alike.

use units::{Bytes, Nanos};

/// Names a request from its submission to its completion; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What a request asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Bring data to the host.
    Read,
    /// Take data from the host.
    Write,
    /// Make all data taken so far permanent; a barrier. Offset and length mean nothing.
    Flush,
}

/// One request, as the block layer would send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    pub kind: RequestKind,
    /// Where it begins on the device.
    pub offset: Bytes,
    pub length: Bytes,
}

/// The longest request that a model takes as it is; a longer one is cut to this.
const LENGTH_MAX: u64 = 1 << 30;

impl Request {
    /// First byte and length of the part that lies on a device of this size.
    pub(crate) fn extent(&self, capacity: Bytes) -> (u64, u64) {
        let offset = self.offset.get().min(capacity.get());
        (offset, self.length.get().min(capacity.get() - offset).min(LENGTH_MAX))
    }
}

/// `span` after `at`, or the end of time.
pub(crate) fn after(at: Nanos, span: Nanos) -> Nanos {
    Nanos::new(at.get().saturating_add(span.get()))
}

/// The next whole number, without a call of the mathematics library.
#[inline]
pub(crate) fn ceil(span: f64) -> u64 {
    let whole = span as i64;
    whole.saturating_add(i64::from((whole as f64) < span)) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub id: RequestId,
    /// When, on the model's own time line, even if `advance` was called late.
    pub at: Nanos,
}

/// What a device has done since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    /// Bytes that they asked to move.
    pub bytes: Bytes,
    /// Mechanical operations that began elsewhere than where the last one ended.
    pub seeks: u64,
    /// Reads served without a mechanical operation of their own.
    pub cache_hits: u64,
    /// Time for which the device was at work; for a device of many parts, summed over them.
    pub busy: Nanos,
}

impl Counters {
    /// Notes a request that was handed over.
    pub(crate) fn count(&mut self, length: u64) {
        self.requests += 1;
        self.bytes = Bytes::new(self.bytes.get().saturating_add(length));
    }

    pub(crate) fn work(&mut self, span: u64) {
        self.busy = after(self.busy, Nanos::new(span));
    }

    /// Adds what a part of this device did inside it.
    pub(crate) fn with_part(mut self, part: Self) -> Self {
        self.seeks += part.seeks;
        self.cache_hits += part.cache_hits;
        self.busy = after(self.busy, part.busy);
        self
    }
}

/// A model of a device: requests in, completions out, no clock inside.
///
/// `now` never runs backwards. A caller that is late changes nothing: completion times are those
/// of a caller who came exactly at each [`next_wake`](Device::next_wake).
pub trait Device: Send {
    /// Hands over a request at time `now`.
    fn submit(&mut self, now: Nanos, request: Request);

    /// The earliest time at which [`advance`](Device::advance) would do something.
    fn next_wake(&self) -> Option<Nanos>;

    /// Lets the model's time run up to `now`; appends what completed, in order of time.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Lets the model's time run up to the first completion, or to `until` if there is none
    /// before: what [`advance`](Device::advance) at each wake would do, without the ways between.
    /// Returns when that completion was handed out.
    fn advance_to_completion(&mut self, until: Nanos, done: &mut Vec<Completion>) -> Option<Nanos> {
        let before = done.len();
        while let Some(wake) = self.next_wake().filter(|&wake| wake <= until) {
            self.advance(wake, done);
            if done.len() > before {
                return Some(wake);
            }
        }
        None
    }

    /// Requests submitted whose completion has not been handed out.
    fn in_flight(&self) -> usize;

    fn capacity(&self) -> Bytes;

    /// What it has done so far.
    fn counters(&self) -> Counters;
}
