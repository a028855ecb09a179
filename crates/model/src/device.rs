//! The interface of all models, in simulated or real time.

use units::{Bytes, Nanos};

/// Identifies a request from submission to completion; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Transfers data to the host.
    Read,
    /// Transfers data from the host.
    Write,
    /// Makes all received data permanent; a barrier. Offset and length are ignored.
    Flush,
}

/// One request, as the block layer would send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub id: RequestId,
    pub kind: RequestKind,
    /// The offset of the first byte on the device.
    pub offset: Bytes,
    pub length: Bytes,
}

/// The maximum length of a request in bytes; models shorten longer ones.
const LENGTH_MAX: u64 = 1 << 30;

impl Request {
    /// Returns the offset and length of the part within a device of this capacity.
    pub(crate) fn extent(&self, capacity: Bytes) -> (u64, u64) {
        let offset = self.offset.get().min(capacity.get());
        (offset, self.length.get().min(capacity.get() - offset).min(LENGTH_MAX))
    }
}

/// Returns `at + span`, saturating at `Nanos::MAX`.
pub(crate) fn after(at: Nanos, span: Nanos) -> Nanos {
    Nanos::new(at.get().saturating_add(span.get()))
}

/// Returns the next whole number, without a call to the mathematics library.
#[inline]
pub(crate) fn ceil(span: f64) -> u64 {
    let whole = span as i64;
    whole.saturating_add(i64::from((whole as f64) < span)) as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub id: RequestId,
    /// The completion time in the model's time, even if the caller advanced it late.
    pub at: Nanos,
}

/// Counters of a device since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: u64,
    /// Total length of the requests.
    pub bytes: Bytes,
    /// Mechanical operations that did not start where the previous one ended.
    pub seeks: u64,
    /// Reads that caused no mechanical operation.
    pub cache_hits: u64,
    /// Busy time; the sum of all parts if the device has several.
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

    /// Adds the counters of a part, except requests and bytes.
    pub(crate) fn with_part(mut self, part: Self) -> Self {
        self.seeks += part.seeks;
        self.cache_hits += part.cache_hits;
        self.busy = after(self.busy, part.busy);
        self
    }
}

/// A model of a device: takes requests, returns completions, and has no clock of its own.
///
/// Callers must not decrease `now`. Calling late changes no completion time: the times are the same
/// as with calls at exactly each [`next_wake`](Device::next_wake).
pub trait Device: Send {
    /// Submits a request at time `now`.
    fn submit(&mut self, now: Nanos, request: Request);

    /// Returns the earliest time at which [`advance`](Device::advance) has an effect, if any.
    fn next_wake(&self) -> Option<Nanos>;

    /// Advances the model to `now` and appends completions in order of time.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// Advances the model to the first completion, or to `until` if there is none before.
    /// Equivalent to [`advance`](Device::advance) at each wake time, but faster. Returns the time
    /// of the completion; `None` if there is none.
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

    /// Returns the number of requests that were submitted and not yet reported as complete.
    fn in_flight(&self) -> usize;

    fn capacity(&self) -> Bytes;

    fn counters(&self) -> Counters;
}
