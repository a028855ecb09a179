//! What an analysis says. Names and units of the fields are those of the JSON.

use serde::{Deserialize, Serialize};
use stats::Estimate;
use units::Kib;

use crate::settings::Settings;

/// What a run shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// One for each pair of settings and workload that was measured, settings ascending within
    /// workloads in the order of the plan.
    pub cells: Vec<Cell>,
    /// How far the settings are from what is possible; none unless it was worked out (of simulated
    /// targets, by [`crate::limits`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<crate::WorkloadLimits>,
    /// What to do.
    pub recommendation: super::recommendation::Recommendation,
    /// What each goal would have by itself; empty where several tunables were varied.
    pub per_workload: Vec<WorkloadVerdict>,
    /// What each tunable does, where several were varied: for all goals together or the only one,
    /// then for each other workload; within that the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// What two tunables do together beyond their own effects, where their levels were measured
    /// together; in the same order of workloads, the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<Interaction>,
    /// The best combination of several tunables, where those were varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combination: Option<Combination>,
    /// Wall-clock time spent inside trials, spoiled ones included.
    pub measured_seconds: f64,
    /// How many times slower than its model a virtual disk ran; 1 for real storage. Figures are
    /// already in the model's time.
    pub dilation: f64,
    /// What a reader of the figures should know: spoiled trials, unmeasured prices.
    pub notes: Vec<String>,
}

/// One pair of settings and workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Under which settings.
    pub settings: Settings,
    /// Name of the workload.
    pub workload: String,
    /// Trials that the figures are made of.
    pub repeats: u32,
    /// Trials that were spoiled; they count only if there is no clean one.
    pub disturbed: u32,
    /// Trials at whose end random reads had half of their files in the cache.
    pub used_up: u32,
    /// Useful data a second.
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

/// Two quantiles of latency in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of the reads are faster.
    pub p50: f64,
    /// 99 of 100 are.
    pub p99: f64,
}

/// Whether two things differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The whole interval is above, by more than would matter.
    Better,
    /// The whole interval is below, by more than would matter.
    Worse,
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
    /// All settings serve equally well.
    NoMeasurableDifference,
    /// The intervals are too wide to say either.
    Inconclusive,
}

/// What one goal would have by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadVerdict {
    /// Name of the workload.
    pub workload: String,
    /// What can be said.
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// What to do for this goal alone, whatever it costs.
    #[serde(flatten)]
    pub decision: super::recommendation::Decision,
    /// What it gains.
    pub gain: Option<Gain>,
    /// The setting with the highest median.
    pub fastest_kib: Kib,
    /// The smallest setting with at least 80 % of the possible gain.
    pub economical_kib: Option<Kib>,
    /// The smallest setting that is not measurably below the best.
    pub best_kib: Option<Kib>,
    /// Where the curve bends from rising to flat, as geometry has it: Kneedle over log₂ of the
    /// setting.
    pub knee_kib: Option<Kib>,
    /// What the best setting gains.
    pub best_gain: Option<Gain>,
}

/// A ratio of throughputs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// The setting it is a gain over.
    pub over_kib: Kib,
    /// Whether that is what the device had; otherwise it is the lowest one measured.
    pub over_is_current: bool,
    /// Throughput relative to that setting's: 1.25 is a quarter more.
    pub ratio: Estimate,
    /// The ratio in a word.
    pub difference: Difference,
}

/// The latency of random reads under two settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyChange {
    /// Under the setting compared with.
    pub before_us: Quantiles,
    /// Under the new one.
    pub after_us: Quantiles,
}

/// What varying one tunable does to the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    /// The tunable.
    pub tunable: String,
    /// The level that the others are compared with: what was there before, where that is known.
    pub baseline: String,
    /// The best level over the worst, as a ratio of throughputs.
    pub strength: f64,
    /// Every other level, in the order of the plan.
    pub levels: Vec<LevelEffect>,
}

/// One level of a tunable.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelEffect {
    /// The level.
    pub level: String,
    /// Throughput relative to the baseline's.
    pub ratio: Estimate,
    /// The ratio in a word.
    pub difference: Difference,
}

/// The settings of several tunables that serve the goals best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    /// The settings.
    pub settings: Settings,
    /// What they are compared with: every tunable at the level that the others are compared with.
    pub over: Settings,
    /// Throughput, over all goals, relative to that.
    pub ratio: Estimate,
    /// The ratio in a word.
    pub difference: Difference,
}

/// What two tunables do together to the throughput of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interaction {
    /// Name of the workload, or `all goals`.
    pub workload: String,
    /// The tunables.
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
    /// The levels.
    pub levels: [String; 2],
    /// Throughput relative to what each level's own effect would give together.
    pub ratio: Estimate,
    /// The ratio in a word.
    pub difference: Difference,
}
