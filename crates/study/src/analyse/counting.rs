//! Selects the trials that count.

use std::collections::BTreeMap;

use crate::settings::CellSettings;
use crate::trial::{Trial, TrialStatus};

/// Returns the trials of a cell that count: undisturbed ones, or all if every one was disturbed.
pub(super) fn counting<'a>(
    trials: impl Iterator<Item = &'a Trial> + Clone,
    workload: &str,
    settings: &CellSettings,
) -> Vec<&'a Trial> {
    let ours = trials.filter(|t| t.workload == workload && t.settings == *settings);
    let clean: Vec<&Trial> = ours.clone().filter(|t| t.status == TrialStatus::Clean).collect();
    if clean.is_empty() { ours.collect() } else { clean }
}

/// Returns the throughput of a cell in MiB/s, by block.
pub(crate) fn throughputs<'a>(
    trials: impl Iterator<Item = &'a Trial> + Clone,
    workload: &str,
    settings: &CellSettings,
) -> BTreeMap<u32, f64> {
    let counting = counting(trials, workload, settings);
    counting.iter().map(|trial| (trial.block, trial.figures.throughput_mib_s)).collect()
}
