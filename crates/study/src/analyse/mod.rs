//! Derives verdicts from trials. Nothing here is stored, so a better analysis applies to old runs.

mod analysis;
mod cells;
mod costs;
mod counting;
mod curve;
mod effects;
mod goal;
mod ladder;
mod recommendation;
mod types;

#[cfg(test)]
mod tests;

pub use analysis::{Analysis, WorkloadVerdict};
pub(crate) use counting::throughputs;
pub(crate) use curve::{Curve, SettingPoint, classify, overall};
pub(crate) use ladder::Ladder;
pub use recommendation::{
    Alternative, Caveat, CostChange, CostCondition, Decision, InconclusiveReason, Recommendation,
    RecommendationCost, Saving,
};
pub(crate) use recommendation::{MeasurementScope, OpenQuestion, TrialEvidence};
pub use types::{
    Cell, Combination, Difference, FactorEffect, FactorInteraction, Gain, LatencyChange,
    LevelEffect, LevelPair, VerdictKind,
};

use workload::{Metric, Outside};

use crate::plan::Role;
use crate::store::Run;

/// Returns notes on workloads whose figures are not plain throughput.
fn figures_of_commands(run: &Run) -> impl Iterator<Item = String> {
    run.plan.workloads.iter().filter_map(|planned| {
        let Some(Outside::Command { metric, .. }) = &planned.workload.outside else { return None };
        let name = &planned.workload.name;
        let figure = metric.figure().map(|figure| figure.to_string()).unwrap_or_default();
        match metric {
            Metric::Wall => Some(format!(
                "{name}: MiB/s are the data that the command's processes read by read(2), divided \
                 by its run time"
            )),
            Metric::Regex(pattern) => Some(format!(
                "{name}: {figure}, as the command prints it ({pattern}); higher is better"
            )),
            Metric::Json(path) => Some(format!(
                "{name}: {path} in the JSON that the command prints; higher is better"
            )),
        }
    })
}

/// Analyses a run.
pub fn analyse(run: &Run) -> Analysis {
    let roles = run.plan.roles();
    let cells = cells::cells(run);
    let goals: Vec<Curve> = roles
        .iter()
        .filter(|(_, role)| *role == Role::Goal)
        .map(|(workload, _)| Curve::from_trials(&run.trials, workload, run.seed))
        .filter(|curve| !curve.points.is_empty())
        .collect();
    let (effects, interactions) = effects::effects(run, &goals);
    let combination = effects::combination(run, &goals);
    let varied = !run.plan.factors.is_empty();
    let recommendation = match varied {
        true => effects::recommendation(run, combination.as_ref()),
        false => costs::recommendation(run, &cells),
    };
    let mut notes = cells::notes(run, &cells);
    if !varied {
        notes.extend(goal::notes(&goals));
    }
    notes.extend(costs::notes(run, &cells));
    // Some rates were published in another unit.
    notes.extend(run.machine.get("unit_note").and_then(|note| note.as_str()).map(str::to_owned));
    notes.extend(figures_of_commands(run));
    Analysis {
        limits: Vec::new(),
        recommendation,
        per_workload: goals
            .iter()
            .filter(|_| !varied)
            .filter_map(|goal| goal::verdict(goal, run.found, run.plan.streams()))
            .collect(),
        effects,
        interactions,
        combination,
        measured_seconds: run.trials.iter().map(|trial| trial.figures.measured_seconds).sum(),
        dilation: run.dilation,
        notes,
        cells,
    }
}
