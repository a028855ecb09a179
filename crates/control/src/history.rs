//! The last accesses of an open file, for predictions.

use std::collections::VecDeque;
use std::sync::Arc;

use units::Nanos;

use crate::rates::CountedRate;
use crate::tuning::Tuning;
use crate::what_if::PastAccess;

/// The number of reads, their pages, and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
struct SampledReads {
    count: u64,
    pages: u64,
    elapsed: Nanos,
}

/// The last accesses, at most `max_history`, each with the think time before it.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessLog {
    accesses: VecDeque<PastAccess>,
    last: Option<Nanos>,
    /// The time that the reader has waited since the last access.
    waited: Nanos,
    /// The recent samples since the last miss, or the start of a measurement.
    measured: SampledReads,
    tuning: Arc<Tuning>,
}

impl AccessLog {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds a read that missed, as long as reads are not sampled.
    pub fn miss(&mut self, at: Nanos, first: u64, pages: u64, mapped: bool) {
        self.sample(at, first, pages, mapped);
        self.measured = SampledReads::default();
    }

    /// Adds a read of these pages, cached or not. Repeated reports of one read count once.
    pub fn sample(&mut self, at: Nanos, first: u64, pages: u64, mapped: bool) {
        let pages = pages.max(1);
        if let Some(before) = self.accesses.back()
            && (before.first == first || before.first + before.pages == first + pages)
        {
            return;
        }
        let waited = std::mem::take(&mut self.waited);
        let since = self.last.replace(at).map_or(Nanos::ZERO, |last| at.saturating_sub(last));
        let think = since.saturating_sub(waited).min(self.tuning.max_think_time);
        if self.accesses.len() as u64 == self.tuning.max_history {
            self.accesses.pop_front();
        }
        let access = PastAccess { first, pages, think, mapped };
        self.accesses.push_back(access);
        let measured = &mut self.measured;
        if measured.count >= 2 * self.tuning.min_trend_reads() {
            // Earlier reads, perhaps of cached pages, lose weight.
            measured.count /= 2;
            measured.pages /= 2;
            measured.elapsed = measured.elapsed.scaled(0.5);
        }
        measured.count += 1;
        measured.pages += pages;
        measured.elapsed += think + waited.min(since);
    }

    pub fn waited(&mut self, wait: Nanos) {
        self.waited += wait;
    }

    pub fn iter(&self) -> impl Iterator<Item = PastAccess> {
        self.accesses.iter().copied()
    }

    /// Returns the rate of the sampled reads in pages per second; its count is 0 if only misses
    /// were reported.
    pub fn rate(&self) -> CountedRate {
        let SampledReads { count, pages, elapsed } = self.measured;
        CountedRate { per_second: pages as f64 / elapsed.as_secs_f64().max(1e-9), count }
    }

    /// Returns the same, and starts another measurement.
    pub fn take_rate(&mut self) -> CountedRate {
        let rate = self.rate();
        self.measured = SampledReads::default();
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_not_think_time_and_repeated_reports_count_once() {
        let mut log = AccessLog::default();
        for (number, at) in [0, 1000, 2000].into_iter().enumerate() {
            let first = 100 - number as u64 * 4;
            log.sample(Nanos::from_micros(at), first, 4, false);
            log.sample(Nanos::from_micros(at + 1), first, 4, false);
            log.waited(Nanos::from_micros(900));
        }
        let think: Vec<u64> = log.iter().map(|access| access.think.get() / 1000).collect();
        assert_eq!(think, [0, 100, 100]);
        let CountedRate { per_second, count } = log.take_rate();
        assert!((5999.0..6001.0).contains(&per_second) && count == 3);
        log.sample(Nanos::from_micros(3000), 1000, 8, false);
        assert_eq!(log.rate().count, 1);
        log.miss(Nanos::from_micros(4000), 2000, 8, false);
        assert_eq!(log.rate().count, 0, "misses do not show the rate of reads");
    }
}
