//! The parts of an analysis. The names and units of the fields are those of the JSON.

use serde::Serialize;
use stats::Estimate;
use units::Kib;

use crate::settings::CellSettings;
use crate::trial::Quantiles;

/// One pair of settings and workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    pub settings: CellSettings,
    pub workload: String,
    /// Trials behind the figures.
    pub repeats: u32,
    /// Disturbed trials; they count only if there is no undisturbed one.
    pub disturbed: u32,
    /// Trials whose random reads had half of their files in the cache at the end.
    pub used_up: u32,
    pub throughput_mib_s: Estimate,
    /// Bytes from the device ÷ bytes requested.
    pub amplification: Option<Estimate>,
    /// Device requests in a trial.
    pub device_requests: Option<Estimate>,
    /// Latency of reads: medians over trials of each trial's quantiles.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads, if there were any.
    pub random_latency_us: Option<Quantiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The whole interval is above 1 by a margin that matters.
    Faster,
    /// The whole interval is below 1 by a margin that matters.
    Slower,
    /// The interval is tight and contains nothing that matters.
    NoMeasurableDifference,
    /// The interval is too wide to decide.
    Inconclusive,
}

/// The conclusion for one goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Some settings are measurably faster than others.
    #[serde(rename = "faster")]
    Better,
    NoMeasurableDifference,
    /// The intervals are too wide to decide.
    Inconclusive,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The setting that the gain is relative to.
    pub baseline_kib: Kib,
    /// Whether that is the device's present setting; otherwise it is the smallest one measured.
    pub baseline_is_current: bool,
    /// Throughput relative to that setting: 1.25 is a quarter more.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The latency of random reads under two settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyChange {
    pub before_us: Quantiles,
    pub after_us: Quantiles,
}

/// The effect of one tunable on the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorEffect {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    pub tunable: String,
    /// The level that the others are compared with: the current one, if it is known.
    pub baseline: String,
    /// The best level over the worst, as a ratio of throughputs.
    pub strength: f64,
    /// Every other level, in the order of the plan.
    pub levels: Vec<LevelEffect>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelEffect {
    pub level: String,
    /// Throughput relative to the baseline.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The combination of tunables that serves the goals best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    pub settings: CellSettings,
    /// The combination of all baselines, with which it is compared.
    pub over: CellSettings,
    /// Throughput over all goals relative to that combination.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The joint effect of two tunables on the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorInteraction {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    pub tunables: [String; 2],
    /// The baseline level of each.
    pub baselines: [String; 2],
    /// The ratio that is furthest from 1 in either direction, as a number above 1.
    pub strength: f64,
    /// All measured pairs of other levels.
    pub pairs: Vec<LevelPair>,
}

/// A level of each of two tunables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelPair {
    pub levels: [String; 2],
    /// Throughput relative to the product of the separate effects.
    pub ratio: Estimate,
    pub difference: Difference,
}
