//! The recommendation for read-ahead, which is decided only here. The names and units of the fields
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
    /// Keep the device's present value.
    Keep(Kib),
    /// The settings do not differ for the goals.
    NoDifference,
    /// The measurements do not decide.
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

/// A recommendation, with all that a person must know before following it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    #[serde(flatten)]
    pub decision: Decision,
    /// All values to set, if tunables besides read-ahead were varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<CellSettings>,
    /// The purpose for which costs were weighed.
    #[serde(rename = "for")]
    pub purpose: StudyPurpose,
    /// How much the goals gain from [`Decision::Set`].
    pub gain: Option<Gain>,
    /// What else [`Decision::Set`] changes.
    pub cost: Option<RecommendationCost>,
    /// Workloads that lose more than half of their throughput by [`Decision::Set`]: the
    /// recommendation holds only where they do not matter.
    pub conditions: Vec<CostCondition>,
    /// The best setting that gains and has no condition. If there are conditions and no such
    /// setting, the current value should be kept where a condition does not hold.
    pub without_conditions: Option<Alternative>,
    /// What a smaller setting saves, if that is the reason for [`Decision::Set`].
    pub saving: Option<Saving>,
    /// The smallest setting with at least 80 % of the possible gain.
    pub economical: Option<Alternative>,
    /// The smallest setting that is not measurably below the best.
    pub best: Option<Alternative>,
    /// What was not measured and could change the decision.
    pub caveats: Vec<Caveat>,
}

/// Another setting and what it gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    pub read_ahead_kib: Kib,
    pub gain: Gain,
    /// How the measured cost workloads change under it.
    pub changes: Vec<CostChange>,
}

/// The costs of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecommendationCost {
    /// Maximum page cache for the streams of the largest goal: [`units::read_ahead_memory`].
    pub memory_mib: f64,
    pub streams: u32,
    pub amplification: Option<f64>,
    /// All cost workloads that were measured under this setting.
    pub changes: Vec<CostChange>,
}

/// A cost workload compared between two settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostChange {
    pub workload: String,
    pub baseline_kib: Kib,
    /// Throughput relative to that setting.
    pub throughput_ratio: Estimate,
    pub amplification: Option<f64>,
    /// The latency of its random reads, if it has any.
    #[serde(flatten)]
    pub latency: Option<LatencyChange>,
}

/// A workload that the recommendation assumes not to matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCondition {
    pub workload: String,
    /// Its throughput relative to the current setting.
    pub throughput_ratio: Estimate,
}

/// What a smaller setting saves while the goals stay as fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    pub memory_mib: f64,
    /// Cost workloads that are at least half as fast again.
    pub changes: Vec<CostChange>,
}

/// Something that was not measured and may matter.
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
    /// A cost workload had half of its files in the cache at the end of a trial, so it may look
    /// faster than it is.
    FilesUsedUp { read_ahead_kib: Kib, workload: String },
}

impl Recommendation {
    /// A recommendation without a setting.
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

    /// The value that the device should have, set or kept.
    pub fn value(&self) -> Option<Kib> {
        match self.decision {
            Decision::Set(kib) | Decision::Keep(kib) => Some(kib),
            Decision::NoDifference | Decision::Inconclusive(_) => None,
        }
    }

    /// All values that [`Decision::Set`] sets.
    pub fn to_set(&self) -> Option<CellSettings> {
        match self.decision {
            Decision::Set(kib) => {
                Some(self.settings.clone().unwrap_or_else(|| CellSettings::read_ahead(kib)))
            }
            _ => None,
        }
    }

    /// Whether a decision needs more measurements.
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
