//! No larger windows for an open file of which much that is read ahead is not used: one that is
//! read in short runs from place to place.
//!
//! It keeps the window that it had. A smaller one would read less in vain, but on most devices
//! makes more and smaller requests of the same run, and its reader gets less.

use crate::tuning::waste as tuning;
use units::{Nanos, Pages};

/// What was counted of an open file so far; it only grows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WasteTally {
    pub used: u64,
    pub wasted: u64,
    /// Windows that were left before they were used up.
    pub abandoned: u64,
    /// Places where a run went on, and others.
    pub forward: u64,
    pub elsewhere: u64,
}

/// The limit of one open file's window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trim {
    limit: Option<Pages>,
    since: Option<(Nanos, WasteTally)>,
    waste: f64,
}

impl Trim {
    /// The most that its window should be, if it is read in short runs.
    pub fn limit(&self) -> Option<Pages> {
        self.limit
    }

    /// The share of what was read ahead that was not used, of late.
    pub fn waste(&self) -> f64 {
        self.waste
    }

    /// Takes in what was counted up to now; `own` is the window that it had at first.
    pub fn step(&mut self, now: Nanos, tally: WasteTally, own: Pages) {
        let (since, before) = *self.since.get_or_insert((now, tally));
        let (used, wasted) = (tally.used - before.used, tally.wasted - before.wasted);
        let runs = tally.elsewhere - before.elsewhere;
        let left = tally.abandoned - before.abandoned;
        if now.saturating_sub(since) < tuning::MIN_OBSERVATION_TIME
            || (left < tuning::MIN_ABANDONED_WINDOWS && used + wasted == 0)
        {
            return;
        }
        self.since = Some((now, tally));
        self.waste = wasted as f64 / (used + wasted).max(1) as f64;
        let forward = tally.forward - before.forward;
        if (runs as f64) < tuning::LONG_RUNS_SHARE * (forward + runs) as f64 {
            self.limit = None;
        } else if self.waste > tuning::MAX_WASTE_SHARE && left >= tuning::MIN_ABANDONED_WINDOWS {
            self.limit = Some(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Pages = Pages::new(32);

    fn after(tallies: &[WasteTally]) -> Option<Pages> {
        let (mut trim, mut now) = (Trim::default(), Nanos::ZERO);
        trim.step(now, WasteTally::default(), OWN);
        for tally in tallies {
            now += Nanos::from_secs(1);
            trim.step(now, *tally, OWN);
        }
        trim.limit()
    }

    #[test]
    fn short_runs_keep_what_they_had_until_they_are_long() {
        let short =
            WasteTally { used: 1000, wasted: 900, abandoned: 90, forward: 200, elsewhere: 100 };
        assert_eq!(after(&[short]), Some(OWN));
        let long = WasteTally { used: 9000, forward: 900, ..short };
        assert_eq!(after(&[short, long]), None);
    }

    #[test]
    fn a_stream_and_what_was_all_used_is_not_limited() {
        let stream =
            WasteTally { used: 9000, wasted: 3000, abandoned: 2, forward: 900, elsewhere: 40 };
        assert_eq!(after(&[stream]), None);
        let used =
            WasteTally { used: 9000, wasted: 100, abandoned: 20, forward: 900, elsewhere: 400 };
        assert_eq!(after(&[used]), None);
    }
}
