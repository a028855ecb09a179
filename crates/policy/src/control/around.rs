//! Whether what the kernel reads around random faults of a mapping is worth its time.
//!
//! Each fault brings as much as the window allows around itself. Where that takes most of the
//! fault's time, or is pushed out again before anybody wants it, a page is better. But on a disk
//! that seeks, a small window comes nearly free, and of a file that fits into memory each page of
//! it may save a seek later. So the smaller window is tried where the file fits, and the faults'
//! own times decide.

use units::{Nanos, Pages};

/// Faults that must have been waited for with the window that the open file had, or a time for
/// which they were; and those with the smaller one.
const BEFORE: (u64, Nanos) = (8, Nanos::from_millis(500));
const AFTER: u64 = 32;
/// A fault that still takes at least this part of what it took has won too little.
const LITTLE: f64 = 0.7;

/// Faults that were waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    count: u64,
    waited: Nanos,
}

impl Faults {
    fn add(&mut self, wait: Nanos) {
        self.count += 1;
        self.waited += wait;
    }

    fn mean(&self) -> f64 {
        self.waited.as_secs_f64() / self.count.max(1) as f64
    }
}

/// How far the question is answered, for one mapping.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It has the window that it had when it was met.
    Own,
    /// It has a smaller one.
    Smaller { faults: Faults },
    /// A smaller one was tried: a fault took this part of the time.
    Vain { part: f64 },
}

/// What is known of random faults of one mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    own: Faults,
    state: State,
}

/// What a mapping that is read at random is to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// What it has, until more of its faults were seen.
    Wait,
    /// The smallest window that serves its faults.
    Smaller,
    /// Its own window: a fault took this part of the time with a smaller one.
    Own { part: f64 },
}

impl Default for Around {
    fn default() -> Self {
        Self { own: Faults::default(), state: State::Own }
    }
}

impl Around {
    /// A fault was waited for.
    pub fn waited(&mut self, wait: Nanos) {
        match &mut self.state {
            State::Own => self.own.add(wait),
            State::Smaller { faults } => {
                faults.add(wait);
                let part = faults.mean() / self.own.mean().max(f64::MIN_POSITIVE);
                if faults.count == AFTER && self.own.count > 0 && part >= LITTLE {
                    self.state = State::Vain { part };
                }
            }
            State::Vain { .. } => {}
        }
    }

    /// It was given another window.
    pub fn ordered(&mut self, window: Pages, own: Pages) {
        if window < own && matches!(self.state, State::Own) {
            self.state = State::Smaller { faults: Faults::default() };
        }
    }

    /// Which window it is to have; `fits` says whether the whole file may stay in memory.
    pub fn verdict(&self, fits: bool) -> Verdict {
        if !fits {
            return Verdict::Smaller;
        }
        match self.state {
            State::Own if self.own.count < BEFORE.0 && self.own.waited < BEFORE.1 => Verdict::Wait,
            State::Own | State::Smaller { .. } => Verdict::Smaller,
            State::Vain { part } => Verdict::Own { part },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Pages = Pages::new(32);

    /// Faults that take so long with the own window, then as many as suffice with one page.
    fn tried(own: u64, smaller: u64) -> Around {
        let mut around = Around::default();
        (0..BEFORE.0).for_each(|_| around.waited(Nanos::from_micros(own)));
        assert_eq!(around.verdict(true), Verdict::Smaller);
        around.ordered(Pages::new(1), OWN);
        for _ in 0..AFTER {
            assert_eq!(around.verdict(true), Verdict::Smaller);
            around.waited(Nanos::from_micros(smaller));
        }
        around
    }

    #[test]
    fn where_seeks_take_the_time_the_window_comes_back() {
        let around = tried(9500, 8300);
        assert!(
            matches!(around.verdict(true), Verdict::Own { part } if (0.87..0.88).contains(&part))
        );
        assert_eq!(around.verdict(false), Verdict::Smaller, "not where memory is short");
        assert!(matches!(around.verdict(true), Verdict::Own { .. }), "and again where it is not");
    }

    #[test]
    fn where_the_window_takes_the_time_it_stays_small() {
        for (own, smaller) in [(88_000, 8300), (350, 100), (2100, 1000)] {
            assert_eq!(tried(own, smaller).verdict(true), Verdict::Smaller);
        }
    }

    #[test]
    fn little_evidence_decides_nothing_unless_it_took_long() {
        let mut around = Around::default();
        around.waited(Nanos::from_millis(9));
        assert_eq!(around.verdict(true), Verdict::Wait);
        assert_eq!(around.verdict(false), Verdict::Smaller);
        around.waited(Nanos::from_millis(600));
        assert_eq!(around.verdict(true), Verdict::Smaller);
    }
}
