//! The interface of all models, for simulated and real time.

use units::{Bytes, Nanos};

/// Identifies a request from submission to completion; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Bring data to the host.
    Read,
    /// Take data from the host.
    Write,
    /// Make all received data permanent; a barrier. Offset and length are ignored.
    Flush,
}

/// One request, as the block layer would send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    pub kind: RequestKind,
    /// Its start on the device.
    pub offset: Bytes,
    pub length: Bytes,
}

/// The longest request; longer ones are shortened to this.
const LENGTH_MAX: u64 = 1 << 30;

impl Request {
    /// First byte and length of the part within a device of this size.
    pub(crate) fn extent(&self, capacity: Bytes) -> (u64, u64) {
        let offset = self.offset.get().min(capacity.get());
        (offset, self.length.get().min(capacity.get() - offset).min(LENGTH_MAX))
    }
}

/// `span` after `at`, or the end of time.
pub(crate) fn after(at: Nanos, span: Nanos) -> Nanos {
    Nanos::new(at.get().saturating_add(span.get()))
}

/// The next whole number, without calling the mathematics library.
#[inline]
pub(crate) fn ceil(span: f64) -> u64 {
    let whole = span as i64;
    whole.saturating_add(i64::from((whole as f64) < span)) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub id: RequestId,
    /// In the model's own time, even if `advance` was called late.
    pub at: Nanos,
}

/// Counters of a device since it was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    /// Bytes requested.
    pub bytes: Bytes,
    /// Mechanical operations that started elsewhere than where the last one ended.
    pub seeks: u64,
    /// Reads served without a mechanical operation of their own.
    pub cache_hits: u64,
    /// Busy time; for a device with several parts, their sum.
    pub busy: Nanos,
}

impl Counters {
    /// Counts a submitted request.
    pub(crate) fn count(&mut self, length: u64) {
        self.requests += 1;
        self.bytes = Bytes::new(self.bytes.get().saturating_add(length));
    }

    pub(crate) fn work(&mut self, span: u64) {
        self.busy = after(self.busy, Nanos::new(span));
    }

    /// Adds the internal counters of a part.
    pub(crate) fn with_part(mut self, part: Self) -> Self {
        self.seeks += part.seeks;
        self.cache_hits += part.cache_hits;
        self.busy = after(self.busy, part.busy);
        self
    }
}

/// A model of a device: requests in, completions out, no clock inside.
///
/// `now` never decreases. A late caller changes nothing: completion times are those for calls
/// exactly at each [`next_wake`](Device::next_wake).
pub trait Device: Send {
    /// Submits a request at time `now`.
    fn submit(&mut self, now: Nanos, request: Request);

    /// The earliest time at which [`advance`](Device::advance) would do something.
    fn next_wake(&self) -> Option<Nanos>;

    /// Advances the model's time to `now`; appends completions in order of time.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Advances the model's time to the first completion, or to `until` if there is none before: as
    /// [`advance`](Device::advance) at each wake time, but faster. Returns the time of the
    /// completion.
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

    /// Requests submitted but not yet reported as complete.
    fn in_flight(&self) -> usize;

    fn capacity(&self) -> Bytes;

    fn counters(&self) -> Counters;
}
