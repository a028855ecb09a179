//! The parts of an analysis. Names and units of the fields are those of the JSON.

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
    /// Number of trials on which the figures are based.
    pub repeats: u32,
    /// Number of disturbed trials; they count only if there is no undisturbed one.
    pub disturbed: u32,
    /// Number of trials whose random reads had half of their files in the cache at the end.
    pub used_up: u32,
    pub throughput_mib_s: Estimate,
    /// Bytes read from the device ÷ bytes requested.
    pub amplification: Option<Estimate>,
    /// Number of device requests in a trial.
    pub device_requests: Option<Estimate>,
    /// Latency of reads in µs: medians over trials of each trial's quantiles.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads in µs; `None` if there were none.
    pub random_latency_us: Option<Quantiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The whole interval is above 1 by a relevant margin.
    Faster,
    /// The whole interval is below 1 by a relevant margin.
    Slower,
    /// The interval is tight and contains no relevant difference.
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
    /// True if `baseline_kib` is the device's current setting; otherwise it is the smallest one.
    pub baseline_is_current: bool,
    /// Throughput relative to that under `baseline_kib`: 1.25 is 25 % faster.
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
    /// The level that the others are compared with.
    pub baseline: String,
    /// The throughput of the best level ÷ that of the worst.
    pub strength: f64,
    /// Every other level, those in most combinations first.
    pub levels: Vec<LevelEffect>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelEffect {
    pub level: String,
    /// Throughput relative to the baseline.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The fastest combination of tunables for the goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    pub settings: CellSettings,
    /// The combination of all baselines, to which `ratio` refers.
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
    /// The baseline level of each tunable.
    pub baselines: [String; 2],
    /// The ratio furthest from 1 in either direction, expressed as a number above 1.
    pub strength: f64,
    /// All measured pairs of levels other than the baselines.
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
