//! Figures of each pair of settings and workload.

use std::collections::{BTreeMap, BTreeSet};

use stats::{Estimate, median};

use super::costs::has_used_up;
use super::curve::told;
use super::types::{Cell, Quantiles};
use crate::settings::Settings;
use crate::store::Run;
use crate::trial::{Trial, TrialStatus};

/// The trials of a cell that count: the clean ones, or all if none is clean.
pub(super) fn counting<'a>(
    trials: impl Iterator<Item = &'a Trial> + Clone,
    workload: &str,
    settings: Settings,
) -> Vec<&'a Trial> {
    let ours = trials.filter(|t| t.workload == workload && t.settings == settings);
    let clean: Vec<&Trial> = ours.clone().filter(|t| t.status == TrialStatus::Clean).collect();
    if clean.is_empty() { ours.collect() } else { clean }
}

/// The throughput of a cell in MiB/s by block.
pub(crate) fn throughputs<'a>(
    trials: impl Iterator<Item = &'a Trial> + Clone,
    workload: &str,
    settings: Settings,
) -> BTreeMap<u32, f64> {
    let counting = counting(trials, workload, settings);
    counting.iter().map(|trial| (trial.block, trial.figures.throughput_mib_s)).collect()
}

/// All cells that were measured.
pub(super) fn cells(run: &Run) -> Vec<Cell> {
    let settings: BTreeSet<Settings> = run.trials.iter().map(|trial| trial.settings).collect();
    let mut cells = Vec::new();
    for planned in &run.plan.workloads {
        for settings in &settings {
            cells.extend(cell(run, &planned.workload.name, *settings));
        }
    }
    cells
}

fn cell(run: &Run, workload: &str, settings: Settings) -> Option<Cell> {
    let trials = counting(run.trials.iter(), workload, settings);
    let estimate = |values: Option<Vec<f64>>| -> Option<Estimate> { Estimate::of(&values?) };
    let each = |figure: &dyn Fn(&Trial) -> Option<f64>| -> Option<Vec<f64>> {
        trials.iter().map(|trial| figure(trial)).collect()
    };
    let ours = |t: &&Trial| t.workload == workload && t.settings == settings;
    let disturbed = |t: &&Trial| t.status == TrialStatus::Disturbed;
    let declared = run.workloads.iter().find(|declared| declared.name == workload);
    let used_up =
        |trial: &&&Trial| declared.is_some_and(|it| has_used_up(it, trial.figures.device_bytes));
    Some(Cell {
        settings,
        workload: workload.to_owned(),
        repeats: count(trials.len()),
        disturbed: count(run.trials.iter().filter(ours).filter(disturbed).count()),
        used_up: count(trials.iter().filter(used_up).count()),
        throughput_mib_s: throughput(&trials)?,
        amplification: estimate(each(&|t| t.figures.amplification)),
        device_requests: estimate(each(&|t| t.figures.device_requests.map(|n| n as f64))),
        latency_us: quantiles(&trials, |t| t.figures.latency_us),
        random_latency_us: quantiles(&trials, |t| t.figures.random_latency_us),
    })
}

/// The median with the range or interval of the repeats; of an imported figure, with the spread
/// that its source states.
fn throughput(trials: &[&Trial]) -> Option<Estimate> {
    let values: Vec<f64> = trials.iter().map(|trial| trial.figures.throughput_mib_s).collect();
    match trials {
        [only] if only.figures.spread.is_some() => {
            Some(told(values[0], only.figures.spread.unwrap_or(0.0)))
        }
        _ => Estimate::of(&values),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The medians of each trial's quantiles, where every trial has some.
fn quantiles(trials: &[&Trial], of: impl Fn(&Trial) -> Option<Quantiles>) -> Option<Quantiles> {
    let each: Vec<Quantiles> = trials.iter().map(|trial| of(trial)).collect::<Option<_>>()?;
    let middle = |of: fn(&Quantiles) -> f64| median(&each.iter().map(of).collect::<Vec<_>>());
    Some(Quantiles { p50: middle(|q| q.p50)?, p99: middle(|q| q.p99)? })
}

/// What has to be said about trials that were spoiled.
pub(super) fn notes(cells: &[Cell]) -> Vec<String> {
    let spoiled: u32 = cells.iter().map(|cell| cell.disturbed).sum();
    let all = |cell: &&Cell| cell.disturbed > 0 && cell.repeats == cell.disturbed;
    let doubtful: Vec<String> = cells
        .iter()
        .filter(all)
        .map(|cell| format!("{} at {}", cell.workload, cell.settings.read_ahead))
        .collect();
    let mut notes = Vec::new();
    if spoiled > 0 {
        let trials = if spoiled == 1 { "trial was" } else { "trials were" };
        notes.push(format!("{spoiled} {trials} disturbed, kept in the record and repeated"));
    }
    if !doubtful.is_empty() {
        notes.push(format!("no undisturbed trial: {}", doubtful.join(", ")));
    }
    notes
}
