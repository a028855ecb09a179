//! The rule of the decision.
//!
//! The headline is the economical setting: the smallest with 80 % of the possible gain. The best
//! setting is the headline only if it gains 10 % more and no cost workload loses more than 10 %. If
//! the gain is below 10 %, the device keeps its setting, unless a smaller one is as fast and saves
//! a noticeable amount. A workload that loses more than half of its throughput becomes a condition.

use units::{Bytes, Kib, read_ahead_memory};

use super::super::curve::{EQUIVALENCE_MARGIN, SettingPoint, classify};
use super::super::ladder::Ladder;
use super::super::types::Difference;
use super::evidence::TrialEvidence;
use super::{Decision, InconclusiveReason};

/// Minimum gain that justifies a change.
pub(crate) const MIN_GAIN_RATIO: f64 = 1.10;
/// A larger setting is the headline only if every cost workload keeps this share of its throughput.
pub(crate) const NO_COST_RATIO: f64 = 0.90;
/// A workload that keeps less than this share becomes a condition.
pub(crate) const CONDITION_BELOW_RATIO: f64 = 0.50;
/// A workload that is at least this much faster at a smaller setting is a saving.
pub(crate) const MIN_SAVING_RATIO: f64 = 1.50;
/// Minimum saving of memory that is noticeable.
const MIN_MEMORY_SAVING: Bytes = Bytes::from_mib(64);
/// The smallest setting that is recommended for its savings. Smaller ones would split programs'
/// requests of up to this size, a cost that the suite does not measure, because it reads pages.
pub(crate) const MIN_SAVING_SETTING: Kib = Kib::new(64);

/// A decision and the settings that it refers to.
pub(crate) struct SettingChoice<'a> {
    pub(crate) decision: Decision,
    pub(crate) ladder: Option<Ladder<'a>>,
    /// The setting of [`Decision::Set`]; `None` for other decisions.
    pub(crate) chosen: Option<&'a SettingPoint>,
}

impl TrialEvidence {
    /// Decides. `streams` is the number of streams of the largest goal.
    pub(crate) fn decide(&self, streams: u32) -> SettingChoice<'_> {
        let without = |doubt| SettingChoice {
            decision: Decision::Inconclusive(doubt),
            ladder: None,
            chosen: None,
        };
        if self.goals.points.len() < 2 {
            return without(InconclusiveReason::NothingToCompare);
        }
        let Some(ladder) = self.ladder() else {
            return without(InconclusiveReason::NothingMeasured);
        };
        let (decision, chosen) = self.choose(&ladder, streams);
        let rests_on = [Some(ladder.base), Some(ladder.best), chosen];
        let disturbed = rests_on.into_iter().flatten().find(|point| !point.clean);
        match disturbed {
            Some(point) => SettingChoice {
                ladder: Some(ladder),
                ..without(InconclusiveReason::Disturbed(point.settings.read_ahead))
            },
            None => SettingChoice { decision, ladder: Some(ladder), chosen },
        }
    }

    fn choose<'a>(
        &'a self,
        ladder: &Ladder<'a>,
        streams: u32,
    ) -> (Decision, Option<&'a SettingPoint>) {
        let headline = self.headline(ladder);
        let gain = self.goals.ratio(headline, ladder.base);
        let difference = self.goals.difference();
        if gain.median >= MIN_GAIN_RATIO && headline.settings != ladder.base.settings {
            // A single measurement has no interval, but a gain this large is not noise.
            let sure = !gain.is_bounded() || classify(&gain) == Difference::Faster;
            let differs = ladder.base_is_found || difference == Difference::Faster;
            return match sure && differs {
                true => (Decision::Set(headline.settings.read_ahead), Some(headline)),
                false => (Decision::Inconclusive(InconclusiveReason::TooNoisy), None),
            };
        }
        if let Some(smaller) = self.saving(ladder, streams) {
            return (Decision::Set(smaller.settings.read_ahead), Some(smaller));
        }
        let hopeful = gain.decision_bounds().1 >= MIN_GAIN_RATIO;
        let decision = match difference {
            Difference::NoMeasurableDifference => Decision::NoDifference,
            Difference::Inconclusive if hopeful => {
                Decision::Inconclusive(InconclusiveReason::TooNoisy)
            }
            _ if ladder.base_is_found => Decision::Keep(ladder.base.settings.read_ahead),
            _ => Decision::NoDifference,
        };
        (decision, None)
    }

    /// Returns the economical setting, or the best one if its additional gain outweighs its costs.
    pub(crate) fn headline<'a>(&self, ladder: &Ladder<'a>) -> &'a SettingPoint {
        let (best, economical) = (ladder.best, ladder.economical);
        let more = Self::gain(best, economical) >= MIN_GAIN_RATIO;
        let free = !self.weighs_costs()
            || self.all_keep(NO_COST_RATIO, &best.settings, &economical.settings);
        if more && free { best } else { economical }
    }

    /// Returns the smallest setting as fast as the current one, if its saving is noticeable.
    fn saving<'a>(&'a self, ladder: &Ladder<'a>, streams: u32) -> Option<&'a SettingPoint> {
        let base = ladder.base;
        let smaller = self.goals.confirmed().find(|point| self.is_as_fast(point, base))?;
        let saves = self.saves_memory(smaller, base, streams)
            || (self.weighs_costs() && self.saves_a_cost(smaller, base));
        (ladder.base_is_found && saves).then_some(smaller)
    }

    /// Returns whether a smaller setting serves the goals as well as the current one.
    pub(crate) fn is_as_fast(&self, point: &SettingPoint, base: &SettingPoint) -> bool {
        point.settings < base.settings
            && point.settings.read_ahead >= MIN_SAVING_SETTING
            && point.median >= base.median * (1.0 - EQUIVALENCE_MARGIN)
            && classify(&self.goals.ratio(point, base)) != Difference::Slower
    }

    fn saves_a_cost(&self, smaller: &SettingPoint, base: &SettingPoint) -> bool {
        let ratios = || {
            self.costs
                .iter()
                .filter_map(|cost| Self::cost_ratio(cost, &smaller.settings, &base.settings))
        };
        ratios().any(|ratio| ratio >= MIN_SAVING_RATIO)
            && ratios().all(|ratio| ratio >= NO_COST_RATIO)
    }

    fn saves_memory(&self, smaller: &SettingPoint, base: &SettingPoint, streams: u32) -> bool {
        let [less, present] = [smaller, base].map(|point| memory(point, streams));
        present.saturating_sub(less) >= MIN_MEMORY_SAVING && less.get() * 2 <= present.get()
    }

    /// Returns the smallest setting as good as the one with the highest gain and no condition.
    pub(crate) fn without_conditions<'a>(
        &'a self,
        ladder: &Ladder<'a>,
    ) -> Option<&'a SettingPoint> {
        let base = ladder.base;
        let harmless = |point: &&SettingPoint| {
            self.all_keep(CONDITION_BELOW_RATIO, &point.settings, &base.settings)
                && Self::gain(point, base) >= MIN_GAIN_RATIO
        };
        let all: Vec<&SettingPoint> = self.goals.confirmed().filter(harmless).collect();
        let top = all.iter().max_by(|a, b| a.median.total_cmp(&b.median))?;
        all.iter().find(|point| self.goals.as_good(point, top)).copied()
    }
}

/// Returns the maximum page cache that the streams use under a setting.
pub(crate) fn memory(point: &SettingPoint, streams: u32) -> Bytes {
    read_ahead_memory(point.settings.read_ahead.to_bytes(), u64::from(streams))
}
