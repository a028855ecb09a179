//! Counting requests while they are served.

use std::sync::atomic::{AtomicU64, Ordering};

use model::RequestKind;
use units::{Bytes, Nanos};

use super::histogram::Histogram;
use crate::counters::{
    DiskCounters, LATENESS_FLOOR, LATENESS_SHARE, Lateness, READ_SIZES, size_class,
};

/// Lock-free counters of the server's threads.
#[derive(Debug)]
pub(crate) struct CounterTally {
    since: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    read_bytes: AtomicU64,
    read_sizes: [AtomicU64; READ_SIZES],
    written_bytes: AtomicU64,
    timed: AtomicU64,
    spoiled: AtomicU64,
    refused: AtomicU64,
    lateness: Histogram,
    service: Histogram,
}

impl CounterTally {
    pub(crate) fn new() -> Self {
        let zero = AtomicU64::default;
        Self {
            since: AtomicU64::new(sys::realtime::now().get()),
            reads: zero(),
            writes: zero(),
            flushes: zero(),
            read_bytes: zero(),
            read_sizes: Default::default(),
            written_bytes: zero(),
            timed: zero(),
            spoiled: zero(),
            refused: zero(),
            lateness: Histogram::new(),
            service: Histogram::new(),
        }
    }

    pub(crate) fn arrived(&self, kind: RequestKind, length: Bytes) {
        let (requests, bytes) = match kind {
            RequestKind::Read => (&self.reads, Some(&self.read_bytes)),
            RequestKind::Write => (&self.writes, Some(&self.written_bytes)),
            RequestKind::Flush => (&self.flushes, None),
        };
        requests.fetch_add(1, Ordering::Relaxed);
        if kind == RequestKind::Read {
            self.read_sizes[size_class(length)].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(bytes) = bytes {
            bytes.fetch_add(length.get(), Ordering::Relaxed);
        }
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Records a request with this service time and lateness.
    pub(crate) fn answered(&self, service: Nanos, late: Nanos) {
        self.timed.fetch_add(1, Ordering::Relaxed);
        self.lateness.add(late);
        self.service.add(service);
        if late > service.scaled(LATENESS_SHARE).max(LATENESS_FLOOR) {
            self.spoiled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records a write that was refused for lack of memory.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for counter in [
            &self.reads,
            &self.writes,
            &self.flushes,
            &self.read_bytes,
            &self.written_bytes,
            &self.timed,
            &self.spoiled,
            &self.refused,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        self.read_sizes.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        self.lateness.clear();
        self.service.clear();
        self.since.store(sys::realtime::now().get(), Ordering::Relaxed);
    }

    /// Adds these values to the counters.
    pub(crate) fn read_into(&self, counters: &mut DiskCounters) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        counters.elapsed = sys::realtime::now().saturating_sub(Nanos::new(get(&self.since)));
        counters.reads = get(&self.reads);
        counters.writes = get(&self.writes);
        counters.flushes = get(&self.flushes);
        counters.read_bytes = Bytes::new(get(&self.read_bytes));
        counters.read_sizes = self.read_sizes.each_ref().map(get);
        counters.written_bytes = Bytes::new(get(&self.written_bytes));
        counters.timed = get(&self.timed);
        counters.spoiled = get(&self.spoiled);
        counters.refused_writes = get(&self.refused);
        counters.late_total = self.lateness.total();
        counters.service_total = self.service.total();
        counters.service_p50 = self.service.quantile(0.5);
        counters.lateness = Lateness {
            p50: self.lateness.quantile(0.5),
            p99: self.lateness.quantile(0.99),
            max: self.lateness.max(),
        };
    }
}
