//! All that an analysis says of a run.

use serde::Serialize;
use units::Kib;

use super::recommendation::{Decision, Recommendation};
use super::types::{Cell, Combination, FactorEffect, FactorInteraction, Gain, VerdictKind};
use crate::storage::WorkloadLimits;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// One for each pair of settings and workload that was measured, settings ascending within
    /// workloads in the order of the plan.
    pub cells: Vec<Cell>,
    /// How far the settings are from what is possible; none unless it was worked out (of simulated
    /// targets, by [`crate::limits`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<WorkloadLimits>,
    pub recommendation: Recommendation,
    /// What each goal would have by itself; empty where several tunables were varied.
    pub per_workload: Vec<WorkloadVerdict>,
    /// What each tunable does, where several were varied: for all goals together or the only one,
    /// then for each other workload; within that the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<FactorEffect>,
    /// What two tunables do together beyond their own effects, where their levels were measured
    /// together; in the same order of workloads, the strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<FactorInteraction>,
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

/// What one goal would have by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadVerdict {
    pub workload: String,
    #[serde(rename = "verdict")]
    pub kind: VerdictKind,
    /// What to do for this goal alone, whatever it costs.
    #[serde(flatten)]
    pub decision: Decision,
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
    pub best_gain: Option<Gain>,
}
