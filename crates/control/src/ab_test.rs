//! Measures on the live load whether control helps: slots of time with it (treatment) and without.
//!
//! Slots come in pairs, one of each kind, in random order, so that a load that grows or shrinks
//! over hours favours neither. The measure is what readers got from the disk in a slot. The first
//! quarter of each slot is left out, because readers take a while to react.

use crate::tuning::ab_test as tuning;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use stats::Estimate;
use units::Nanos;

/// What the slots have shown so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreatmentEffect {
    pub pairs: usize,
    /// Throughput of readers with treatment over that without: the median over the pairs.
    pub ratio: f64,
    /// The lower end of its 95 % confidence interval.
    pub low: f64,
    pub high: f64,
}

impl TreatmentEffect {
    /// Whether treatment is worse than none: the whole interval is below 1.
    pub fn is_harm(&self) -> bool {
        self.pairs >= tuning::MIN_PAIRS && self.high < 1.0
    }
}

/// Alternates slots with and without treatment.
#[derive(Clone, Debug)]
pub struct AbTest {
    slot: Nanos,
    random: Pcg64Mcg,
    treated_first: bool,
    /// Slots that are over; the one at work is the next.
    number: u64,
    begun: Option<Nanos>,
    /// When counting began in this slot, and from what.
    counted: Option<(Nanos, u64)>,
    last: f64,
    with: Vec<f64>,
    without: Vec<f64>,
}

impl AbTest {
    pub fn new(slot: Nanos, seed: u64) -> Self {
        let mut test = Self {
            slot,
            random: Pcg64Mcg::seed_from_u64(seed),
            treated_first: true,
            number: 0,
            begun: None,
            counted: None,
            last: 0.0,
            with: Vec::new(),
            without: Vec::new(),
        };
        test.draw_order();
        test
    }

    /// Whether the slot at work is one of treatment.
    pub fn is_treated(&self) -> bool {
        self.treated_first == self.number.is_multiple_of(2)
    }

    /// Takes in what readers got so far, in any unit, as a count that only grows. Whether the slot
    /// is one of treatment from now on.
    pub fn tick(&mut self, now: Nanos, got: u64) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let into = now.saturating_sub(begun);
        if self.counted.is_none() && into >= self.slot.scaled(tuning::SETTLING_SHARE) {
            self.counted = Some((now, got));
        }
        if into >= self.slot {
            self.close(now, got);
            self.begun = Some(now);
            self.counted = None;
            self.number += 1;
            if self.number.is_multiple_of(2) {
                self.draw_order();
            }
        }
        self.is_treated()
    }

    fn close(&mut self, now: Nanos, got: u64) {
        let Some((since, before)) = self.counted else { return };
        let seconds = now.saturating_sub(since).as_secs_f64().max(1e-9);
        let rate = got.saturating_sub(before) as f64 / seconds;
        if self.number.is_multiple_of(2) {
            self.last = rate;
        } else if rate > 0.0 && self.last > 0.0 {
            // A pair without reads says nothing.
            let (with, without) =
                if self.is_treated() { (rate, self.last) } else { (self.last, rate) };
            self.with.push(with);
            self.without.push(without);
        }
    }

    fn draw_order(&mut self) {
        self.treated_first = self.random.random_bool(0.5);
    }

    /// What the slots have shown so far; `None` before there are enough.
    pub fn effect(&self) -> Option<TreatmentEffect> {
        let estimate = Estimate::of_ratios(&self.with, &self.without)?;
        (self.with.len() >= tuning::MIN_PAIRS).then_some(TreatmentEffect {
            pairs: self.with.len(),
            ratio: estimate.median,
            low: estimate.low(),
            high: estimate.high(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(with: u64, without: u64) -> TreatmentEffect {
        let mut slots = AbTest::new(Nanos::from_secs(10), 7);
        let (mut got, mut treated) = (0, slots.is_treated());
        for second in 0..400 {
            got += if treated { with } else { without } + second % 3;
            treated = slots.tick(Nanos::from_secs(second), got);
        }
        slots.effect().expect("enough slots")
    }

    #[test]
    fn an_effect_is_seen_with_its_interval() {
        let twice = effect(200, 100);
        assert!((1.9..2.1).contains(&twice.ratio) && twice.low > 1.8, "{twice:?}");
        assert!(!twice.is_harm());
        assert!(effect(80, 100).is_harm());
        let none = effect(100, 100);
        assert!(none.low <= 1.0 && none.high >= 1.0 && !none.is_harm(), "{none:?}");
    }

    #[test]
    fn each_pair_has_both_and_chance_says_which_is_first() {
        let mut slots = AbTest::new(Nanos::from_secs(1), 3);
        let kinds: Vec<bool> =
            (1..=80).map(|second| slots.tick(Nanos::from_secs(second), 0)).collect();
        assert!(kinds.chunks_exact(2).all(|pair| pair[0] != pair[1]), "{kinds:?}");
        let first = kinds.chunks_exact(2).filter(|pair| pair[0]).count();
        assert!((8..32).contains(&first), "{first}");
        assert_eq!(slots.effect(), None, "nobody read");
    }
}
