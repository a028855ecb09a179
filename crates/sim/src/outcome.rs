//! What came of a simulation.

use policy::PolicyStats;
use stats::LatencyHistogram;
use units::{Bytes, Nanos, Pages};

use crate::timeline::SimTimeline;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    pub requests: u64,
    pub useful: Bytes,
    /// When its last read was done.
    pub elapsed: Nanos,
    /// How often it waited for the device.
    pub stalls: u64,
    /// How long it waited for pages in all.
    pub stalled: Nanos,
    /// How long its reads waited before that, because `nr_requests` requests were in flight.
    pub queue_wait: Nanos,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassOutcome {
    pub useful: Bytes,
    pub latency: LatencyHistogram,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    pub requests: u64,
    pub bytes: Bytes,
    /// Of those bytes, what says where others lie.
    pub metadata: Bytes,
    /// How long its parts were at work, summed over them.
    pub busy: Nanos,
    /// Time integral of the number of requests under way: divided by the elapsed time it is the
    /// mean depth of the queue.
    pub queued: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Pages that readers asked for, each time.
    pub references: Pages,
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

#[derive(Clone, Debug, PartialEq)]
pub struct SimOutcome {
    /// When the simulation was over: when the time was, or when the readers were done.
    pub elapsed: Nanos,
    /// When nothing was under way any more.
    pub settled: Nanos,
    /// Whether a reader was done before the time was over.
    pub exhausted: bool,
    pub readers: Vec<ReaderOutcome>,
    pub stream: ClassOutcome,
    pub random: ClassOutcome,
    pub processor: Nanos,
    pub device: DeviceUse,
    pub cache: CacheUse,
    /// For each open file, what lies ready behind the last byte read through it.
    pub ahead: Vec<Bytes>,
    /// What the device and the read-ahead did when.
    pub timeline: SimTimeline,
    /// What the policy did by itself.
    pub policy_stats: PolicyStats,
}

impl SimOutcome {
    pub fn useful(&self) -> Bytes {
        self.readers.iter().map(|reader| reader.useful).sum()
    }

    pub fn requests(&self) -> u64 {
        self.readers.iter().map(|reader| reader.requests).sum()
    }

    /// How long all readers waited for the device.
    pub fn stalled(&self) -> Nanos {
        self.readers.iter().map(|reader| reader.stalled).sum()
    }

    /// [`ReaderOutcome::queue_wait`] of all readers together.
    pub fn queue_wait(&self) -> Nanos {
        self.readers.iter().map(|reader| reader.queue_wait).sum()
    }

    /// What was read to prime files.
    pub fn primed(&self) -> Bytes {
        self.policy_stats.primed.to_bytes(policy::cache::PAGE)
    }

    /// What was read and not used yet, but lies where a reader would have gone on: when time is
    /// over it is neither of use nor read in vain.
    pub fn awaiting(&self) -> Bytes {
        let cache = &self.cache;
        let unused = cache.read.saturating_sub(cache.used).saturating_sub(cache.thrashed);
        // What primed a file is counted on its own, used or not.
        let unused = unused.saturating_sub(self.policy_stats.primed);
        self.ahead.iter().copied().sum::<Bytes>().min(unused.to_bytes(policy::cache::PAGE))
    }

    /// The same as [`SimOutcome::amplification`], without the bytes read to prime files and those
    /// that still await their reader; `None` if the readers got nothing.
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
