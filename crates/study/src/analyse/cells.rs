//! Computes the figures of each pair of settings and workload.

use std::collections::BTreeSet;

use stats::{Estimate, median};
use units::Bytes;
use workload::{Pattern, Workload};

use super::counting::counting;
use super::curve::estimate_from_spread;
use super::types::Cell;
use crate::settings::CellSettings;
use crate::store::Run;
use crate::strategy::ATTEMPTS_MAX;
use crate::trial::{Quantiles, Trial, TrialStatus};

/// A workload has used up its files when the device has delivered this share of their size.
const USED_UP_SHARE: f64 = 0.5;

pub(super) fn cells(run: &Run) -> Vec<Cell> {
    let settings: BTreeSet<CellSettings> =
        run.trials.iter().map(|trial| trial.settings.clone()).collect();
    let mut cells = Vec::new();
    for planned in &run.plan.workloads {
        for settings in &settings {
            cells.extend(cell(run, &planned.workload.name, settings));
        }
    }
    cells
}

fn cell(run: &Run, workload: &str, settings: &CellSettings) -> Option<Cell> {
    let trials = counting(run.trials.iter(), workload, settings);
    let estimate =
        |values: Option<Vec<f64>>| -> Option<Estimate> { Estimate::from_values(&values?) };
    let each = |figure: &dyn Fn(&Trial) -> Option<f64>| -> Option<Vec<f64>> {
        trials.iter().map(|trial| figure(trial)).collect()
    };
    let ours = |t: &&Trial| t.workload == workload && t.settings == *settings;
    let disturbed = |t: &&Trial| t.status == TrialStatus::Disturbed;
    let declared = run.workloads.iter().find(|declared| declared.name == workload);
    let used_up =
        |trial: &&&Trial| declared.is_some_and(|it| has_used_up(it, trial.figures.device_bytes));
    Some(Cell {
        settings: settings.clone(),
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

impl Cell {
    /// Returns the trials on which the figures are based.
    pub fn trials<'a>(&self, run: &'a Run) -> Vec<&'a Trial> {
        counting(run.trials.iter(), &self.workload, &self.settings)
    }
}

/// Returns the median with the range or interval of the repeats; for an imported figure, with the
/// spread that its source states.
fn throughput(trials: &[&Trial]) -> Option<Estimate> {
    let values: Vec<f64> = trials.iter().map(|trial| trial.figures.throughput_mib_s).collect();
    match trials {
        [only] if only.figures.spread.is_some() => {
            Some(estimate_from_spread(values[0], only.figures.spread.unwrap_or(0.0)))
        }
        _ => Estimate::from_values(&values),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Returns the medians of each trial's quantiles; `None` unless every trial has quantiles.
fn quantiles(trials: &[&Trial], of: impl Fn(&Trial) -> Option<Quantiles>) -> Option<Quantiles> {
    let each: Vec<Quantiles> = trials.iter().map(|trial| of(trial)).collect::<Option<_>>()?;
    let middle = |of: fn(&Quantiles) -> f64| median(&each.iter().map(of).collect::<Vec<_>>());
    Some(Quantiles { p50: middle(|q| q.p50)?, p99: middle(|q| q.p99)? })
}

/// Returns notes on disturbed trials.
pub(super) fn notes(run: &Run, cells: &[Cell]) -> Vec<String> {
    let is_disturbed = |trial: &&Trial| trial.status == TrialStatus::Disturbed;
    let doubtful: Vec<String> = cells
        .iter()
        .filter(|cell| cell.trials(run).iter().all(is_disturbed))
        .map(|cell| format!("{} at {}", cell.workload, cell.settings.read_ahead))
        .collect();
    let mut notes: Vec<String> = disturbed_note(&run.trials).into_iter().collect();
    if !doubtful.is_empty() {
        notes.push(format!("no undisturbed trial: {}", doubtful.join(", ")));
    }
    notes
}

/// Returns how many trials were disturbed, and how many of them were not repeated.
fn disturbed_note(trials: &[Trial]) -> Option<String> {
    let (mut disturbed, mut final_attempts) = (0, 0);
    for (place, trial) in trials.iter().enumerate() {
        if trial.status == TrialStatus::Disturbed {
            let is_repeat = |later: &Trial| {
                later.block == trial.block
                    && later.workload == trial.workload
                    && later.settings == trial.settings
            };
            disturbed += 1;
            final_attempts += u32::from(!trials[place + 1..].iter().any(is_repeat));
        }
    }
    let what = match disturbed {
        0 => return None,
        1 => "1 trial was disturbed; it stays in the record and was".to_owned(),
        _ => format!("{disturbed} trials were disturbed; they stay in the record and"),
    };
    Some(match (disturbed, final_attempts) {
        (1, 0) => format!("{what} repeated"),
        (1, _) => format!("{what} not repeated, because the run ended"),
        (_, 0) => format!("{what} were repeated"),
        (all, last) if all == last => format!("{what} were not repeated, because the run ended"),
        (_, last) => format!(
            "{what} all but {last} were repeated: {ATTEMPTS_MAX} attempts were disturbed, or the \
             run ended"
        ),
    })
}

/// Returns whether random reads have cached so much of their files that most further reads hit.
fn has_used_up(workload: &Workload, device_bytes: Option<Bytes>) -> bool {
    let data: Bytes = workload.data_files(Bytes::ZERO).into_iter().sum();
    let read = device_bytes.map_or(0.0, |bytes| bytes.get() as f64);
    workload.pattern == Pattern::Uniform
        && !data.is_zero()
        && read >= USED_UP_SHARE * data.get() as f64
}
