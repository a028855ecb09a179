//! Decides whether the gaps between the pieces of a trend are prefetched, too.
//!
//! A device that limits requests, or seeks for each, reads long extents in less time than the
//! single pieces in them; another one wastes its time on the gaps. The rate of long extents is
//! unknown if all readers read pieces, so a reader that waits gets the gaps for a trial.

use units::Nanos;

use crate::tuning::Tuning;

/// The trial of a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GapTrial {
    /// Whether the gaps are prefetched.
    reads_gaps: bool,
    /// The first piece that was requested in this way.
    begins: u64,
    /// Intervals since the reader reached it, and the time and the piece at which it was then.
    intervals: u64,
    settled: Option<(Nanos, u64)>,
    /// Pieces per second without the gaps, during a trial.
    without: Option<f64>,
}

impl GapTrial {
    /// Returns the state after a trial that gained.
    #[cfg(test)]
    pub fn won() -> Self {
        Self { reads_gaps: true, ..Self::default() }
    }

    pub fn reads_gaps(&self) -> bool {
        self.reads_gaps
    }

    /// Ends an interval; the reader is at piece `at`, and the pieces before `done` are requested.
    /// `most` is the highest rate of the device so far, in pieces with their gaps per second, if a
    /// trial may start. When a trial ends, returns whether the reader is faster with the gaps.
    pub fn interval(
        &mut self,
        now: Nanos,
        (at, done): (u64, u64),
        most: Option<f64>,
        tuning: &Tuning,
    ) -> Option<bool> {
        self.intervals += u64::from(at >= self.begins);
        if self.intervals < tuning.settling_intervals() {
            return None;
        }
        let (since, from) = *self.settled.get_or_insert((now, at));
        if self.intervals < tuning.judge_intervals() {
            return None;
        }
        let pieces = at.saturating_sub(from);
        let rate = pieces as f64 / now.saturating_sub(since).as_secs_f64().max(1e-6);
        if let Some(without) = self.without {
            let gains = rate >= tuning.min_gain_ratio() * without;
            *self = Self { reads_gaps: gains, begins: done, ..Self::default() };
            return Some(gains);
        }
        if !self.reads_gaps && pieces >= tuning.few_samples {
            let may_gain = most.is_some_and(|most| rate <= tuning.max_rate_growth * most);
            let without = may_gain.then_some(rate);
            *self = Self { reads_gaps: may_gain, begins: done, without, ..Self::default() };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of 60 intervals after which gaps are read, with a reader of 100 pieces
    /// per interval without them and `with` with them. Pieces are requested `ahead` of it.
    fn intervals_with_gaps(with: u64, most: f64, ahead: u64) -> usize {
        let (mut trial, mut at, mut begun) = (GapTrial::default(), 0, false);
        let mut switched_at = 0;
        let mut interval = |number: u64| {
            // The pieces ahead of the reader are requested in the earlier way.
            at += if trial.reads_gaps() && at >= switched_at { with } else { 100 };
            // One trial: the caller pauses after a failure.
            let most = (!begun).then_some(most);
            let now = Nanos::from_millis(100 * number);
            let before = trial.reads_gaps();
            trial.interval(now, (at, at + ahead), most, &Tuning::DEFAULT);
            if trial.reads_gaps() && !before {
                (begun, switched_at) = (true, at + ahead);
            }
            trial.reads_gaps()
        };
        (1..=60).filter(|number| interval(*number)).count()
    }

    #[test]
    fn gaps_are_read_if_the_reader_is_faster_with_them() {
        let judged = Tuning::DEFAULT.judge_intervals() as usize;
        assert_eq!(intervals_with_gaps(500, 1000.0, 0), 60 - judged + 1);
        assert_eq!(intervals_with_gaps(101, 1000.0, 0), judged, "no gain");
        assert_eq!(intervals_with_gaps(500, 400.0, 0), 0, "no device is that much faster");
    }

    #[test]
    fn pieces_that_were_requested_before_do_not_count() {
        let judged = Tuning::DEFAULT.judge_intervals() as usize;
        assert_eq!(intervals_with_gaps(500, 1000.0, 1500), 60 - judged + 1);
    }
}
