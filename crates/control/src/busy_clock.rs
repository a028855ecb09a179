//! A clock that stops while programs compute between their reads.

use units::Nanos;

use crate::tuning::Tuning;

/// Measures time without rests. A rest is a time in which nothing was read from a device, neither
/// so short that a request may have taken as long, nor so long that the readers count as idle.
#[derive(Clone, Debug, Default)]
pub(super) struct BusyClock {
    tick: Option<Nanos>,
    rests_since: Option<Nanos>,
    rested: Nanos,
}

impl BusyClock {
    /// Advances to `now`; `rests`: nothing was read since the last tick. Returns whether the clock
    /// runs: it stops when a rest begins, until reads go on or their readers count as idle.
    pub fn advance(&mut self, now: Nanos, rests: bool, tuning: &Tuning) -> bool {
        let before = self.tick.replace(now).unwrap_or(now);
        if rests {
            let since = *self.rests_since.get_or_insert(before);
            return now.saturating_sub(since) >= tuning.idle_timeout;
        }
        let since = self.rests_since.take().unwrap_or(before);
        let rest = before.saturating_sub(since);
        if (tuning.min_first_trial_time()..tuning.idle_timeout).contains(&rest) {
            self.rested += rest;
        }
        true
    }

    /// Returns a time without the rests so far.
    pub fn without_rests(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.rested)
    }

    /// Returns the time of the last tick, rests included.
    pub fn now(&self) -> Nanos {
        self.tick.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time that counts of a rest of so many ticks of 50 ms between reads, in ms, and
    /// whether the clock runs again before it has ended.
    fn counted(ticks: u64) -> (u64, bool) {
        let (mut clock, mut runs) = (BusyClock::default(), false);
        let at = |tick| Nanos::from_millis(50 * tick);
        clock.advance(at(1), false, &Tuning::DEFAULT);
        for tick in 2..2 + ticks {
            runs |= clock.advance(at(tick), true, &Tuning::DEFAULT);
        }
        let end = at(2 + ticks);
        assert!(clock.advance(end, false, &Tuning::DEFAULT));
        (clock.without_rests(end).get() / 1_000_000 - 100, runs)
    }

    #[test]
    fn only_rests_that_are_neither_short_nor_long_are_left_out() {
        assert_eq!(counted(1), (50, false), "one request may take as long");
        assert_eq!(counted(4), (0, false));
        assert_eq!(counted(60), (3000, true), "its readers are idle");
    }
}
