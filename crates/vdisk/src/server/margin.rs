//! How long before a deadline the timer wakes up, to spin for the remaining time.

use std::sync::atomic::{AtomicU64, Ordering};

use units::Nanos;

const INITIAL_MARGIN: Nanos = Nanos::from_micros(30);
const MAX_MARGIN: Nanos = Nanos::from_micros(100);
const MIN_MARGIN: Nanos = Nanos::from_micros(3);
/// The margin grows by ten steps after a late wake-up and shrinks by one step after any other. It
/// converges where 10 of 11 wake-ups are in time.
const MARGIN_STEP: Nanos = Nanos::new(200);

/// The margin for late wake-ups on this machine.
#[derive(Debug)]
pub(crate) struct Margin(AtomicU64);

impl Default for Margin {
    fn default() -> Self {
        Self(AtomicU64::new(INITIAL_MARGIN.get()))
    }
}

impl Margin {
    pub(crate) fn get(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }

    /// Records how late a wake-up was. Only one thread may call this.
    pub(crate) fn learn(&self, overslept: Nanos) {
        let (margin, step) = (self.get().get(), MARGIN_STEP.get());
        let next = if overslept.get() > margin { margin + 10 * step } else { margin - step };
        self.0.store(next.clamp(MIN_MARGIN.get(), MAX_MARGIN.get()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_above_what_most_wake_ups_take_and_within_its_bounds() {
        let margin = Margin::default();
        for _ in 0..1000 {
            margin.learn(Nanos::from_micros(12));
        }
        assert!((11..=14).contains(&(margin.get().get() / 1000)), "{:?}", margin.get());
        (0..1000).for_each(|_| margin.learn(Nanos::from_secs(1)));
        assert_eq!(margin.get(), MAX_MARGIN);
        (0..10_000).for_each(|_| margin.learn(Nanos::ZERO));
        assert_eq!(margin.get(), MIN_MARGIN);
    }
}
