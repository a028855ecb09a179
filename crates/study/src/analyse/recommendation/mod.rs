//! Makes the recommendation for read-ahead; no other module decides. Names and units of the fields
//! are those of the JSON.

mod evidence;
mod questions;
mod rule;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;
use stats::Estimate;
use units::Kib;

pub(crate) use evidence::TrialEvidence;
pub(crate) use questions::{MeasurementScope, OpenQuestion};
pub(super) use rule::{CONDITION_BELOW_RATIO, MIN_GAIN_RATIO, MIN_SAVING_RATIO, memory};

use super::types::{Gain, LatencyChange};
use crate::plan::StudyPurpose;
use crate::settings::CellSettings;

#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Set read-ahead to this value.
    Set(Kib),
    /// Keep the device's current value.
    Keep(Kib),
    /// The settings do not differ for the goals.
    NoDifference,
    /// The measurements do not allow a decision.
    Inconclusive(InconclusiveReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InconclusiveReason {
    /// No goal was measured.
    NothingMeasured,
    NothingToCompare,
    TooNoisy,
    /// The decision depends on this setting, and every trial at it was disturbed.
    Disturbed(Kib),
}

/// A recommendation, with its costs, conditions and caveats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    #[serde(flatten)]
    pub decision: Decision,
    /// All values to set, if tunables besides read-ahead were varied; `None` otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<CellSettings>,
    /// The purpose, which determines whether costs count.
    #[serde(rename = "for")]
    pub purpose: StudyPurpose,
    /// The gain of the goals by [`Decision::Set`]; `None` for other decisions.
    pub gain: Option<Gain>,
    /// The other effects of [`Decision::Set`]; `None` for other decisions.
    pub cost: Option<RecommendationCost>,
    /// Workloads that lose more than half of their throughput by [`Decision::Set`]. The
    /// recommendation holds only if they do not matter.
    pub conditions: Vec<CostCondition>,
    /// The best setting that gains and has no condition. If there are conditions and no such
    /// setting, keep the current value wherever a condition does not hold.
    pub without_conditions: Option<Alternative>,
    /// The saving by a smaller setting, if that is the reason for [`Decision::Set`].
    pub saving: Option<Saving>,
    /// The smallest setting with at least 80 % of the possible gain.
    pub economical: Option<Alternative>,
    /// The smallest setting that is not measurably slower than the best.
    pub best: Option<Alternative>,
    /// Missing measurements that could change the decision.
    pub caveats: Vec<Caveat>,
}

/// Another setting and its gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    pub read_ahead_kib: Kib,
    pub gain: Gain,
    /// The changes of the measured cost workloads under this setting.
    pub changes: Vec<CostChange>,
}

/// The costs of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecommendationCost {
    /// Maximum page cache for the streams of the largest goal: [`units::read_ahead_memory`].
    pub memory_mib: f64,
    pub streams: u32,
    pub amplification: Option<f64>,
    /// The changes of all cost workloads that were measured under this setting.
    pub changes: Vec<CostChange>,
}

/// A cost workload compared between two settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostChange {
    pub workload: String,
    pub baseline_kib: Kib,
    /// Throughput relative to that under `baseline_kib`.
    pub throughput_ratio: Estimate,
    pub amplification: Option<f64>,
    /// The latency of its random reads; `None` if it has none.
    #[serde(flatten)]
    pub latency: Option<LatencyChange>,
}

/// A workload that the recommendation assumes not to matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCondition {
    pub workload: String,
    /// Throughput of the workload relative to the current setting.
    pub throughput_ratio: Estimate,
}

/// The saving by a smaller setting under which the goals stay as fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    pub memory_mib: f64,
    /// Cost workloads that are at least 50 % faster.
    pub changes: Vec<CostChange>,
}

/// A missing or doubtful measurement that may matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "caveat", rename_all = "snake_case")]
pub enum Caveat {
    /// The recommended setting is the largest or smallest that was tried.
    EdgeOfRange { read_ahead_kib: Kib },
    /// A cost workload was not measured under the recommended setting, or under a setting that
    /// might avoid the condition.
    CostNotMeasured { read_ahead_kib: Kib, workload: String },
    /// The current setting was not measured, so the gain is relative to the smallest setting.
    PresentNotMeasured { read_ahead_kib: Kib },
    /// A cost workload had half of its files in the cache at the end of a trial, so it may appear
    /// faster than it is.
    FilesUsedUp { read_ahead_kib: Kib, workload: String },
}

impl Recommendation {
    /// Creates a recommendation without a setting.
    pub(crate) fn nothing(decision: Decision, purpose: StudyPurpose) -> Self {
        Self {
            decision,
            settings: None,
            purpose,
            gain: None,
            cost: None,
            conditions: Vec::new(),
            without_conditions: None,
            saving: None,
            economical: None,
            best: None,
            caveats: Vec::new(),
        }
    }

    /// Returns the value that the device should have, set or kept.
    pub fn value(&self) -> Option<Kib> {
        match self.decision {
            Decision::Set(kib) | Decision::Keep(kib) => Some(kib),
            Decision::NoDifference | Decision::Inconclusive(_) => None,
        }
    }

    /// Returns all values that [`Decision::Set`] sets; `None` for other decisions.
    pub fn to_set(&self) -> Option<CellSettings> {
        match self.decision {
            Decision::Set(kib) => {
                Some(self.settings.clone().unwrap_or_else(|| CellSettings::read_ahead(kib)))
            }
            _ => None,
        }
    }

    /// Returns whether the decision needs more measurements.
    pub fn is_inconclusive(&self) -> bool {
        match self.decision {
            Decision::Inconclusive(doubt) => {
                matches!(
                    doubt,
                    InconclusiveReason::TooNoisy
                        | InconclusiveReason::Disturbed(_)
                        | InconclusiveReason::NothingMeasured
                )
            }
            _ => false,
        }
    }
}

impl fmt::Display for InconclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingMeasured => f.write_str("nothing was measured"),
            Self::NothingToCompare => f.write_str("only one setting was measured"),
            Self::TooNoisy => f.write_str("the measurements vary too much"),
            Self::Disturbed(kib) => write!(f, "every trial at {kib} was disturbed"),
        }
    }
}

/// `"decision": "set", "read_ahead_kib": 1024, "reason": null`.
impl Serialize for Decision {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let (word, kib, reason) = match self {
            Self::Set(kib) => ("set", Some(kib), None),
            Self::Keep(kib) => ("keep", Some(kib), None),
            Self::NoDifference => ("no_difference", None, None),
            Self::Inconclusive(doubt) => ("inconclusive", None, Some(doubt.to_string())),
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("decision", word)?;
        map.serialize_entry("read_ahead_kib", &kib)?;
        map.serialize_entry("reason", &reason)?;
        map.end()
    }
}
