//! The result of the analysis of a run.

use serde::Serialize;
use units::Kib;

use super::recommendation::{Decision, Recommendation};
use super::types::{Cell, Combination, FactorEffect, FactorInteraction, Gain, VerdictKind};
use crate::storage::WorkloadLimits;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// One entry for each measured pair of settings and workload: by workload in the order of the
    /// plan, then by ascending settings.
    pub cells: Vec<Cell>,
    /// The distance of the settings from the possible optimum. Empty unless computed (for simulated
    /// targets, by [`crate::limits`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<WorkloadLimits>,
    pub recommendation: Recommendation,
    /// The verdict for each goal alone; empty if several tunables were varied.
    pub per_workload: Vec<WorkloadVerdict>,
    /// The effect of each tunable, if several were varied: first for the only goal or all goals
    /// together, then for each other workload; strongest effect first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<FactorEffect>,
    /// The joint effect of two tunables beyond their separate effects, for levels that were
    /// measured together; ordered like `effects`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<FactorInteraction>,
    /// The best combination of tunables, if several were varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combination: Option<Combination>,
    /// Wall-clock time spent in trials, including disturbed ones.
    pub measured_seconds: f64,
    /// Factor by which a virtual disk ran slower than its model; 1 for other targets. Figures are
    /// already in the model's time.
    pub dilation: f64,
    /// Notes on the figures: disturbed trials, costs that were not measured.
    pub notes: Vec<String>,
}

/// The verdict for one goal alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadVerdict {
    pub workload: String,
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// The decision for this goal if costs are ignored.
    #[serde(flatten)]
    pub decision: Decision,
    pub gain: Option<Gain>,
    /// The setting with the highest median, among those with enough repeats.
    pub fastest_kib: Kib,
    /// The smallest setting with at least 80 % of the possible gain.
    pub economical_kib: Option<Kib>,
    /// The smallest setting that is not measurably slower than the best.
    pub best_kib: Option<Kib>,
    /// The knee of the curve: Kneedle over log₂ of the setting.
    pub knee_kib: Option<Kib>,
    pub best_gain: Option<Gain>,
}
