//! Synthetic storage for tests: a formula with noise.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use units::{Kib, PageSize};
use workload::Workload;

use crate::grid::Grid;
use crate::plan::{Plan, PlannedWorkload, Role, StudyPurpose};

use crate::run_id::RunId;
use crate::settings::CellSettings;
use crate::store::{Run, RunCommand, RunStatus, RunSummary};
use crate::strategy::{Next, Strategy, StrategyInput};
use crate::target::Target;
use crate::trial::{Trial, TrialFigures, TrialStatus};

/// Points of a curve in KiB and MiB/s, ascending; interpolated linearly over log KiB.
pub(crate) type Points = Vec<(f64, f64)>;

/// Returns the throughput at a setting.
pub(crate) fn at(points: &Points, kib: Kib) -> f64 {
    let x = (kib.get() as f64).max(1.0).ln();
    let above = points.iter().position(|(k, _)| k.ln() >= x);
    match above {
        None => points.last().expect("a point").1,
        Some(0) => points[0].1,
        Some(i) => {
            let ((k0, y0), (k1, y1)) = (points[i - 1], points[i]);
            y0 + (y1 - y0) * (x - k0.ln()) / (k1.ln() - k0.ln())
        }
    }
}

/// Returns a published table, by its id and column, with sectors converted to KiB.
pub(crate) fn published(id: &str, column: &str) -> Points {
    let text = include_str!("../tests/data/published-tables.json");
    let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let tables = all["tables"].as_array().expect("tables");
    let table = tables.iter().find(|t| t["id"] == id).expect("such a table");
    let columns = table["columns"].as_array().expect("columns");
    let place = columns.iter().position(|c| c == column).expect("such a column");
    let rows = table["rows"].as_array().expect("rows");
    let mut points: Points = rows
        .iter()
        .filter_map(|row| Some((row[0].as_f64()? / 2.0, row[place].as_f64()?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

pub(crate) const TRIAL_SECONDS: f64 = 2.0;

/// The distribution of a trial's noise on a log scale: median 0, standard deviation about 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Normal,
    /// Student's t with three degrees of freedom.
    HeavyTailed,
    /// Exponential, downwards: mostly full speed, occasionally much less.
    Skewed,
    Uniform,
    /// One of two rates, each with 10 % of the noise.
    TwoRates,
    /// Exponential in both directions.
    Laplace,
    SkewedUp,
}

impl Shape {
    fn draw(self, random: &mut Pcg64) -> f64 {
        let mut exponential = || -(1.0 - random.random::<f64>()).ln();
        match self {
            Self::Normal => normal(random),
            Self::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                normal(random) / squares.sqrt()
            }
            Self::Skewed => std::f64::consts::LN_2 - exponential(),
            Self::Uniform => (random.random::<f64>() - 0.5) * 12f64.sqrt(),
            Self::TwoRates => {
                let rate = if random.random::<bool>() { 1.0 } else { -1.0 };
                rate + 0.1 * normal(random)
            }
            Self::Laplace => (exponential() - exponential()) / std::f64::consts::SQRT_2,
            Self::SkewedUp => (normal(random).exp() - 1.0) / 2.16,
        }
    }
}

/// Storage that consists of a curve for each workload.
pub(crate) struct World {
    pub(crate) curves: Vec<(String, Role, Points)>,
    /// Relative standard deviation of the noise of each trial.
    pub(crate) noise: f64,
    pub(crate) shape: Shape,
    /// Relative standard deviation of the drift that all trials of a block share.
    pub(crate) drift: f64,
    /// Percentage of disturbed trials.
    pub(crate) spoiled_percent: u32,
    pub(crate) found: Option<Kib>,
    pub(crate) seed: u64,
}

impl World {
    pub(crate) fn of(curves: Vec<(&str, Points)>) -> Self {
        let goal = |(name, points): (&str, Points)| (name.to_owned(), Role::Goal, points);
        Self {
            curves: curves.into_iter().map(goal).collect(),
            noise: 0.02,
            shape: Shape::Normal,
            drift: 0.0,
            spoiled_percent: 0,
            found: Some(Kib::new(128)),
            seed: 1,
        }
    }

    pub(crate) fn roles(&self) -> Vec<(String, Role)> {
        self.curves.iter().map(|(name, role, _)| (name.clone(), *role)).collect()
    }

    pub(crate) fn settings(&self, grid: &Grid) -> Vec<CellSettings> {
        let values = grid.values(PageSize::FOUR_KIB, self.found);
        values.into_iter().map(CellSettings::read_ahead).collect()
    }

    /// Runs a study of this storage with a strategy.
    pub(crate) fn study(
        &self,
        grid: &Grid,
        make: impl Fn(&StrategyInput) -> Box<dyn Strategy>,
    ) -> Vec<Trial> {
        self.play(self.strategy(grid, make).as_mut())
    }

    /// Creates a strategy for this storage.
    pub(crate) fn strategy(
        &self,
        grid: &Grid,
        make: impl Fn(&StrategyInput) -> Box<dyn Strategy>,
    ) -> Box<dyn Strategy> {
        make(&StrategyInput {
            workloads: self.roles(),
            settings: self.settings(grid),
            found: self.found.map(CellSettings::read_ahead),
            seed: self.seed,
            purpose: StudyPurpose::Mixed,
            streams: 8,
            trial_seconds: TRIAL_SECONDS,
        })
    }

    pub(crate) fn truth(&self, workload: &str, settings: &CellSettings) -> f64 {
        let (_, _, points) =
            self.curves.iter().find(|(name, _, _)| name == workload).expect("a curve");
        at(points, settings.read_ahead)
    }

    pub(crate) fn trial(&self, next: Next, order: usize) -> Trial {
        let workload = self.curves[next.cell.workload].0.clone();
        let mut random = Pcg64::seed_from_u64(self.seed ^ (order as u64).wrapping_mul(0xD1B5_4A33));
        let mut shared = Pcg64::seed_from_u64(self.seed ^ u64::from(next.block) << 40);
        let spoiled = random.random_range(0..100) < self.spoiled_percent;
        let exponent = self.noise * self.shape.draw(&mut random) + self.drift * normal(&mut shared);
        let spoil = if spoiled { 0.5 } else { 1.0 };
        Trial {
            block: next.block,
            order: order as u32,
            settings: next.cell.settings.clone(),
            status: if spoiled { TrialStatus::Disturbed } else { TrialStatus::Clean },
            disturbances: if spoiled { vec!["spoiled".to_owned()] } else { Vec::new() },
            started_unix_s: order as f64,
            figures: figures(self.truth(&workload, &next.cell.settings) * exponent.exp() * spoil),
            workload,
        }
    }

    /// Runs trials until the strategy returns no more.
    pub(crate) fn play(&self, strategy: &mut dyn Strategy) -> Vec<Trial> {
        let mut trials = Vec::new();
        while let Some(next) = strategy.next(&trials) {
            assert!(trials.len() < 20_000, "the strategy has no end");
            trials.push(self.trial(next, trials.len()));
        }
        trials
    }

    /// Returns the trials as a run of the record.
    pub(crate) fn run(&self, trials: Vec<Trial>) -> Run {
        let workloads: Vec<PlannedWorkload> = self.curves.iter().map(planned).collect();
        Run {
            summary: RunSummary {
                id: RunId(1),
                created_unix_s: 0.0,
                command: RunCommand::Sweep,
                target: "/data".to_owned(),
                status: RunStatus::Complete,
                error: None,
                trials: trials.len() as u32,
                version: "0".to_owned(),
            },
            workloads: workloads.iter().map(|planned| planned.workload.clone()).collect(),
            plan: Plan { workloads, ..Plan::new(Target::Path("/data".into())) },
            seed: self.seed,
            grid: tried(&trials),
            found: self.found,
            dilation: 1.0,
            identity: serde_json::Value::Null,
            machine: serde_json::Value::Null,
            device_before: serde_json::Value::Null,
            device_after: serde_json::Value::Null,
            trials,
        }
    }

    /// Returns the true geometric mean over the goals, relative to the best of these settings.
    pub(crate) fn merit(&self, settings: &CellSettings, grid: &[CellSettings]) -> f64 {
        let score = |s: &CellSettings| -> f64 {
            let goals = self.curves.iter().filter(|(_, role, _)| *role == Role::Goal);
            goals.map(|(name, _, _)| self.truth(name, s).ln()).sum::<f64>()
        };
        let count = self.curves.iter().filter(|(_, role, _)| *role == Role::Goal).count() as f64;
        let best = grid.iter().map(&score).fold(f64::NEG_INFINITY, f64::max);
        ((score(settings) - best) / count).exp()
    }
}

/// Returns the settings of these trials, ascending.
fn tried(trials: &[Trial]) -> Vec<Kib> {
    let all: BTreeSet<Kib> = trials.iter().map(|trial| trial.settings.read_ahead).collect();
    all.into_iter().collect()
}

fn planned((name, role, _): &(String, Role, Points)) -> PlannedWorkload {
    let known = Workload::named(name).unwrap_or_else(|_| {
        Workload::new(name.clone(), workload::Pattern::Sequential, units::Bytes::from_kib(64))
    });
    PlannedWorkload { workload: known, role: *role, shrinks: false }
}

pub(crate) fn figures(throughput_mib_s: f64) -> TrialFigures {
    TrialFigures {
        throughput_mib_s,
        amplification: Some(1.0),
        device_requests: Some(1000),
        device_bytes: None,
        refaulted: None,
        latency_us: None,
        random_latency_us: None,
        measured_seconds: TRIAL_SECONDS,
        spread: None,
    }
}

/// Returns normal noise (Box–Muller transform).
fn normal(random: &mut Pcg64) -> f64 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Returns the number of trials of each setting of a workload.
pub(crate) fn counts(trials: &[Trial], workload: &str) -> BTreeMap<CellSettings, usize> {
    let mut counts = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.workload == workload) {
        *counts.entry(trial.settings.clone()).or_default() += 1;
    }
    counts
}
