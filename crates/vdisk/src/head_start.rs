//! How much earlier than by the model a lone request is answered.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Reader wait times for which the head start is measured; it is interpolated between them. The
/// longer a reader waits, the deeper its processor sleeps and the colder its caches are.
pub(crate) const IDLE_TIMES: [Nanos; 3] =
    [Nanos::from_millis(1), Nanos::from_millis(5), Nanos::from_millis(10)];

/// How early to send the reply to a lone request, for each of `IDLE_TIMES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadStart(pub(crate) [Nanos; IDLE_TIMES.len()]);

impl HeadStart {
    /// Returns the head start of a reply after this wait.
    pub(crate) fn after(&self, wait: Nanos) -> Nanos {
        let above =
            IDLE_TIMES.iter().position(|w| *w >= wait).unwrap_or(IDLE_TIMES.len() - 1).max(1);
        let (low, high) = (IDLE_TIMES[above - 1], IDLE_TIMES[above]);
        let (from, to) = (self.0[above - 1].get() as f64, self.0[above].get() as f64);
        let way = wait.saturating_sub(low).get() as f64 / (high - low).get() as f64;
        Nanos::new((from + (to - from) * way.clamp(0.0, 1.0)) as u64)
    }

    #[cfg(test)]
    pub(crate) fn constant(early: Nanos) -> Self {
        Self([early; IDLE_TIMES.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_start_is_interpolated_between_the_waits_that_were_measured() {
        let head_start = HeadStart([10, 40, 80].map(Nanos::from_micros));
        for (wait, early) in [(0, 10), (1_000, 10), (3_000, 25), (5_000, 40), (7_500, 60)] {
            let early = Nanos::from_micros(early);
            assert_eq!(head_start.after(Nanos::from_micros(wait)), early, "after {wait} µs");
        }
        assert_eq!(head_start.after(Nanos::from_secs(9)), Nanos::from_micros(80));
    }
}
