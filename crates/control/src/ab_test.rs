//! A/B test: measures under the live load whether control makes readers faster.
//!
//! Time slots with control (treatment) and without alternate in pairs. The order within a pair is
//! random, so that a load that grows or shrinks over hours favours neither. The test compares the
//! throughput of readers. It skips the first fifth of each slot, as readers take time to react.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use stats::Estimate;
use units::Nanos;

/// Pairs of slots before an effect is reported: the minimum for a 95 % CI of the median.
const MIN_PAIRS: usize = stats::INTERVAL_FROM;

/// The effect of treatment on the throughput of readers so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreatmentEffect {
    pub pairs: usize,
    /// Throughput with treatment ÷ throughput without: the median over the pairs.
    pub ratio: f64,
    /// The lower end of the 95 % confidence interval of `ratio`.
    pub low: f64,
    pub high: f64,
}

impl TreatmentEffect {
    /// Returns whether treatment makes readers slower: the whole interval is below 1.
    pub fn is_harm(&self) -> bool {
        self.pairs >= MIN_PAIRS && self.high < 1.0
    }
}

/// Alternates time slots with and without treatment.
#[derive(Clone, Debug)]
pub struct AbTest {
    slot: Nanos,
    random: Pcg64Mcg,
    treated_first: bool,
    /// The number of finished slots.
    number: u64,
    begun: Option<Nanos>,
    /// The time and the count at which measurement of this slot started; `None` before that.
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

    /// Returns whether the current slot is a treatment slot.
    pub fn is_treated(&self) -> bool {
        self.treated_first == self.number.is_multiple_of(2)
    }

    /// Takes the cumulative progress `got` of readers, in any unit. The first part of each slot,
    /// `settling_share`, does not count. Returns whether the current
    /// slot is a treatment slot.
    pub fn tick(&mut self, now: Nanos, got: u64, settling_share: f64) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let into = now.saturating_sub(begun);
        if self.counted.is_none() && into >= self.slot.scaled(settling_share) {
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
            // Slots without reads cannot be compared.
            let (with, without) =
                if self.is_treated() { (rate, self.last) } else { (self.last, rate) };
            self.with.push(with);
            self.without.push(without);
        }
    }

    fn draw_order(&mut self) {
        self.treated_first = self.random.random_bool(0.5);
    }

    /// Returns the effect so far; `None` before `MIN_PAIRS` pairs are complete.
    pub fn effect(&self) -> Option<TreatmentEffect> {
        let estimate = Estimate::of_ratios(&self.with, &self.without)?;
        (self.with.len() >= MIN_PAIRS).then_some(TreatmentEffect {
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
            treated = slots.tick(Nanos::from_secs(second), got, 0.2);
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
            (1..=80).map(|second| slots.tick(Nanos::from_secs(second), 0, 0.2)).collect();
        assert!(kinds.chunks_exact(2).all(|pair| pair[0] != pair[1]), "{kinds:?}");
        let first = kinds.chunks_exact(2).filter(|pair| pair[0]).count();
        assert!((8..32).contains(&first), "{first}");
        assert_eq!(slots.effect(), None, "nobody read");
    }
}
