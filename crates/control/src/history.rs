//! The last accesses of an open file, for predictions.

use std::collections::VecDeque;
use std::sync::Arc;

use units::Nanos;

use crate::tuning::Tuning;
use crate::what_if::PastAccess;

/// The last accesses, at most `max_history`, each with the think time and wait before it.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessLog {
    accesses: VecDeque<(PastAccess, Nanos)>,
    last: Option<Nanos>,
    /// The time that the reader has waited since the last access.
    waited: Nanos,
    tuning: Arc<Tuning>,
}

impl AccessLog {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Adds a read of these pages. Repeated reports of one read count once.
    pub fn access(&mut self, at: Nanos, first: u64, pages: u64, mapped: bool) {
        let pages = pages.max(1);
        if let Some((before, _)) = self.accesses.back_mut()
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
        self.accesses.push_back((access, think + waited.min(since)));
    }

    pub fn waited(&mut self, wait: Nanos) {
        self.waited += wait;
    }

    pub fn iter(&self) -> impl Iterator<Item = PastAccess> {
        self.accesses.iter().map(|(access, _)| *access)
    }

    /// Returns the total time of these accesses.
    pub fn elapsed(&self) -> Nanos {
        self.accesses.iter().map(|(_, took)| *took).sum()
    }

    /// Returns the rate over these accesses, in pages per second.
    pub fn rate(&self) -> f64 {
        let pages: u64 = self.iter().map(|access| access.pages).sum();
        pages as f64 / self.elapsed().as_secs_f64().max(1e-9)
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
            log.access(Nanos::from_micros(at), first, 4, false);
            log.access(Nanos::from_micros(at + 1), first, 4, false);
            log.waited(Nanos::from_micros(900));
        }
        let think: Vec<u64> = log.iter().map(|access| access.think.get() / 1000).collect();
        assert_eq!(think, [0, 100, 100]);
        assert_eq!(log.elapsed(), Nanos::from_millis(2));
        assert!((5999.0..6001.0).contains(&log.rate()));
    }
}
