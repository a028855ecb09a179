//! Pauses after failures of an action.

use units::Nanos;

use crate::tuning::Tuning;

/// The pause before a failed action is tried again. It doubles with each failure, up to a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    not_before: Nanos,
    failures: u32,
}

impl Backoff {
    pub fn is_over(&self, now: Nanos) -> bool {
        now >= self.not_before
    }

    /// Starts the next pause.
    pub fn fail(&mut self, now: Nanos, tuning: &Tuning) {
        self.not_before =
            now + tuning.backoff_time * (1 << self.failures.min(tuning.max_backoff_doublings));
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_pause_up_to_a_limit() {
        let (mut backoff, mut now) = (Backoff::default(), Nanos::ZERO);
        assert!(backoff.is_over(now));
        for failure in 0..12_u32 {
            backoff.fail(now, &Tuning::DEFAULT);
            let pause = Tuning::DEFAULT.backoff_time
                * 2_u64.pow(failure.min(Tuning::DEFAULT.max_backoff_doublings));
            assert!(!backoff.is_over(now + pause.saturating_sub(Nanos::new(1))));
            now += pause;
            assert!(backoff.is_over(now));
        }
    }
}
