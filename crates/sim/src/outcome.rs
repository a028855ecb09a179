//! Results of a simulation.

use policy::PolicyStats;
use stats::LatencyHistogram;
use units::{Bytes, Nanos, Pages};

use crate::timeline::SimTimeline;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOutcome {
    pub requests: u64,
    pub useful: Bytes,
    /// Time at which its last read completed.
    pub elapsed: Nanos,
    /// Number of waits for the device.
    pub stalls: u64,
    /// Total time of waiting for pages.
    pub stalled: Nanos,
    /// Total time that its reads waited before that, because `nr_requests` requests were in flight.
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
    /// Bytes of metadata that locate other data, included in `bytes`.
    pub metadata: Bytes,
    /// Busy time of the device's parts, summed over the parts.
    pub busy: Nanos,
    /// Time integral of the number of requests in flight. Divided by the elapsed time, it is the
    /// mean queue depth.
    pub queued: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Pages that readers requested, counted at each request.
    pub references: Pages,
    pub hits: Pages,
    /// References to pages in flight: read ahead, but late.
    pub late: Pages,
    /// References to pages that were not cached.
    pub misses: Pages,
    /// Pages read from the device.
    pub read: Pages,
    /// Pages read and used before their eviction or the end of the simulation.
    pub used: Pages,
    /// Pages read and evicted before their use: thrashing.
    pub thrashed: Pages,
    /// Pages evicted, used or not.
    pub evicted: Pages,
    /// Pages moved to the active list.
    pub activated: Pages,
    /// Windows that the policy submitted.
    pub windows: u64,
}

impl CacheUse {
    /// Returns the pages that were read and not used: evicted before, or left at the end.
    pub fn wasted(&self) -> Pages {
        self.read.saturating_sub(self.used)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SimOutcome {
    /// Duration of the simulation: to the time limit, or until the readers finished.
    pub elapsed: Nanos,
    /// Time from which no request was in flight.
    pub settled: Nanos,
    /// Whether a reader finished before the time limit.
    pub exhausted: bool,
    pub readers: Vec<ReaderOutcome>,
    pub stream: ClassOutcome,
    pub random: ClassOutcome,
    pub processor: Nanos,
    pub device: DeviceUse,
    pub cache: CacheUse,
    /// Bytes cached after the last byte read, for each open file.
    pub ahead: Vec<Bytes>,
    /// Activity of the device and of read-ahead over time.
    pub timeline: SimTimeline,
    /// Results of the policy's periodic work.
    pub policy_stats: PolicyStats,
}

impl SimOutcome {
    pub fn useful(&self) -> Bytes {
        self.readers.iter().map(|reader| reader.useful).sum()
    }

    pub fn requests(&self) -> u64 {
        self.readers.iter().map(|reader| reader.requests).sum()
    }

    /// Returns the total time that all readers waited for the device.
    pub fn stalled(&self) -> Nanos {
        self.readers.iter().map(|reader| reader.stalled).sum()
    }

    /// Returns the sum of [`ReaderOutcome::queue_wait`] over all readers.
    pub fn queue_wait(&self) -> Nanos {
        self.readers.iter().map(|reader| reader.queue_wait).sum()
    }

    /// Returns the bytes that priming read.
    pub fn primed(&self) -> Bytes {
        self.policy_stats.primed.to_bytes(policy::cache::PAGE)
    }

    /// Returns the bytes that were read and not used yet, but lie where a reader would have
    /// continued. At the time limit they count neither as useful nor as wasted.
    pub fn awaiting(&self) -> Bytes {
        let cache = &self.cache;
        let unused = cache.read.saturating_sub(cache.used).saturating_sub(cache.thrashed);
        // Primed pages are counted separately, used or not.
        let unused = unused.saturating_sub(self.policy_stats.primed);
        self.ahead.iter().copied().sum::<Bytes>().min(unused.to_bytes(policy::cache::PAGE))
    }

    /// Returns [`SimOutcome::amplification`] without the bytes that priming read and those that
    /// still await their reader; `None` if the readers read nothing.
    pub fn amplification_unprimed(&self) -> Option<f64> {
        let useful = self.useful();
        let read = self.device.bytes.saturating_sub(self.primed()).saturating_sub(self.awaiting());
        (!useful.is_zero()).then(|| read.get() as f64 / useful.get() as f64)
    }

    /// Returns bytes read from the device per useful byte; `None` if no byte was useful.
    pub fn amplification(&self) -> Option<f64> {
        let useful = self.useful();
        (!useful.is_zero()).then(|| self.device.bytes.get() as f64 / useful.get() as f64)
    }
}
