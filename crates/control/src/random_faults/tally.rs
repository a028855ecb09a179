//! Observations of a mapping with one window.

use units::{Nanos, Pages};

use crate::fault_waits::RecentWaits;
use crate::rates::is_plainly_below;
use crate::tuning::Tuning;

/// Observations with one window.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowTally {
    pub window: Pages,
    pub pieces: u64,
    /// Faults that did not directly follow the pages read by the previous one, and those that did.
    pub faults: (u64, u64),
    /// The times from each fault to the next, by the same two kinds: the wait, other costs of the
    /// fault, and the work of the reader, up to `max_think_time`.
    pub gaps: (RecentWaits, RecentWaits),
    /// The pages that streams of the device passed, and the time in which they passed any.
    pub streams: (u64, Nanos),
}

impl WindowTally {
    pub fn new(window: Pages) -> Self {
        Self { window, ..Self::default() }
    }

    pub fn faults(&self) -> u64 {
        self.faults.0 + self.faults.1
    }

    /// Returns whether there are `factor` × the observations that a first judgement needs.
    pub fn is_judged(&self, factor: u64, tuning: &Tuning) -> bool {
        self.pieces >= factor * tuning.min_samples || self.faults() >= factor * tuning.max_faults()
    }

    /// Returns the time of all faults in seconds, without outliers.
    pub fn time(&self) -> f64 {
        let time = |faults: u64, gaps: &RecentWaits| {
            faults as f64 * gaps.trimmed_mean().unwrap_or_default().as_secs_f64()
        };
        time(self.faults.0, &self.gaps.0) + time(self.faults.1, &self.gaps.1)
    }

    /// Adds the pages that streams passed in an interval.
    pub fn add_streams(&mut self, passed: u64, elapsed: Nanos) {
        if passed > 0 {
            self.streams = (self.streams.0 + passed, self.streams.1 + elapsed);
        }
    }

    /// Returns the rate of streams relative to that with another window, if it is plainly lower.
    pub fn slows_streams(&self, other: &Self, tuning: &Tuning) -> Option<f64> {
        let (passed, elapsed) = (self.streams.0 as f64, self.streams.1.as_secs_f64());
        let expected = other.streams.0 as f64 * elapsed / other.streams.1.as_secs_f64().max(1e-9);
        let windows = |pages: f64| pages / other.window.get().max(1) as f64;
        is_plainly_below(windows(expected), windows(passed), tuning).then(|| passed / expected)
    }

    /// Returns the time per piece in seconds; `None` if nothing was measured.
    pub fn per_piece(&self) -> Option<f64> {
        let time = self.time();
        (self.pieces > 0 && time > 0.0).then(|| time / self.pieces as f64)
    }
}
