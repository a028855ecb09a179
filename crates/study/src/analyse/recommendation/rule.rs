//! The rule.
//!
//! The economical setting leads: the smallest with 80 % of the possible gain. The best one leads
//! only if it gains a tenth more than that and costs nothing that was measured. Under a tenth of
//! gain the device keeps what it has, unless a smaller setting is as fast and saves what a person
//! would notice. A workload that loses more than half makes a condition.

use units::{Bytes, Kib, read_ahead_memory};

use super::super::curve::{EQUIVALENT, Point, in_a_word};
use super::super::ladder::Ladder;
use super::super::types::Difference;
use super::evidence::Evidence;
use super::{Decision, Doubt};

/// A gain below this is not worth a change.
pub(crate) const MATTERS: f64 = 1.10;
/// What a larger setting may cost a workload if it is to lead: less than a tenth.
pub(crate) const COSTS_NOTHING: f64 = 0.90;
/// A workload that keeps less than this makes a condition.
pub(crate) const CONDITION: f64 = 0.50;
/// A workload that is faster by this at a smaller setting is a saving.
pub(crate) const SAVES: f64 = 1.50;
/// Memory that a person would notice.
const MEMORY_NOTICED: Bytes = Bytes::from_mib(64);
/// No smaller setting is advised for what it saves: requests of programs up to this size would be
/// split, and the suite, which reads pages, does not show what that costs.
pub(crate) const SMALLEST_SAVING: Kib = Kib::new(64);

/// A decision and the settings that it is about.
pub(crate) struct Choice<'a> {
    pub(crate) decision: Decision,
    pub(crate) ladder: Option<Ladder<'a>>,
    /// What [`Decision::Set`] sets.
    pub(crate) chosen: Option<&'a Point>,
}

impl Evidence {
    /// What follows from the measurements. `streams` are those of the largest goal.
    pub(crate) fn decide(&self, streams: u32) -> Choice<'_> {
        let without =
            |doubt| Choice { decision: Decision::Inconclusive(doubt), ladder: None, chosen: None };
        if self.goals.points.len() < 2 {
            return without(Doubt::NothingToCompare);
        }
        let Some(ladder) = self.ladder() else { return without(Doubt::NothingMeasured) };
        let (decision, chosen) = self.choose(&ladder, streams);
        let rests_on = [Some(ladder.base), Some(ladder.best), chosen];
        let disturbed = rests_on.into_iter().flatten().find(|point| !point.clean);
        match disturbed {
            Some(point) => Choice {
                ladder: Some(ladder),
                ..without(Doubt::Disturbed(point.settings.read_ahead))
            },
            None => Choice { decision, ladder: Some(ladder), chosen },
        }
    }

    fn choose<'a>(&'a self, ladder: &Ladder<'a>, streams: u32) -> (Decision, Option<&'a Point>) {
        let headline = self.headline(ladder);
        let gain = self.goals.ratio(headline, ladder.base);
        let difference = self.goals.difference();
        if gain.median >= MATTERS && headline.settings != ladder.base.settings {
            // What was measured once has no interval; that much is no noise.
            let sure = !gain.is_bounded() || in_a_word(&gain) == Difference::Better;
            let differs = ladder.base_is_found || difference == Difference::Better;
            return match sure && differs {
                true => (Decision::Set(headline.settings.read_ahead), Some(headline)),
                false => (Decision::Inconclusive(Doubt::TooNoisy), None),
            };
        }
        if let Some(smaller) = self.saving(ladder, streams) {
            return (Decision::Set(smaller.settings.read_ahead), Some(smaller));
        }
        let hopeful = gain.decision_bounds().1 >= MATTERS;
        let decision = match difference {
            Difference::NoMeasurableDifference => Decision::NoDifference,
            Difference::Inconclusive if hopeful => Decision::Inconclusive(Doubt::TooNoisy),
            _ if ladder.base_is_found => Decision::Keep(ladder.base.settings.read_ahead),
            _ => Decision::NoDifference,
        };
        (decision, None)
    }

    /// The economical setting, or the best one if that is worth it.
    pub(crate) fn headline<'a>(&self, ladder: &Ladder<'a>) -> &'a Point {
        let (best, economical) = (ladder.best, ladder.economical);
        let more = Self::gain(best, economical) >= MATTERS;
        let free = !self.weighs_costs()
            || self.all_keep(COSTS_NOTHING, best.settings, economical.settings);
        if more && free { best } else { economical }
    }

    /// The smallest setting that is as fast as the present one, if it saves what a person notices.
    fn saving<'a>(&'a self, ladder: &Ladder<'a>, streams: u32) -> Option<&'a Point> {
        let base = ladder.base;
        let smaller = self.goals.confirmed().find(|point| self.is_as_fast(point, base))?;
        let saves = self.saves_memory(smaller, base, streams)
            || (self.weighs_costs() && self.saves_a_cost(smaller, base));
        (ladder.base_is_found && saves).then_some(smaller)
    }

    /// Whether a smaller setting serves the goals as well as the present one.
    pub(crate) fn is_as_fast(&self, point: &Point, base: &Point) -> bool {
        point.settings < base.settings
            && point.settings.read_ahead >= SMALLEST_SAVING
            && point.median >= base.median * (1.0 - EQUIVALENT)
            && in_a_word(&self.goals.ratio(point, base)) != Difference::Worse
    }

    fn saves_a_cost(&self, smaller: &Point, base: &Point) -> bool {
        let ratios = || {
            self.costs
                .iter()
                .filter_map(|cost| Self::cost_ratio(cost, smaller.settings, base.settings))
        };
        ratios().any(|ratio| ratio >= SAVES) && ratios().all(|ratio| ratio >= COSTS_NOTHING)
    }

    fn saves_memory(&self, smaller: &Point, base: &Point, streams: u32) -> bool {
        let [less, present] = [smaller, base].map(|point| memory(point, streams));
        present.saturating_sub(less) >= MEMORY_NOTICED && less.get() * 2 <= present.get()
    }

    /// The setting that gains most without a condition: the smallest that is within noise of it.
    pub(crate) fn without_conditions<'a>(&'a self, ladder: &Ladder<'a>) -> Option<&'a Point> {
        let base = ladder.base;
        let harmless = |point: &&Point| {
            self.all_keep(CONDITION, point.settings, base.settings)
                && Self::gain(point, base) >= MATTERS
        };
        let all: Vec<&Point> = self.goals.confirmed().filter(harmless).collect();
        let top = all.iter().max_by(|a, b| a.median.total_cmp(&b.median))?;
        all.iter().find(|point| self.goals.as_good(point, top)).copied()
    }
}

/// The page cache that streams may take under a setting.
pub(crate) fn memory(point: &Point, streams: u32) -> Bytes {
    read_ahead_memory(point.settings.read_ahead.to_bytes(), u64::from(streams))
}
