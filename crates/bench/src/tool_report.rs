//! What a program that ran a trial has reported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The report of a program that ran a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolReport {
    pub program: String,
    /// Its version, as it says it itself; nothing where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Its own figure, where the workload names one: whatever it is, more is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<f64>,
    /// All other figures that it tells, by their names with their units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// What it tells without a number: cells that are too fast to measure, warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
