//! A synthetic run with everything that a report can show.
#![allow(dead_code)] // each test binary uses a part of it

use foreread_report::RunReport;
use study::{
    Analysis, Cell, CellSettings, Grid, Plan, Quantiles, Run, RunCommand, RunId, RunStatus,
    RunSummary, Target, Trial, TrialFigures, TrialStatus, analyse,
};
use units::Kib;

pub const SETTINGS: [u64; 6] = [4, 128, 1024, 1088, 8192, 65536];
const SEQ_1: [f64; 6] = [30.1, 88.25, 101.0, 103.0, 104.0, 104.5];
const SEQ_8: [f64; 6] = [14.2, 40.0, 130.0, 141.0, 212.5, 213.0];
const MMAP: [f64; 6] = [1.9, 0.8, 0.12, 0.11, 0.02, 0.02];

#[derive(Debug)]
pub struct Sample {
    pub run: Run,
    pub analysis: Analysis,
}

impl Sample {
    /// Analyses the trials again.
    pub fn analysed(mut self) -> Self {
        self.analysis = analyse(&self.run);
        self
    }

    /// Returns the same run with other rates of a workload, in MiB/s by setting.
    pub fn with_rates(mut self, workload: &str, rate: impl Fn(u64) -> f64) -> Self {
        for trial in self.run.trials.iter_mut().filter(|trial| trial.workload == workload) {
            let factor = REPEATS[trial.block as usize];
            trial.figures.throughput_mib_s = rate(trial.settings.read_ahead.get()) * factor;
        }
        self.analysed()
    }

    pub fn report(&self) -> RunReport<'_> {
        RunReport { run: &self.run, analysis: &self.analysis }
    }
}

/// Relative rates of the five repeats of a cell.
const REPEATS: [f64; 5] = [0.99, 1.0, 1.01, 0.995, 1.005];

fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (block, factor) in (0..).zip(REPEATS) {
        for (name, figures) in [("seq-1", SEQ_1), ("seq-8", SEQ_8), ("rand-mmap", MMAP)] {
            for (setting, mib_s) in SETTINGS.into_iter().zip(figures) {
                let order = trials.len() as u32;
                trials.push(Trial { block, ..trial(name, setting, mib_s * factor, order) });
            }
        }
    }
    trials
}

/// A clean trial.
pub fn trial(workload: &str, setting: u64, mib_s: f64, order: u32) -> Trial {
    let random = workload.starts_with("rand");
    let quantiles = Quantiles { p50: 1e5 / mib_s, p99: 3e5 / mib_s };
    Trial {
        block: 0,
        order,
        settings: CellSettings::read_ahead(Kib::new(setting)),
        workload: workload.to_owned(),
        started_unix_s: 1_795_181_590.0,
        status: TrialStatus::Clean,
        disturbances: Vec::new(),
        figures: TrialFigures {
            throughput_mib_s: mib_s,
            amplification: Some(if random { setting as f64 / 4.0 } else { 1.01 }),
            device_requests: Some(1000),
            device_bytes: None,
            latency_us: Some(quantiles),
            random_latency_us: random.then_some(quantiles),
            measured_seconds: 187.25 / 90.0,
            refaulted: None,
            spread: None,
        },
    }
}

/// Returns a complete sweep of `/srv/data`.
pub fn sample() -> Sample {
    sample_of(trials())
}

/// Returns the same run with other trials.
pub fn sample_of(trials: Vec<Trial>) -> Sample {
    let mut plan = Plan::new(Target::Path("/srv/data".into()));
    plan.workloads.retain(|planned| planned.workload.name != "rand-pread");
    plan.read_ahead = Grid::Values(SETTINGS.map(Kib::new).to_vec());
    let run = Run {
        summary: summary("/srv/data"),
        workloads: plan.workloads.iter().map(|planned| planned.workload.clone()).collect(),
        plan,
        seed: 42,
        grid: SETTINGS.map(Kib::new).to_vec(),
        found: Some(Kib::new(128)),
        dilation: 1.0,
        identity: serde_json::json!({}),
        machine: serde_json::json!({ "kernel": "6.18.0" }),
        device_before: serde_json::json!({ "storage": { "bdi": "8:16" } }),
        device_after: serde_json::Value::Null,
        trials,
    };
    let mut analysis = analyse(&run);
    analysis.notes.push("2 trials were disturbed, kept in the record and repeated".to_owned());
    Sample { run, analysis }
}

/// Returns a clean trial with the median throughput of this cell.
pub fn trial_of(cell: &Cell, order: u32) -> Trial {
    let setting = cell.settings.read_ahead.get();
    trial(&cell.workload, setting, cell.throughput_mib_s.median, order)
}

pub fn summary(target: &str) -> RunSummary {
    RunSummary {
        id: RunId(7),
        created_unix_s: 1_795_181_583.0,
        command: RunCommand::Sweep,
        target: target.to_owned(),
        status: RunStatus::Complete,
        error: None,
        trials: 90,
        version: "0.1.0".to_owned(),
    }
}
