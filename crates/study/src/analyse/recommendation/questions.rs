//! Chooses the next measurement: the open questions of the decision, most important first.

use units::Kib;

use super::super::curve::{Curve, SettingPoint, classify};
use super::super::ladder::{Ladder, enough};
use super::super::types::Difference;
use super::evidence::TrialEvidence;
use super::rule::{CONDITION_BELOW_RATIO, MIN_GAIN_RATIO, MIN_SAVING_SETTING, NO_COST_RATIO};
use crate::plan::Repeats;
use crate::settings::CellSettings;

/// Minimum number of repeats for an interval.
const INTERVAL_REPEATS: usize = stats::INTERVAL_FROM;
/// If a setting reaches less than this share of the needed throughput, smaller ones do too. The
/// margin is needed because curves are not smooth: windows of 2ⁿ and of 17·2ⁿ pages are nearly
/// equal in size and differ by up to 5 %.
const CLEARLY_SHORT_RATIO: f64 = 0.95;

/// Settings to measure in one block, for all goals or for all cost workloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpenQuestion {
    Goals(Vec<CellSettings>),
    Costs(Vec<CellSettings>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MeasurementScope {
    Costs,
    Repeats,
    /// Also allows settings that were not measured yet.
    NewSettings,
}

impl TrialEvidence {
    /// Returns the most important open question; `None` if all are answered. `streams` is the
    /// number of streams of the largest goal.
    pub(crate) fn question(
        &self,
        streams: u32,
        repeats: Repeats,
        effort: MeasurementScope,
    ) -> Option<OpenQuestion> {
        let least = repeats.min as usize;
        let firm = INTERVAL_REPEATS.min(repeats.max as usize).max(least);
        let including_unrepeated = Ladder::including_unrepeated(&self.goals, self.found.as_ref())?;
        let new = effort >= MeasurementScope::NewSettings;
        let again = effort >= MeasurementScope::Repeats;
        None.or_else(|| self.search(&including_unrepeated).filter(|_| new))
            .or_else(|| self.confirm(&including_unrepeated, least).filter(|_| again))
            .or_else(|| self.costs_of_headline(least, streams))
            .or_else(|| self.settings_without_conditions(least, effort))
            .or_else(|| self.sharpen(firm, repeats.max as usize).filter(|_| again))
            .or_else(|| self.costs_of_headline(firm, streams))
    }

    /// Asks for one measurement of a setting that may be the economical one, or of a smaller
    /// setting that may be as fast as the current one. Halves the gap below it on the grid.
    fn search(&self, ladder: &Ladder<'_>) -> Option<OpenQuestion> {
        let gains = Self::gain(ladder.economical, ladder.base) >= MIN_GAIN_RATIO;
        let next = if gains {
            let enough = enough(ladder.base.median, ladder.best.median);
            self.between(ladder.economical, enough, Kib::new(0))
        } else {
            let fastest = self.goals.points.iter().find(|p| self.is_as_fast(p, ladder.base));
            let above = fastest.unwrap_or(ladder.base);
            self.between(above, ladder.base.median, MIN_SAVING_SETTING)
        };
        next.map(|settings| OpenQuestion::Goals(vec![settings.clone()]))
    }

    /// Returns the middle of the unmeasured settings between `above` and the largest measured one
    /// below it that clearly falls short of `enough`.
    fn between(&self, above: &SettingPoint, enough: f64, least: Kib) -> Option<&CellSettings> {
        let mut smaller = self.goals.points.iter().rev().filter(|p| p.settings < above.settings);
        let below = smaller.find(|point| point.median < enough * CLEARLY_SHORT_RATIO);
        let unknown: Vec<&CellSettings> = self
            .grid
            .iter()
            .filter(|s| **s < above.settings && below.is_none_or(|below| **s > below.settings))
            .filter(|s| s.read_ahead >= least && self.goals.at(s).is_none())
            .collect();
        unknown.get(unknown.len() / 2).copied()
    }

    /// Asks for repeats of the settings that the decision compares.
    fn confirm(&self, including_unrepeated: &Ladder<'_>, least: usize) -> Option<OpenQuestion> {
        let Ladder { base, economical, best, top, .. } = *including_unrepeated;
        let mut named = vec![base, economical, best, top];
        named.extend(self.goals.points.iter().find(|p| self.is_as_fast(p, base)));
        self.repeated(&self.goals, named.into_iter().map(|point| &point.settings), least)
            .map(OpenQuestion::Goals)
    }

    /// Asks for the costs at the current setting and at those that may be recommended.
    fn costs_of_headline(&self, least: usize, streams: u32) -> Option<OpenQuestion> {
        let ladder = self.ladder()?;
        let mut named = vec![&ladder.base.settings];
        match self.decide(streams).chosen {
            Some(chosen) => named.push(&chosen.settings),
            // A smaller setting that is as fast may make random reads cheaper.
            None => {
                let smaller = self.goals.confirmed().find(|p| self.is_as_fast(p, ladder.base));
                named.push(&smaller?.settings);
            }
        }
        let larger = Self::gain(ladder.best, ladder.economical) >= MIN_GAIN_RATIO
            && self.all_keep(NO_COST_RATIO, &ladder.economical.settings, &ladder.base.settings);
        named.extend(larger.then_some(&ladder.best.settings));
        self.cost_repeats(&named, least)
    }

    /// Asks for the best setting without a condition, if the headline has one.
    fn settings_without_conditions(
        &self,
        least: usize,
        effort: MeasurementScope,
    ) -> Option<OpenQuestion> {
        let ladder = self.ladder()?;
        let headline = self.headline(&ladder);
        let (base, top) = (&ladder.base.settings, &headline.settings);
        let meets = |s: &CellSettings| self.all_keep(CONDITION_BELOW_RATIO, s, base);
        if Self::gain(headline, ladder.base) < MIN_GAIN_RATIO || top < base || meets(top) {
            return None;
        }
        if let Some(found) = self.without_conditions(&ladder) {
            return self.cost_repeats(&[&found.settings], least);
        }
        let candidate = self.candidate_without_conditions(&ladder, top)?;
        let needed = if self.goals.at(candidate).is_none() {
            MeasurementScope::NewSettings
        } else {
            MeasurementScope::Repeats
        };
        let goals = self.repeated(&self.goals, [candidate].into_iter(), least);
        if goals.is_some() && effort < needed {
            return None;
        }
        goals.map(OpenQuestion::Goals).or_else(|| self.cost_repeats(&[candidate], least))
    }

    /// Returns a setting that may gain and have no condition: the largest that is expected to have
    /// none, or one just below it, because curves have dips.
    fn candidate_without_conditions(
        &self,
        ladder: &Ladder<'_>,
        top: &CellSettings,
    ) -> Option<&CellSettings> {
        let base = &ladder.base.settings;
        let gains = |s: &CellSettings| {
            self.goals.at(s).is_none_or(|point| Self::gain(point, ladder.base) >= MIN_GAIN_RATIO)
        };
        let fails = |s: &CellSettings| {
            let measured = self.costs.iter().all(|curve| curve.at(s).is_some());
            measured && !self.all_keep(CONDITION_BELOW_RATIO, s, base)
        };
        let harmless = |s: &CellSettings| self.all_keep(CONDITION_BELOW_RATIO, s, base);
        let known = self.grid.iter().rfind(|s| *s < top && harmless(s));
        let limit = self.expected_without_conditions(base, top).max(known)?;
        let close = |s: &CellSettings| s.read_ahead.get() * 4 > limit.read_ahead.get();
        let range = self.grid.iter().filter(|s| *s > base && *s <= limit && close(s));
        range.rev().find(|s| gains(s) && !fails(s))
    }

    /// Returns the largest setting of the grid that should have no condition. A random read of a
    /// mapped file reads one window, so its time is linear in the window between two measured ones.
    fn expected_without_conditions(
        &self,
        base: &CellSettings,
        top: &CellSettings,
    ) -> Option<&CellSettings> {
        let limit = |curve: &Curve| -> Option<&CellSettings> {
            let time = |point: &SettingPoint| curve.at(base).map(|base| base.median / point.median);
            let kib = |s: &CellSettings| s.read_ahead.get() as f64;
            let measured = || curve.points.iter().filter(|p| (base..=top).contains(&&p.settings));
            let below =
                measured().rfind(|p| time(p).is_some_and(|t| t <= 1.0 / CONDITION_BELOW_RATIO))?;
            let above = measured().find(|p| p.settings > below.settings)?;
            let (t0, t1) = (time(below)?, time(above)?);
            let share = (1.0 / CONDITION_BELOW_RATIO - t0) / (t1 - t0);
            let window = kib(&below.settings)
                + share.clamp(0.0, 1.0) * (kib(&above.settings) - kib(&below.settings));
            let fits = |s: &&CellSettings| kib(s) <= window && **s > below.settings;
            self.grid.iter().rfind(fits)
        };
        self.costs.iter().filter_map(limit).min()
    }

    /// Asks for enough repeats for an interval, and for more while the decision is open.
    fn sharpen(&self, firm: usize, most: usize) -> Option<OpenQuestion> {
        let ladder = self.ladder()?;
        let headline = self.headline(&ladder);
        let together = |point: &SettingPoint, wanted: usize| {
            // An interval of the gain needs blocks in which both settings were measured.
            let pair = [&ladder.base.settings, &point.settings];
            let missing = self.tries_together(&self.goals, &pair) < wanted;
            missing.then(|| OpenQuestion::Goals(distinct(pair.into_iter())))
        };
        let undecided = classify(&self.goals.ratio(headline, ladder.base));
        let wanted = if undecided == Difference::Inconclusive { most } else { firm };
        together(headline, wanted).or_else(|| together(ladder.best, firm))
    }

    fn cost_repeats(&self, named: &[&CellSettings], least: usize) -> Option<OpenQuestion> {
        let curves = self.costs.iter();
        let missing = curves.filter_map(|c| self.repeated(c, named.iter().copied(), least));
        missing.max_by_key(Vec::len).map(OpenQuestion::Costs)
    }

    /// Returns these settings, each once, if any of them has too few repeats. Settings with enough
    /// repeats are included, because settings are compared in pairs.
    fn repeated<'a>(
        &self,
        curve: &Curve,
        named: impl Iterator<Item = &'a CellSettings>,
        least: usize,
    ) -> Option<Vec<CellSettings>> {
        let named = distinct(named);
        named.iter().any(|s| self.tries(curve, s) < least).then_some(named)
    }
}

/// Returns the settings in ascending order, each once.
fn distinct<'a>(settings: impl Iterator<Item = &'a CellSettings>) -> Vec<CellSettings> {
    let mut settings: Vec<CellSettings> = settings.cloned().collect();
    settings.sort_unstable();
    settings.dedup();
    settings
}
