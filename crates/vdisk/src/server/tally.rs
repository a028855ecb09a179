//! Counts requests while they are served.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::RequestKind;
use stats::LatencyHistogram;
use units::{Bytes, Nanos};

use crate::counters::{DiskCounters, LATENESS_FLOOR, LATENESS_SHARE, Lateness, size_class};

/// Counters that the server's threads share.
#[derive(Debug)]
pub(crate) struct CounterTally {
    counts: Mutex<Counts>,
    /// Times of requests before those in [`Counts`]. Their own lock does not block requests.
    before: Mutex<Times>,
}

#[derive(Debug)]
struct Counts {
    since: Nanos,
    counters: DiskCounters,
    most_late: Nanos,
    times: Times,
}

#[derive(Debug)]
struct Times {
    lateness: LatencyHistogram,
    service: LatencyHistogram,
}

impl Counts {
    fn new() -> Self {
        Self {
            since: sys::realtime::now(),
            counters: DiskCounters::default(),
            most_late: Nanos::ZERO,
            times: Times::new(),
        }
    }
}

impl Times {
    fn new() -> Self {
        Self { lateness: LatencyHistogram::new(), service: LatencyHistogram::new() }
    }
}

impl CounterTally {
    pub(crate) fn new() -> Self {
        Self { counts: Mutex::new(Counts::new()), before: Mutex::new(Times::new()) }
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
        counts.times.lateness.record(late);
        counts.most_late = counts.most_late.max(late);
        counts.times.service.record(service);
        let counters = &mut counts.counters;
        counters.timed += 1;
        counters.late_total += late;
        counters.service_total += service;
        if late > service.scaled(LATENESS_SHARE).max(LATENESS_FLOOR) {
            counters.spoiled += 1;
        }
    }

    /// Records a write that was rejected for lack of memory.
    pub(crate) fn refused(&self) {
        self.lock().counters.refused_writes += 1;
    }

    pub(crate) fn clear(&self) {
        let mut before = unpoisoned(&self.before);
        *before = Times::new();
        *self.lock() = Counts::new();
    }

    /// Returns the counters since the last reset, without those of the queue and the device.
    pub(crate) fn counters(&self) -> DiskCounters {
        let mut before = unpoisoned(&self.before);
        let none = Times::new();
        let (times, since, most_late, counters) = {
            let mut counts = self.lock();
            let times = std::mem::replace(&mut counts.times, none);
            (times, counts.since, counts.most_late, counts.counters)
        };
        before.lateness.merge(&times.lateness);
        before.service.merge(&times.service);
        let late = |q| before.lateness.quantile(q).unwrap_or_default();
        DiskCounters {
            elapsed: sys::realtime::now().saturating_sub(since),
            service_p50: before.service.quantile(0.5).unwrap_or_default(),
            lateness: Lateness { p50: late(0.5), p99: late(0.99), max: most_late },
            ..counters
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        unpoisoned(&self.counts)
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_over_several_looks_until_they_are_cleared() {
        let tally = CounterTally::new();
        let millis = Nanos::from_millis;
        for late in [1, 1, 9] {
            tally.arrived(RequestKind::Read, Bytes::from_kib(4));
            tally.answered(millis(2), millis(late));
            tally.counters();
        }
        let counters = tally.counters();
        assert_eq!((counters.reads, counters.timed, tally.reads()), (3, 3, 3));
        assert_eq!((counters.late_total, counters.lateness.max), (millis(11), millis(9)));
        assert_eq!(counters.spoiled, 3);
        assert!((990_000..=1_010_000).contains(&counters.lateness.p50.get()));
        tally.clear();
        let cleared = tally.counters();
        assert_eq!((cleared.reads, cleared.lateness.max, cleared.service_p50), <_>::default());
    }
}
