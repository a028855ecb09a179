//! Counting requests while they are served.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::RequestKind;
use stats::LatencyHistogram;
use units::{Bytes, Nanos};

use crate::counters::{DiskCounters, LATENESS_FLOOR, LATENESS_SHARE, Lateness, size_class};

/// Counters of the server's threads.
#[derive(Debug)]
pub(crate) struct CounterTally(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    since: Nanos,
    counters: DiskCounters,
    lateness: LatencyHistogram,
    service: LatencyHistogram,
}

impl Counts {
    fn new() -> Self {
        Self {
            since: sys::realtime::now(),
            counters: DiskCounters::default(),
            lateness: LatencyHistogram::new(),
            service: LatencyHistogram::new(),
        }
    }
}

impl CounterTally {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Counts::new()))
    }

    pub(crate) fn arrived(&self, kind: RequestKind, length: Bytes) {
        let counters = &mut self.lock().counters;
        match kind {
            RequestKind::Read => {
                counters.reads += 1;
                counters.read_bytes += length;
                counters.read_sizes[size_class(length)] += 1;
            }
            RequestKind::Write => {
                counters.writes += 1;
                counters.written_bytes += length;
            }
            RequestKind::Flush => counters.flushes += 1,
        }
    }

    pub(crate) fn reads(&self) -> u64 {
        self.lock().counters.reads
    }

    /// Records a request with this service time and lateness.
    pub(crate) fn answered(&self, service: Nanos, late: Nanos) {
        let mut counts = self.lock();
        counts.lateness.record(late);
        counts.service.record(service);
        let counters = &mut counts.counters;
        counters.timed += 1;
        counters.late_total += late;
        counters.service_total += service;
        if late > service.scaled(LATENESS_SHARE).max(LATENESS_FLOOR) {
            counters.spoiled += 1;
        }
    }

    /// Records a write that was refused for lack of memory.
    pub(crate) fn refused(&self) {
        self.lock().counters.refused_writes += 1;
    }

    pub(crate) fn clear(&self) {
        *self.lock() = Counts::new();
    }

    /// The counters since the last reset, without those of the queue and the device.
    pub(crate) fn counters(&self) -> DiskCounters {
        let counts = self.lock();
        let late = |q| counts.lateness.quantile(q).unwrap_or_default();
        DiskCounters {
            elapsed: sys::realtime::now().saturating_sub(counts.since),
            service_p50: counts.service.quantile(0.5).unwrap_or_default(),
            lateness: Lateness { p50: late(0.5), p99: late(0.99), max: late(1.0) },
            ..counts.counters
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
