//! What a recommended setting costs.

use units::{Kib, read_ahead_memory};

use super::curve::Curve;
use super::types::{Cell, LatencyChange, Price};
use crate::plan::{PlannedWorkload, Role};
use crate::settings::Settings;
use crate::store::{Command, Run};

/// The price of each of these settings.
pub(super) fn prices(run: &Run, cells: &[Cell], settings: &[Kib]) -> Vec<Price> {
    settings.iter().map(|kib| price(run, cells, *kib)).collect()
}

fn goals(run: &Run) -> impl Iterator<Item = &PlannedWorkload> {
    run.plan.workloads.iter().filter(|planned| planned.role == Role::Goal)
}

fn cell<'a>(cells: &'a [Cell], workload: &str, settings: Settings) -> Option<&'a Cell> {
    cells.iter().find(|cell| cell.workload == workload && cell.settings == settings)
}

fn price(run: &Run, cells: &[Cell], read_ahead: Kib) -> Price {
    let settings = Settings::read_ahead(read_ahead);
    let streams = goals(run).map(|goal| goal.workload.streams()).max().unwrap_or(1);
    let amplification = goals(run)
        .filter_map(|goal| cell(cells, &goal.workload.name, settings)?.amplification)
        .map(|amplification| amplification.median)
        .max_by(f64::total_cmp);
    let random = run
        .plan
        .workloads
        .iter()
        .filter_map(|planned| change(run, cells, &planned.workload.name, settings))
        .collect();
    Price {
        read_ahead_kib: read_ahead,
        memory_mib: read_ahead_memory(read_ahead.to_bytes(), u64::from(streams)).as_mib(),
        streams,
        amplification,
        random,
    }
}

/// What becomes of a workload's random reads, if it has some and both settings were measured.
fn change(run: &Run, cells: &[Cell], workload: &str, to: Settings) -> Option<LatencyChange> {
    let found = run.found.map(Settings::read_ahead);
    let mut measured =
        cells.iter().filter(|c| c.workload == workload && c.random_latency_us.is_some());
    let lowest = measured.next()?;
    let from = found.and_then(|found| cell(cells, workload, found)).unwrap_or(lowest);
    let to = cell(cells, workload, to)?;
    let curve = Curve::of(&run.trials, workload, run.seed);
    Some(LatencyChange {
        workload: workload.to_owned(),
        over_kib: from.settings.read_ahead,
        before_us: from.random_latency_us?,
        after_us: to.random_latency_us?,
        throughput_ratio: curve.ratio(curve.at(to.settings)?, curve.at(from.settings)?),
        amplification: to.amplification.map(|amplification| amplification.median),
    })
}

/// What was not measured is said, not guessed.
pub(super) fn notes(run: &Run, cells: &[Cell]) -> Vec<String> {
    // Whoever asks for what a server gets has no use for workloads of ours.
    if run.summary.command == Command::Pg {
        return Vec::new();
    }
    let measured = |name: &str| cells.iter().any(|cell| cell.workload == name);
    let missing: Vec<&str> =
        ["rand-pread", "rand-mmap"].into_iter().filter(|name| !measured(name)).collect();
    let random = cells.iter().any(|cell| cell.random_latency_us.is_some());
    let mut notes = Vec::new();
    if !random {
        notes.push(format!(
            "random reads were not measured, so what these settings cost them is not known \
             (workloads {})",
            missing.join(", ")
        ));
    } else if missing == ["rand-mmap"] {
        notes.push(
            "random reads of mapped files were not measured (workload rand-mmap): large windows \
             cost those most"
                .to_owned(),
        );
    }
    if run.plan.workloads.iter().all(|p| p.role == Role::Goal) && run.plan.workloads.len() == 1 {
        notes.push("one workload alone was measured: others may need another setting".to_owned());
    }
    notes
}
