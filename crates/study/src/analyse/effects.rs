//! What each of several tunables does.

use std::collections::BTreeSet;

use stats::{Estimate, Observation, main_effects};
use tunables::Setting;

use super::curve::{Curve, in_a_word, overall};
use super::types::{Difference, Effect, LevelEffect, Verdict, VerdictKind};
use crate::factors::name;
use crate::plan::Role;
use crate::settings::Settings;
use crate::store::Run;

/// The effects of all tunables on the goals together, then on each workload.
pub(super) fn effects(run: &Run, goals: &[Curve]) -> Vec<Effect> {
    if run.plan.factors.is_empty() {
        return Vec::new();
    }
    let factors = factors(run);
    let mut all = Vec::new();
    if goals.len() > 1 {
        all.extend(of_curve(&overall(goals, run.seed), &factors));
    }
    all.extend(goals.iter().flat_map(|goal| of_curve(goal, &factors)));
    let prices = run.plan.roles().into_iter().filter(|(_, role)| *role == Role::Price);
    for (workload, _) in prices {
        all.extend(of_curve(&Curve::of(&run.trials, &workload, run.seed), &factors));
    }
    all
}

/// The levels that were measured, the baseline's first: the level that most trials had, which in a
/// design from a baseline is that, and else the first of the plan.
fn factors(run: &Run) -> Vec<Vec<Setting>> {
    let cells: BTreeSet<Settings> = run.trials.iter().map(|trial| trial.settings).collect();
    let all: Vec<tunables::Settings> = cells.iter().map(|cell| cell.all()).collect();
    let mut names: Vec<&'static str> = run
        .plan
        .factors
        .iter()
        .filter_map(|factor| Some(tunables::find(&factor.tunable).ok()?.name()))
        .collect();
    names.push(crate::settings::READ_AHEAD);
    let of_name = |name: &&'static str| -> Option<Vec<Setting>> {
        let mut levels: Vec<(usize, Setting)> = Vec::new();
        for setting in all.iter().flat_map(tunables::Settings::iter) {
            if setting.tunable.name() != *name {
                continue;
            }
            match levels.iter_mut().find(|(_, known)| known == setting) {
                Some((count, _)) => *count += 1,
                None => levels.push((1, setting.clone())),
            }
        }
        levels.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        (levels.len() > 1).then(|| levels.into_iter().map(|(_, setting)| setting).collect())
    };
    names.iter().filter_map(of_name).collect()
}

fn of_curve(curve: &Curve, factors: &[Vec<Setting>]) -> Vec<Effect> {
    let place = |levels: &Vec<Setting>, settings: &tunables::Settings| {
        let value = settings.get(name(levels))?;
        levels.iter().position(|level| level.value == *value)
    };
    let mut observations = Vec::new();
    for point in &curve.points {
        let all = point.settings.all();
        let places: Option<Vec<usize>> = factors.iter().map(|levels| place(levels, &all)).collect();
        let Some(levels) = places else { continue };
        observations.extend(point.values.iter().map(|(block, value)| Observation {
            block: *block,
            levels: levels.clone(),
            value: value.max(f64::MIN_POSITIVE).ln(),
        }));
    }
    let counts: Vec<usize> = factors.iter().map(Vec::len).collect();
    let Some(estimates) = main_effects(&observations, &counts) else { return Vec::new() };
    let mut effects: Vec<Effect> =
        factors.iter().zip(estimates).map(|(levels, of)| effect(curve, levels, &of)).collect();
    effects.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    effects
}

fn effect(curve: &Curve, levels: &[Setting], estimates: &[Estimate]) -> Effect {
    let show = |setting: &Setting| setting.tunable.show(&setting.value);
    let level = |(setting, logarithm): (&Setting, &Estimate)| {
        let ratio = Estimate {
            median: logarithm.median.exp(),
            low: logarithm.low.exp(),
            high: logarithm.high.exp(),
        };
        LevelEffect { level: show(setting), difference: in_a_word(&ratio), ratio }
    };
    let others: Vec<LevelEffect> = levels.iter().skip(1).zip(estimates).map(level).collect();
    let medians = || others.iter().map(|level| level.ratio.median).chain([1.0]);
    let best = medians().fold(f64::MIN, f64::max);
    let worst = medians().fold(f64::MAX, f64::min);
    Effect {
        workload: curve.name.clone(),
        tunable: name(levels).to_owned(),
        baseline: levels.first().map(show).unwrap_or_default(),
        strength: best / worst,
        levels: others,
    }
}

/// What can be said where effects are what was looked for: no setting of read-ahead alone is
/// recommended.
pub(super) fn verdict(effects: &[Effect]) -> Verdict {
    let first = effects.first().map(|effect| effect.workload.clone());
    let words = || {
        let of_goals = effects.iter().filter(|effect| Some(&effect.workload) == first.as_ref());
        of_goals.flat_map(|effect| effect.levels.iter().map(|level| level.difference))
    };
    let kind = if words().any(|word| matches!(word, Difference::Better | Difference::Worse)) {
        VerdictKind::Better
    } else if first.is_some() && words().all(|word| word == Difference::NoMeasurableDifference) {
        VerdictKind::NoMeasurableDifference
    } else {
        VerdictKind::Inconclusive
    };
    Verdict {
        kind,
        doubt: None,
        conservative_kib: None,
        full_kib: None,
        gain: None,
        conservative_gain: None,
        price: Vec::new(),
        per_workload: Vec::new(),
    }
}
