//! Judges whether prefetching the next files makes their reader faster.

use std::sync::Arc;

use units::Nanos;

use crate::tuning::Tuning;

/// Files that a reader has started, and pages that the device has read, up to a time or in a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileProgress {
    pub time: Nanos,
    pub files: u64,
    pub pages: u64,
}

impl FileProgress {
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            time: self.time.saturating_sub(earlier.time),
            files: self.files.saturating_sub(earlier.files),
            pages: self.pages.saturating_sub(earlier.pages),
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            time: self.time + other.time,
            files: self.files + other.files,
            pages: self.pages + other.pages,
        }
    }

    pub fn files_per_second(&self) -> f64 {
        self.files as f64 / self.time.as_secs_f64().max(1e-6)
    }

    pub fn pages_per_second(&self) -> f64 {
        self.pages as f64 / self.time.as_secs_f64().max(1e-6)
    }

    /// Returns the rate in this span ÷ that in another one.
    fn over(&self, other: &Self, are_large: bool) -> f64 {
        if are_large && other.pages > 0 {
            self.pages_per_second() / other.pages_per_second()
        } else {
            self.files_per_second() / other.files_per_second().max(1e-6)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Prefetching, until its effect is known.
    With,
    /// A pause, to measure the reader without prefetching once more.
    Pause,
    Over,
}

/// Compares a reader's rates with those before prefetching. It continues from one directory to the
/// next: a small directory is read before anything is known.
///
/// The files before may have been others than those after. On a rotating disk, where a wrong
/// verdict costs most, prefetching therefore pauses once, and the time without it counts as a
/// whole.
#[derive(Clone, Debug)]
pub(super) struct SequenceTrial {
    without: FileProgress,
    /// Intervals since prefetching started; the progress when the rate of this phase had settled.
    intervals: u64,
    settled: Option<FileProgress>,
    with: FileProgress,
    phase: Phase,
    pauses: bool,
    tuning: Arc<Tuning>,
}

impl SequenceTrial {
    pub fn new(without: FileProgress, rotates: bool, tuning: Arc<Tuning>) -> Self {
        let (settled, with) = (None, FileProgress::default());
        Self { without, intervals: 0, settled, with, phase: Phase::With, pauses: rotates, tuning }
    }

    /// Returns whether nothing is prefetched now.
    pub fn is_paused(&self) -> bool {
        self.phase == Phase::Pause
    }

    /// Ends an interval. Returns once, when that is known, whether the reader is faster. Sizes of
    /// large files differ, so pages count instead of files. `used_up`: the reader has reached all
    /// prefetched files.
    pub fn interval(&mut self, now: FileProgress, are_large: bool, used_up: bool) -> Option<bool> {
        self.intervals += 1;
        let is_settled = match self.phase {
            Phase::With => self.intervals >= self.tuning.settling_intervals(),
            Phase::Pause => used_up || self.settled.is_some(),
            Phase::Over => false,
        };
        if !is_settled {
            return None;
        }
        let settled = *self.settled.get_or_insert(now);
        let span = now.since(&settled);
        // On a rotating disk, a gain is mostly a plain one, and any other trial costs much.
        let is_lost = self.pauses
            && self.phase == Phase::With
            && span.time >= self.tuning.min_rotating_span()
            && span.files >= self.tuning.few_samples
            && span.over(&self.without, are_large) < self.tuning.min_gain_ratio();
        let is_long = self.intervals >= self.tuning.judge_intervals()
            && span.time >= self.tuning.observation_time;
        if !is_long && !is_lost {
            return None;
        }
        if self.phase == Phase::With {
            self.with = span;
        } else {
            self.without = self.without.and(&span);
        }
        let gain = self.with.over(&self.without, are_large);
        let gains = gain >= self.tuning.min_gain_ratio();
        // Files differ, but hardly so much.
        let is_plain = gain * self.tuning.majority_share >= 1.0;
        if gains && !is_plain && self.pauses && self.phase == Phase::With {
            (self.phase, self.settled) = (Phase::Pause, None);
            return None;
        }
        self.phase = Phase::Over;
        Some(gains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Nanos = Nanos::from_millis(100);

    /// Returns the verdict on a reader with these files and pages per second, who had 100 files and
    /// 10,000 pages per second before, and has `paused` pages per second during a pause.
    fn verdict(rates: (u64, u64), are_large: bool, paused: Option<u64>) -> Option<bool> {
        let before = FileProgress { time: INTERVAL, files: 10, pages: 1_000 };
        let mut trial = SequenceTrial::new(before, paused.is_some(), Arc::default());
        let mut now = FileProgress::default();
        let mut verdicts = (1..50).filter_map(|_| {
            let pages = paused.filter(|_| trial.is_paused()).unwrap_or(rates.1);
            (now.files, now.pages) = (now.files + rates.0 / 10, now.pages + pages / 10);
            now.time += INTERVAL;
            trial.interval(now, are_large, true)
        });
        let first = verdicts.next();
        assert_eq!(verdicts.next(), None, "it is given once");
        first
    }

    #[test]
    fn large_files_are_judged_by_their_pages() {
        assert_eq!(verdict((120, 10_000), false, None), Some(true));
        assert_eq!(verdict((120, 10_000), true, None), Some(false), "these files are smaller ones");
        assert_eq!(verdict((100, 12_000), true, None), Some(true));
        assert_eq!(verdict((100, 12_000), false, None), Some(false));
    }

    #[test]
    fn on_a_rotating_disk_what_gains_nothing_ends_early() {
        let intervals = |files: u64, rotates: bool| {
            let before = FileProgress { time: INTERVAL, files: 10, pages: 1_000 };
            let mut trial = SequenceTrial::new(before, rotates, Arc::default());
            let mut now = FileProgress::default();
            (1..50).find(|_| {
                now.files += files;
                now.time += INTERVAL;
                trial.interval(now, false, false) == Some(false)
            })
        };
        // Three intervals until the rate has settled, and then 0.3 s.
        assert_eq!(intervals(9, true), Some(6));
        assert_eq!(intervals(9, false), Some(8));
        assert_eq!(intervals(1, true), Some(8), "a few files show little");
    }

    #[test]
    fn a_pause_shows_that_the_files_before_were_others() {
        assert_eq!(verdict((100, 18_000), true, Some(10_000)), Some(true));
        assert_eq!(verdict((100, 18_000), true, Some(20_000)), Some(false));
        assert_eq!(verdict((100, 25_000), true, Some(25_000)), Some(true), "no need to pause");
    }
}
