//! What an analysis says. Names and units of the fields are those of the JSON.

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
    /// Trials that the figures are made of.
    pub repeats: u32,
    /// Trials that were spoiled; they count only if there is no clean one.
    pub disturbed: u32,
    /// Trials at whose end random reads had half of their files in the cache.
    pub used_up: u32,
    pub throughput_mib_s: Estimate,
    /// Bytes from the device ÷ bytes asked for.
    pub amplification: Option<Estimate>,
    /// Requests to the device in a trial.
    pub device_requests: Option<Estimate>,
    /// Latency of reads: medians over trials of each trial's quantiles.
    pub latency_us: Option<Quantiles>,
    /// Latency of the random reads, where there were any.
    pub random_latency_us: Option<Quantiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The whole interval is above, by more than would matter.
    Faster,
    /// The whole interval is below, by more than would matter.
    Slower,
    /// The interval is tight and holds nothing that would matter.
    NoMeasurableDifference,
    /// The interval is too wide to say.
    Inconclusive,
}

/// What the measurements of one goal allow to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Some settings are measurably faster than others.
    #[serde(rename = "faster")]
    Better,
    NoMeasurableDifference,
    /// The intervals are too wide to say either.
    Inconclusive,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The setting it is a gain over.
    pub baseline_kib: Kib,
    /// Whether that is what the device had; otherwise it is the lowest one measured.
    pub baseline_is_current: bool,
    /// Throughput relative to that setting's: 1.25 is a quarter more.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The latency of random reads under two settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyChange {
    pub before_us: Quantiles,
    pub after_us: Quantiles,
}

/// What varying one tunable does to the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorEffect {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    pub tunable: String,
    /// The level that the others are compared with: what was there before, where that is known.
    pub baseline: String,
    /// The best level over the worst, as a ratio of throughputs.
    pub strength: f64,
    /// Every other level, in the order of the plan.
    pub levels: Vec<LevelEffect>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelEffect {
    pub level: String,
    /// Throughput relative to the baseline's.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// The settings of several tunables that serve the goals best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    pub settings: CellSettings,
    /// What they are compared with: every tunable at the level that the others are compared with.
    pub over: CellSettings,
    /// Throughput, over all goals, relative to that.
    pub ratio: Estimate,
    pub difference: Difference,
}

/// What two tunables do together to the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorInteraction {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    pub tunables: [String; 2],
    /// The level of each that the others are compared with.
    pub baselines: [String; 2],
    /// The ratio that is furthest from 1, upward or downward, as a number above 1.
    pub strength: f64,
    /// Every pair of other levels that was measured.
    pub pairs: Vec<LevelPair>,
}

/// A level of each of two tunables.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelPair {
    pub levels: [String; 2],
    /// Throughput relative to what each level's own effect would give together.
    pub ratio: Estimate,
    pub difference: Difference,
}
