//! Computes the effects of several tunables.

use std::collections::BTreeSet;

use stats::{Estimate, Observation, interactions, main_effects};
use tunables::Setting;

use super::curve::{Curve, classify, overall};
use super::recommendation::{Decision, InconclusiveReason, MIN_GAIN_RATIO, Recommendation};
use super::types::{
    Combination, Difference, FactorEffect, FactorInteraction, Gain, LevelEffect, LevelPair,
};
use crate::plan::Role;
use crate::settings::CellSettings;
use crate::store::Run;

/// Returns the effects of all tunables on the goals together, then on each workload.
pub(super) fn effects(run: &Run, goals: &[Curve]) -> (Vec<FactorEffect>, Vec<FactorInteraction>) {
    if run.plan.factors.is_empty() {
        return Default::default();
    }
    let factors = factors(run);
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let mut add = |curve: &Curve| {
        let observations = observations(curve, &factors);
        alone.extend(own(curve, &factors, &observations));
        together.extend(joint(curve, &factors, &observations));
    };
    if goals.len() > 1 {
        add(&overall(goals, run.seed));
    }
    goals.iter().for_each(&mut add);
    let costs = run.plan.roles().into_iter().filter(|(_, role)| *role == Role::Cost);
    costs.for_each(|(workload, _)| add(&Curve::from_trials(&run.trials, &workload, run.seed)));
    (alone, together)
}

/// A level of a varied tunable or label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Tunable(Setting),
    Label { name: String, value: String },
}

impl Level {
    fn name(&self) -> &str {
        match self {
            Self::Tunable(setting) => setting.tunable.name(),
            Self::Label { name, .. } => name,
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Tunable(setting) => setting.tunable.show(&setting.value),
            Self::Label { value, .. } => value.clone(),
        }
    }
}

/// Returns all values that the settings set, including read-ahead.
fn levels_of(settings: &CellSettings) -> Vec<Level> {
    let label = |(name, value): (&String, &String)| Level::Label {
        name: name.clone(),
        value: value.clone(),
    };
    let labels = settings.extra.labels.iter().map(label);
    settings.tunables().iter().cloned().map(Level::Tunable).chain(labels).collect()
}

/// Returns the name of the tunable with these levels.
fn name(levels: &[Level]) -> &str {
    levels.first().map_or(crate::settings::READ_AHEAD, Level::name)
}

/// Returns the values of the device before the study, as far as they are recorded.
fn present(run: &Run) -> Vec<Level> {
    let tunables = run.device_before.get("tunables").cloned().unwrap_or_default();
    let all: tunables::TunableValues = serde_json::from_value(tunables).unwrap_or_default();
    let window = run.found.map(|kib| tunables::TunableValues::read_ahead(kib.to_bytes()));
    let all = all.iter().chain(window.iter().flat_map(tunables::TunableValues::iter));
    all.cloned().map(Level::Tunable).collect()
}

/// Returns the measured levels of each factor, the baseline first. The baseline is the level in
/// most combinations (in a design from a baseline, the baseline itself); among equals the device's
/// own value, then the lowest level.
fn factors(run: &Run) -> Vec<Vec<Level>> {
    let cells: BTreeSet<CellSettings> =
        run.trials.iter().map(|trial| trial.settings.clone()).collect();
    let all: Vec<Level> = cells.iter().flat_map(levels_of).collect();
    let planned = run.plan.factors.iter().filter_map(|factor| {
        let tunable = tunables::find(&factor.tunable).map(|tunable| tunable.name());
        let label = || all.iter().map(Level::name).find(|name| *name == factor.tunable);
        tunable.ok().or_else(label)
    });
    let mut names: Vec<&str> = planned.collect();
    names.push(crate::settings::READ_AHEAD);
    let present = present(run);
    let of_name = |name: &&str| -> Option<Vec<Level>> {
        let mut levels: Vec<(usize, Level)> = Vec::new();
        for level in all.iter().filter(|level| level.name() == *name) {
            match levels.iter_mut().find(|(_, known)| known == level) {
                Some((count, _)) => *count += 1,
                None => levels.push((1, level.clone())),
            }
        }
        let others = |level: &Level| !present.contains(level);
        levels.sort_by(|a, b| {
            b.0.cmp(&a.0).then(others(&a.1).cmp(&others(&b.1))).then(a.1.cmp(&b.1))
        });
        (levels.len() > 1).then(|| levels.into_iter().map(|(_, level)| level).collect())
    };
    names.iter().filter_map(of_name).collect()
}

/// Returns the index of each level within its factor.
fn places(factors: &[Vec<Level>], settings: &CellSettings) -> Option<Vec<usize>> {
    let all = levels_of(settings);
    let place = |levels: &Vec<Level>| levels.iter().position(|level| all.contains(level));
    factors.iter().map(place).collect()
}

/// Returns the combination with the highest median over all goals, compared with the combination of
/// all baselines.
pub(super) fn combination(run: &Run, goals: &[Curve]) -> Option<Combination> {
    if run.plan.factors.is_empty() {
        return None;
    }
    let together = overall(goals, run.seed);
    let curve = if let [only] = goals { only } else { &together };
    let factors = factors(run);
    let at_baseline = |point: &&super::curve::SettingPoint| {
        places(&factors, &point.settings).is_some_and(|all| all.iter().all(|place| *place == 0))
    };
    let (best, base) = (curve.best()?, curve.points.iter().find(at_baseline)?);
    let ratio = curve.ratio(best, base);
    let (settings, over) = (best.settings.clone(), base.settings.clone());
    Some(Combination { settings, over, difference: classify(&ratio), ratio })
}

/// Returns the logarithms of all values, with the indices of their levels.
fn observations(curve: &Curve, factors: &[Vec<Level>]) -> Vec<Observation> {
    let mut observations = Vec::new();
    for point in &curve.points {
        let Some(levels) = places(factors, &point.settings) else { continue };
        observations.extend(point.values.iter().map(|(block, value)| Observation {
            block: *block,
            levels: levels.clone(),
            value: value.max(f64::MIN_POSITIVE).ln(),
        }));
    }
    observations
}

fn counts(factors: &[Vec<Level>]) -> Vec<usize> {
    factors.iter().map(Vec::len).collect()
}

/// Returns the separate effect of each tunable, strongest first.
fn own(curve: &Curve, factors: &[Vec<Level>], observations: &[Observation]) -> Vec<FactorEffect> {
    let Some(estimates) = main_effects(observations, &counts(factors)) else { return Vec::new() };
    let mut effects: Vec<FactorEffect> =
        factors.iter().zip(estimates).map(|(levels, of)| effect(curve, levels, &of)).collect();
    effects.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    effects
}

/// Returns the joint effect of each pair of tunables, strongest first.
fn joint(
    curve: &Curve,
    factors: &[Vec<Level>],
    observations: &[Observation],
) -> Vec<FactorInteraction> {
    let level =
        |factor: usize, at: usize| factors[factor].get(at).map(Level::show).unwrap_or_default();
    let of_pair = |found: &stats::Interaction| {
        let (a, b) = found.factors;
        let pairs = found.contrasts.iter().map(|((at_a, at_b), contrast)| {
            let ratio = contrast.map(f64::exp);
            let levels = [level(a, *at_a), level(b, *at_b)];
            LevelPair { levels, difference: classify(&ratio), ratio }
        });
        FactorInteraction {
            workload: curve.name.clone(),
            tunables: [a, b].map(|factor| name(&factors[factor]).to_owned()),
            baselines: [a, b].map(|factor| level(factor, 0)),
            strength: found.strength().exp(),
            pairs: pairs.collect(),
        }
    };
    interactions(observations, &counts(factors)).iter().map(of_pair).collect()
}

fn effect(curve: &Curve, levels: &[Level], estimates: &[Estimate]) -> FactorEffect {
    let level = |(level, logarithm): (&Level, &Estimate)| {
        let ratio = logarithm.map(f64::exp);
        LevelEffect { level: level.show(), difference: classify(&ratio), ratio }
    };
    let others: Vec<LevelEffect> = levels.iter().skip(1).zip(estimates).map(level).collect();
    let medians = || others.iter().map(|level| level.ratio.median).chain([1.0]);
    let best = medians().fold(f64::MIN, f64::max);
    let worst = medians().fold(f64::MAX, f64::min);
    FactorEffect {
        workload: curve.name.clone(),
        tunable: name(levels).to_owned(),
        baseline: levels.first().map(Level::show).unwrap_or_default(),
        strength: best / worst,
        levels: others,
    }
}

/// Returns the recommendation that follows from the best combination of several tunables.
pub(super) fn recommendation(run: &Run, best: Option<&Combination>) -> Recommendation {
    let purpose = run.plan.purpose;
    let Some(best) = best else {
        let nothing = Decision::Inconclusive(InconclusiveReason::NothingMeasured);
        return Recommendation::nothing(nothing, purpose);
    };
    let surely = best.difference == Difference::Faster || !best.ratio.is_bounded();
    let hopeful = best.ratio.decision_bounds().1 >= MIN_GAIN_RATIO;
    let kept = best.over.read_ahead;
    let decision = match (best.ratio.median >= MIN_GAIN_RATIO, best.difference) {
        (true, _) if surely => Decision::Set(best.settings.read_ahead),
        (true, _) => Decision::Inconclusive(InconclusiveReason::TooNoisy),
        (false, Difference::Inconclusive) if hopeful => {
            Decision::Inconclusive(InconclusiveReason::TooNoisy)
        }
        (false, Difference::NoMeasurableDifference) => Decision::NoDifference,
        (false, _) => Decision::Keep(kept),
    };
    let gain = Gain {
        baseline_kib: kept,
        baseline_is_current: run.found == Some(kept),
        ratio: best.ratio,
        difference: best.difference,
    };
    let set = matches!(decision, Decision::Set(_));
    let mut recommendation = Recommendation::nothing(decision, purpose);
    recommendation.gain = set.then_some(gain);
    recommendation.settings = set.then(|| best.settings.clone());
    recommendation
}
