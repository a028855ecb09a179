//! Which window an open file should have, from how its readers fare: the decisions of
//! `foreread auto`.
//!
//! It is not a read-ahead algorithm but sits above the kernel's: it sets the largest window that
//! the kernel may use for one open file. One [`Regulator`] is for one open file; it is told what
//! was seen in an interval and says what to do, and why.

use units::{Bytes, PageSize, Pages};

/// Growth of one step: a window that is far too small is right after two or three of them.
const GROWTH: u64 = 4;

/// The share of time that readers wait, from which on a larger window may help them.
const WAITS: f64 = 0.05;

/// What a larger window must win to be worth another step.
const GAIN: f64 = 1.05;

/// Intervals after a step before its effect is judged.
const SETTLING: u32 = 2;

/// Intervals after thrashing in which nothing grows.
const CAUTION: u32 = 20;

/// The window for a mapping that is read here and there: a fault reads around itself as much as the
/// window allows, whatever was said by `FADV_RANDOM`.
const MAPPED_RANDOM: Bytes = Bytes::from_kib(16);

/// Windows of 17 · 2ⁿ pages ramp well on file systems with large folios, where powers of two do
/// not (the kernel aligns the end of each window down to its largest power of two).
const ODD: u64 = 17;

/// How an open file was read in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Forward, in one run or several.
    Forward,
    /// By faults, here and there.
    MappedRandom,
    /// In a way that a window does not help, or too little to tell.
    Other,
}

/// What was seen of an open file in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// How it was read.
    pub reading: Reading,
    /// The window that it may have.
    pub window: Bytes,
    /// The share of time that its readers waited: 1 for one reader that always does.
    pub waiting: f64,
    /// What was read from the disk for it in a second.
    pub rate: Bytes,
    /// Misses of what had been read ahead.
    pub thrashed: u64,
    /// The most that the window may be: what the administrator allows, and its share of memory.
    pub most: Bytes,
}

/// A window to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// It.
    pub window: Bytes,
    /// One line for people.
    pub why: String,
}

/// Decides for one open file.
#[derive(Clone, Debug, Default)]
pub struct Regulator {
    /// The window and the rate before the step whose effect is awaited, and for how long.
    trial: Option<(Bytes, Bytes, u32)>,
    /// A window beyond which there was no gain.
    enough: Option<Bytes>,
    caution: u32,
}

impl Regulator {
    /// What to do after an interval; `None`: nothing.
    pub fn decide(&mut self, seen: &Observed, page: PageSize) -> Option<Step> {
        self.caution = self.caution.saturating_sub(1);
        if seen.thrashed > 0 {
            return self.shrink(seen, page);
        }
        match seen.reading {
            Reading::MappedRandom if seen.window > MAPPED_RANDOM => {
                let why = format!(
                    "its mapping is read at random, and each fault reads up to {} around itself",
                    seen.window
                );
                Some(Step { window: MAPPED_RANDOM, why })
            }
            Reading::Forward => self.forward(seen, page),
            _ => None,
        }
    }

    fn shrink(&mut self, seen: &Observed, page: PageSize) -> Option<Step> {
        self.trial = None;
        self.caution = CAUTION;
        let window = odd_at_most(Bytes::new(seen.window.get() / 2), page)?;
        self.enough = Some(window);
        let why = format!(
            "{} misses of what had been read ahead: it is evicted before its reader comes",
            seen.thrashed
        );
        (window < seen.window).then_some(Step { window, why })
    }

    fn forward(&mut self, seen: &Observed, page: PageSize) -> Option<Step> {
        if let Some((before, rate, age)) = self.trial {
            if age < SETTLING {
                self.trial = Some((before, rate, age + 1));
                return None;
            }
            self.trial = None;
            let gain = seen.rate.get() as f64 / (rate.get() as f64).max(1.0);
            if gain < GAIN {
                self.enough = Some(seen.window);
            }
            if gain < 1.0 / GAIN && seen.waiting > WAITS {
                self.enough = Some(before);
                let why = format!("with {} it was read {gain:.2} times as fast", seen.window);
                return Some(Step { window: before, why });
            }
        }
        let may_grow = self.caution == 0 && seen.waiting > WAITS;
        if !may_grow || self.enough.is_some_and(|enough| seen.window >= enough) {
            return None;
        }
        let window = odd_at_most(seen.most.min(wanted(seen.window, page)), page)?;
        if window <= seen.window {
            return None;
        }
        self.trial = Some((seen.window, seen.rate, 0));
        let why =
            format!("its readers wait {:.0} % of the time", (seen.waiting * 100.0).min(100.0));
        Some(Step { window, why })
    }
}

/// The next step up: a window of 17 · 2ⁿ pages that is larger by about [`GROWTH`].
fn wanted(window: Bytes, page: PageSize) -> Bytes {
    let least = Pages::new(ODD).to_bytes(page);
    Bytes::new(window.get().saturating_mul(GROWTH * 9 / 4)).max(least)
}

/// The largest window of 17 · 2ⁿ pages that is not larger; `None` if there is none.
fn odd_at_most(most: Bytes, page: PageSize) -> Option<Bytes> {
    let times = most.to_pages_floor(page).get() / ODD;
    let power = times.checked_ilog2()?;
    Some(Pages::new(ODD << power).to_bytes(page))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: PageSize = PageSize::FOUR_KIB;

    fn forward(window_kib: u64, waiting: f64, rate_mib: u64) -> Observed {
        Observed {
            reading: Reading::Forward,
            window: Bytes::from_kib(window_kib),
            waiting,
            rate: Bytes::from_mib(rate_mib),
            thrashed: 0,
            most: Bytes::from_mib(8),
        }
    }

    #[test]
    fn a_reader_that_waits_gets_more_until_that_wins_nothing() {
        let mut regulator = Regulator::default();
        let step = regulator.decide(&forward(128, 0.8, 10), PAGE).expect("a step");
        assert_eq!(step.window, Bytes::from_kib(1088));
        assert_eq!(regulator.decide(&forward(1088, 0.5, 20), PAGE), None, "it settles");
        assert_eq!(regulator.decide(&forward(1088, 0.5, 40), PAGE), None);
        let step = regulator.decide(&forward(1088, 0.5, 40), PAGE).expect("it was worth it");
        assert_eq!(step.window, Bytes::from_kib(4352));
        for _ in 0..20 {
            assert_eq!(regulator.decide(&forward(4352, 0.5, 41), PAGE), None, "no gain, no step");
        }
    }

    #[test]
    fn a_step_that_did_harm_is_taken_back() {
        let mut regulator = Regulator::default();
        regulator.decide(&forward(128, 0.8, 100), PAGE).expect("a step");
        for _ in 0..2 {
            assert_eq!(regulator.decide(&forward(1088, 0.8, 50), PAGE), None);
        }
        let back = regulator.decide(&forward(1088, 0.8, 50), PAGE).expect("a step back");
        assert_eq!(back.window, Bytes::from_kib(128));
        assert_eq!(regulator.decide(&forward(128, 0.8, 100), PAGE), None, "not again");
    }

    #[test]
    fn nobody_who_is_content_is_disturbed() {
        let mut regulator = Regulator::default();
        assert_eq!(regulator.decide(&forward(128, 0.01, 500), PAGE), None);
        let other = Observed { reading: Reading::Other, ..forward(128, 1.0, 1) };
        assert_eq!(regulator.decide(&other, PAGE), None, "a window does not help random reads");
    }

    #[test]
    fn thrashing_halves_and_forbids_growth() {
        let mut regulator = Regulator::default();
        let seen = Observed { thrashed: 7, ..forward(4352, 0.9, 10) };
        assert_eq!(regulator.decide(&seen, PAGE).expect("less").window, Bytes::from_kib(2176));
        assert_eq!(regulator.decide(&forward(2176, 0.9, 10), PAGE), None);
    }

    #[test]
    fn a_mapping_read_at_random_gets_a_small_window_once() {
        let mut regulator = Regulator::default();
        let seen = Observed { reading: Reading::MappedRandom, ..forward(8192, 0.9, 10) };
        assert_eq!(regulator.decide(&seen, PAGE).expect("less").window, MAPPED_RANDOM);
        let seen = Observed { window: MAPPED_RANDOM, ..seen };
        assert_eq!(regulator.decide(&seen, PAGE), None);
    }

    proptest! {
        #[test]
        fn no_window_grows_beyond_what_is_allowed(
            seen in prop::collection::vec(
                (0_u64..100_000, 0.0..9.0_f64, 0_u64..999, 0_u64..3), 1..50
            ),
            most in 4_u64..100_000,
        ) {
            let mut regulator = Regulator::default();
            for (window, waiting, rate, thrashed) in seen {
                let most = Bytes::from_kib(most);
                let observed = Observed { thrashed, most, ..forward(window, waiting, rate) };
                if let Some(step) = regulator.decide(&observed, PAGE) {
                    let back = step.why.contains("times as fast");
                    prop_assert!(step.window <= most || step.window < observed.window || back);
                }
            }
        }
    }
}
