//! What came of a simulation.

use policy::Account;
use stats::LatencyHistogram;
use units::{Bytes, Nanos, Pages};

use crate::course::Course;

/// What one reader did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    /// Reads completed.
    pub requests: u64,
    /// Data got.
    pub useful: Bytes,
    /// When its last read was done.
    pub elapsed: Nanos,
    /// How often it waited for the device.
    pub stalls: u64,
    /// How long it waited for the device in all.
    pub stalled: Nanos,
}

/// The reads of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassOutcome {
    /// Data got.
    pub useful: Bytes,
    /// How long each read took.
    pub latency: LatencyHistogram,
}

/// What the device did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Requests that it got.
    pub requests: u64,
    /// What they asked for.
    pub bytes: Bytes,
    /// Of those bytes, what says where others lie.
    pub metadata: Bytes,
    /// How long its parts were at work, summed over them.
    pub busy: Nanos,
    /// Time integral of the number of requests under way: divided by the elapsed time it is the
    /// mean depth of the queue.
    pub queued: Nanos,
}

/// What the page cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Pages that readers asked for, each time.
    pub references: Pages,
    /// Of those, found ready.
    pub hits: Pages,
    /// Of those, found on their way: read ahead, but late.
    pub late: Pages,
    /// Of those, not found.
    pub misses: Pages,
    /// Pages read from the device.
    pub read: Pages,
    /// Of those, used before they left the cache or the simulation ended.
    pub used: Pages,
    /// Of those, evicted without having been used: thrashing.
    pub thrashed: Pages,
    /// Pages evicted, used or not.
    pub evicted: Pages,
    /// Pages moved to the active list.
    pub activated: Pages,
    /// Windows that the policy had read.
    pub windows: u64,
}

impl CacheUse {
    /// Pages that were read and not used: evicted before, or left at the end.
    pub fn wasted(&self) -> Pages {
        self.read.saturating_sub(self.used)
    }
}

/// What came of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the simulation was over: when the time was, or when the readers were done.
    pub elapsed: Nanos,
    /// When nothing was under way any more.
    pub settled: Nanos,
    /// Whether a reader was done before the time was over.
    pub exhausted: bool,
    /// What each reader did.
    pub readers: Vec<ReaderOutcome>,
    /// Reads of streams.
    pub stream: ClassOutcome,
    /// Random reads.
    pub random: ClassOutcome,
    /// Processor time of all readers.
    pub processor: Nanos,
    /// What the device did.
    pub device: DeviceUse,
    /// What the page cache did.
    pub cache: CacheUse,
    /// For each open file, what lies ready behind the last byte read through it.
    pub ahead: Vec<Bytes>,
    /// What the device and the read-ahead did when.
    pub course: Course,
    /// What the policy did by itself.
    pub account: Account,
}

impl Outcome {
    /// Data that all readers got.
    pub fn useful(&self) -> Bytes {
        self.readers.iter().map(|reader| reader.useful).sum()
    }

    /// Reads completed by all readers.
    pub fn requests(&self) -> u64 {
        self.readers.iter().map(|reader| reader.requests).sum()
    }

    /// How long all readers waited for the device.
    pub fn stalled(&self) -> Nanos {
        self.readers.iter().map(|reader| reader.stalled).sum()
    }

    /// What was read to prime files.
    pub fn primed(&self) -> Bytes {
        self.account.primed.to_bytes(policy::cache::PAGE)
    }

    /// What was read and not used yet, but lies where a reader would have gone on: when time is
    /// over it is neither of use nor read in vain.
    pub fn awaiting(&self) -> Bytes {
        let cache = &self.cache;
        let unused = cache.read.saturating_sub(cache.used).saturating_sub(cache.thrashed);
        // What primed a file is counted on its own, used or not.
        let unused = unused.saturating_sub(self.account.primed);
        self.ahead.iter().copied().sum::<Bytes>().min(unused.to_bytes(policy::cache::PAGE))
    }

    /// The same as [`Outcome::amplification`], without what was read to prime files and what still
    /// awaits its reader; nothing if nothing was got.
    pub fn amplification_unprimed(&self) -> Option<f64> {
        let useful = self.useful();
        let read = self.device.bytes.saturating_sub(self.primed()).saturating_sub(self.awaiting());
        (!useful.is_zero()).then(|| read.get() as f64 / useful.get() as f64)
    }

    /// Bytes read from the device for each byte got; nothing if nothing was got.
    pub fn amplification(&self) -> Option<f64> {
        let useful = self.useful();
        (!useful.is_zero()).then(|| self.device.bytes.get() as f64 / useful.get() as f64)
    }
}
