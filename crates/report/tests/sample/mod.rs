//! A run that never was, with everything in it that a report has to show.
#![allow(dead_code)] // each test binary uses a part of it

use foreread_report::Findings;
use study::{
    Analysis, Cell, Command, Difference, Estimate, Figures, Gain, Grid, LatencyChange, Plan, Price,
    Quantiles, Run, RunId, RunStatus, RunSummary, Settings, Target, Trial, TrialStatus, Verdict,
    VerdictKind, WorkloadVerdict,
};
use units::Kib;

pub const SETTINGS: [u64; 6] = [4, 128, 1024, 1088, 8192, 65536];
const SEQ_1: [f64; 6] = [30.1, 88.25, 101.0, 103.0, 104.0, 104.5];
const SEQ_8: [f64; 6] = [14.2, 40.0, 130.0, 141.0, 212.5, 213.0];
const MMAP: [f64; 6] = [1.9, 0.8, 0.12, 0.11, 0.02, 0.02];

pub struct Sample {
    pub run: Run,
    pub analysis: Analysis,
}

impl Sample {
    pub fn findings(&self) -> Findings<'_> {
        Findings { run: &self.run, analysis: &self.analysis }
    }
}

fn around(median: f64) -> Estimate {
    Estimate::interval(median, median * 0.97, median * 1.02)
}

fn cell(setting: u64, workload: &str, mib_s: f64, amplification: f64) -> Cell {
    let random = workload.starts_with("rand");
    let quantiles = Quantiles { p50: 1e5 / mib_s, p99: 3e5 / mib_s };
    Cell {
        settings: Settings::read_ahead(Kib::new(setting)),
        workload: workload.to_owned(),
        repeats: 5,
        disturbed: 0,
        throughput_mib_s: around(mib_s),
        amplification: Some(around(amplification)),
        device_requests: Some(around(1000.0)),
        latency_us: Some(quantiles),
        random_latency_us: random.then_some(quantiles),
    }
}

fn gain(ratio: f64) -> Gain {
    Gain {
        over_kib: Kib::new(128),
        over_found: true,
        ratio: around(ratio),
        difference: Difference::Better,
    }
}

fn price() -> Price {
    let change = LatencyChange {
        workload: "rand-mmap".to_owned(),
        over_kib: Kib::new(128),
        before_us: Quantiles { p50: 4_000.0, p99: 12_000.0 },
        after_us: Quantiles { p50: 90_000.0, p99: 240_000.0 },
        throughput_ratio: around(0.025),
        amplification: Some(242.0),
    };
    Price {
        read_ahead_kib: Kib::new(8192),
        memory_mib: 64.0,
        streams: 8,
        amplification: Some(1.04),
        random: vec![change],
    }
}

fn verdict() -> Verdict {
    let alone = |workload: &str, full, ratio| WorkloadVerdict {
        workload: workload.to_owned(),
        kind: VerdictKind::Better,
        best_kib: Kib::new(65536),
        conservative_kib: Some(Kib::new(full)),
        full_kib: Some(Kib::new(full)),
        knee_kib: Some(Kib::new(full)),
        gain: Some(gain(ratio)),
    };
    Verdict {
        kind: VerdictKind::Better,
        conservative_kib: Some(Kib::new(1088)),
        full_kib: Some(Kib::new(8192)),
        gain: Some(gain(2.51)),
        doubt: None,
        conservative_gain: Some(gain(2.02)),
        price: vec![price()],
        per_workload: vec![alone("seq-1", 1088, 1.17), alone("seq-8", 8192, 5.3)],
    }
}

/// A finished sweep of `/srv/data`.
pub fn sample() -> Sample {
    let mut cells = Vec::new();
    for (name, figures) in [("seq-1", SEQ_1), ("seq-8", SEQ_8), ("rand-mmap", MMAP)] {
        for (setting, mib_s) in SETTINGS.into_iter().zip(figures) {
            let amplification = if name == "rand-mmap" { setting as f64 / 4.0 } else { 1.01 };
            cells.push(cell(setting, name, mib_s, amplification));
        }
    }
    let mut plan = Plan::new(Target::Path("/srv/data".into()));
    plan.workloads.retain(|planned| planned.workload.name != "rand-pread");
    plan.read_ahead = Grid::Values(SETTINGS.map(Kib::new).to_vec());
    Sample {
        run: Run {
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
            trials: Vec::new(),
        },
        analysis: Analysis {
            limits: Vec::new(),
            cells,
            verdict: verdict(),
            effects: Vec::new(),
            interactions: Vec::new(),
            combination: None,
            measured_seconds: 187.25,
            dilation: 1.0,
            notes: vec!["2 trials were disturbed, kept in the record and repeated".to_owned()],
        },
    }
}

/// A clean trial of this cell that got its median.
pub fn trial_of(cell: &Cell, order: u32) -> Trial {
    Trial {
        block: 0,
        order,
        settings: cell.settings,
        workload: cell.workload.clone(),
        started_unix_s: 1_795_181_590.0,
        status: TrialStatus::Clean,
        disturbances: Vec::new(),
        figures: Figures {
            throughput_mib_s: cell.throughput_mib_s.median,
            amplification: None,
            device_requests: None,
            latency_us: None,
            random_latency_us: None,
            measured_seconds: 2.0,
            refaulted: None,
            spread: None,
        },
    }
}

pub fn summary(target: &str) -> RunSummary {
    RunSummary {
        id: RunId(7),
        created_unix_s: 1_795_181_583.0,
        command: Command::Sweep,
        target: target.to_owned(),
        status: RunStatus::Complete,
        error: None,
        trials: 90,
        version: "0.1.0".to_owned(),
    }
}
