//! Does it help? Control and treatment in slots of time, in random order, on the live load.
//!
//! Slots come in pairs, one of each kind, and chance says which is first; so a load that grows or
//! shrinks over hours favours neither. What counts is what readers got from the disk in a slot;
//! the first quarter of each is left out, because readers take a while to notice.

use serde::Serialize;
use stats::Estimate;
use units::Nanos;

/// Pairs before anything is concluded.
const LEAST: usize = 6;
/// The part of a slot that is left out at its beginning.
const SETTLING: f64 = 0.25;

/// What the slots have shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Pairs of slots.
    pub pairs: usize,
    /// How many times as much readers got with treatment as without: the median over the pairs.
    pub ratio: f64,
    /// Its 95 % interval.
    pub low: f64,
    /// Its 95 % interval.
    pub high: f64,
}

impl Effect {
    /// Whether it is worse than doing nothing, with little doubt.
    pub fn is_harm(&self) -> bool {
        self.pairs >= LEAST && self.high < 1.0
    }
}

/// Alternates control and treatment.
#[derive(Clone, Debug)]
pub struct Slots {
    length: Nanos,
    seed: u64,
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

impl Slots {
    /// Slots of this length.
    pub fn new(length: Nanos, seed: u64) -> Self {
        let mut slots = Self {
            length,
            seed,
            treated_first: true,
            number: 0,
            begun: None,
            counted: None,
            last: 0.0,
            with: Vec::new(),
            without: Vec::new(),
        };
        slots.toss();
        slots
    }

    /// Whether the slot at work is one of treatment.
    pub fn treated(&self) -> bool {
        self.treated_first == self.number.is_multiple_of(2)
    }

    /// Takes in what readers got so far, in any unit that only grows; whether the slot is one of
    /// treatment from now on.
    pub fn tick(&mut self, now: Nanos, got: u64) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let into = now.saturating_sub(begun);
        if self.counted.is_none() && into >= self.length.scaled(SETTLING) {
            self.counted = Some((now, got));
        }
        if into >= self.length {
            self.close(now, got);
            self.begun = Some(now);
            self.counted = None;
            self.number += 1;
            if self.number.is_multiple_of(2) {
                self.toss();
            }
        }
        self.treated()
    }

    fn close(&mut self, now: Nanos, got: u64) {
        let Some((since, before)) = self.counted else { return };
        let seconds = now.saturating_sub(since).as_secs_f64().max(1e-9);
        let rate = got.saturating_sub(before) as f64 / seconds;
        if self.number.is_multiple_of(2) {
            self.last = rate;
        } else if rate > 0.0 && self.last > 0.0 {
            // A pair in which nobody read says nothing.
            let (with, without) =
                if self.treated() { (rate, self.last) } else { (self.last, rate) };
            self.with.push(with);
            self.without.push(without);
        }
    }

    fn toss(&mut self) {
        // A generator of Knuth's, of which the highest bit is taken.
        let (factor, rest) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
        self.seed = self.seed.wrapping_mul(factor).wrapping_add(rest);
        self.treated_first = self.seed >> 63 == 0;
    }

    /// What the slots have shown so far; `None` before there are enough.
    pub fn effect(&self) -> Option<Effect> {
        let estimate = Estimate::of_ratios(&self.with, &self.without)?;
        (self.with.len() >= LEAST).then_some(Effect {
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

    fn effect(with: u64, without: u64) -> Effect {
        let mut slots = Slots::new(Nanos::from_secs(10), 7);
        let (mut got, mut treated) = (0, slots.treated());
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
        let mut slots = Slots::new(Nanos::from_secs(1), 3);
        let kinds: Vec<bool> =
            (1..=80).map(|second| slots.tick(Nanos::from_secs(second), 0)).collect();
        assert!(kinds.chunks_exact(2).all(|pair| pair[0] != pair[1]), "{kinds:?}");
        let first = kinds.chunks_exact(2).filter(|pair| pair[0]).count();
        assert!((8..32).contains(&first), "{first}");
        assert_eq!(slots.effect(), None, "nobody read");
    }
}
