//! Judges whether prefetching the next files makes their reader faster.

use std::sync::Arc;

use units::Nanos;

use crate::tuning::Tuning;

/// Files that a reader has started, and pages that the device has read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileProgress {
    pub at: Nanos,
    pub files: u64,
    pub pages: u64,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileRates {
    pub files: f64,
    pub pages: f64,
}

impl FileProgress {
    pub fn since(&self, earlier: &Self) -> FileRates {
        let seconds = self.at.saturating_sub(earlier.at).as_secs_f64().max(1e-6);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        FileRates { files: rate(self.files, earlier.files), pages: rate(self.pages, earlier.pages) }
    }
}

/// Compares a reader's rates with those before prefetching. It continues from one directory to the
/// next: a small directory is read before anything is known.
#[derive(Clone, Debug)]
pub(super) struct SequenceTrial {
    before: FileRates,
    /// Intervals since prefetching started, and the progress when its rate had settled.
    intervals: u64,
    settled: FileProgress,
    is_over: bool,
    tuning: Arc<Tuning>,
}

impl SequenceTrial {
    pub fn new(before: FileRates, tuning: Arc<Tuning>) -> Self {
        let settled = FileProgress::default();
        Self { before, intervals: 0, settled, is_over: false, tuning }
    }

    /// Ends an interval. Returns once, when that is known, whether the reader is faster. Sizes of
    /// large files differ, so pages count instead of files.
    pub fn interval(&mut self, now: FileProgress, are_large: bool) -> Option<bool> {
        if self.is_over {
            return None;
        }
        self.intervals += 1;
        if self.intervals == self.tuning.settling_intervals() {
            self.settled = now;
        }
        let span = now.at.saturating_sub(self.settled.at);
        if self.intervals < self.tuning.judge_intervals() || span < self.tuning.observation_time {
            return None;
        }
        self.is_over = true;
        let with = now.since(&self.settled);
        let gain = if are_large && self.before.pages > 0.0 {
            with.pages / self.before.pages
        } else {
            with.files / self.before.files.max(1e-6)
        };
        Some(gain >= self.tuning.min_gain_ratio())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanos = Nanos::from_millis(100);

    /// Returns the verdict on a reader with these rates who had 100 files and 10,000 pages per
    /// second before.
    fn verdict(files: u64, pages: u64, are_large: bool) -> Option<bool> {
        let before = FileRates { files: 100.0, pages: 10_000.0 };
        let mut trial = SequenceTrial::new(before, Arc::default());
        let mut verdicts = (1..50).filter_map(|tenth| {
            let (files, pages) = (files * tenth / 10, pages * tenth / 10);
            trial.interval(FileProgress { at: INTERVAL * tenth, files, pages }, are_large)
        });
        let first = verdicts.next();
        assert_eq!(verdicts.next(), None, "it is given once");
        first
    }

    #[test]
    fn large_files_are_judged_by_their_pages() {
        assert_eq!(verdict(120, 10_000, false), Some(true));
        assert_eq!(verdict(120, 10_000, true), Some(false), "these files are smaller ones");
        assert_eq!(verdict(100, 12_000, true), Some(true));
        assert_eq!(verdict(100, 12_000, false), Some(false));
    }
}
