//! What to do about read-ahead: the only place where that is decided. Names and units of the fields
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
    /// Set read-ahead to this.
    Set(Kib),
    /// Keep what the device has, which is this.
    Keep(Kib),
    /// Settings do not differ for the goals.
    NoDifference,
    /// The measurements do not say.
    Inconclusive(InconclusiveReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InconclusiveReason {
    /// Nothing was measured for the goals.
    NothingMeasured,
    NothingToCompare,
    TooNoisy,
    /// Every trial at this setting, on which the decision rests, was disturbed.
    Disturbed(Kib),
}

/// A recommendation with all that a person has to know before following it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    #[serde(flatten)]
    pub decision: Decision,
    /// All that is to be set, where tunables besides read-ahead were varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<CellSettings>,
    /// The use that costs were weighed for.
    #[serde(rename = "for")]
    pub purpose: StudyPurpose,
    /// What the goals gain by [`Decision::Set`].
    pub gain: Option<Gain>,
    /// What else changes by [`Decision::Set`].
    pub cost: Option<RecommendationCost>,
    /// Workloads that lose more than half by [`Decision::Set`]: it is good only where they do not
    /// matter.
    pub conditions: Vec<CostCondition>,
    /// The best setting that gains and meets no condition. With conditions and without such a
    /// setting, what the device has is to be kept where a condition does not hold.
    pub without_conditions: Option<Alternative>,
    /// What a smaller setting saves, where that is the reason for [`Decision::Set`].
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
    /// What becomes of the cost workloads that were measured under it.
    pub changes: Vec<CostChange>,
}

/// What a setting costs besides what it gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecommendationCost {
    /// Page cache that the streams of the largest goal may take: [`units::read_ahead_memory`].
    pub memory_mib: f64,
    pub streams: u32,
    pub amplification: Option<f64>,
    /// Every cost workload that was measured under this setting.
    pub changes: Vec<CostChange>,
}

/// A cost workload under two settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostChange {
    pub workload: String,
    pub baseline_kib: Kib,
    /// Throughput relative to that setting's.
    pub throughput_ratio: Estimate,
    pub amplification: Option<f64>,
    /// Its random reads, where it has some.
    #[serde(flatten)]
    pub latency: Option<LatencyChange>,
}

/// A workload that must not matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCondition {
    pub workload: String,
    /// Its throughput relative to that under the present setting.
    pub throughput_ratio: Estimate,
}

/// What a smaller setting saves at the same speed of the goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Saving {
    pub memory_mib: f64,
    /// Cost workloads that are faster by half or more.
    pub changes: Vec<CostChange>,
}

/// Something that was not measured and may matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "caveat", rename_all = "snake_case")]
pub enum Caveat {
    /// The recommended setting is the largest or the smallest that was tried.
    EdgeOfRange { read_ahead_kib: Kib },
    /// A cost workload was not measured under the recommended setting, or under one that might do
    /// without the condition.
    CostNotMeasured { read_ahead_kib: Kib, workload: String },
    /// What the device has was not measured, so the gain is over the lowest setting.
    PresentNotMeasured { read_ahead_kib: Kib },
    /// A cost workload had half of its files in the cache at the end of a trial: it may look
    /// faster than it is.
    FilesUsedUp { read_ahead_kib: Kib, workload: String },
}

impl Recommendation {
    /// A recommendation of nothing, for this reason.
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

    /// The value that the device should have: to set or to keep.
    pub fn value(&self) -> Option<Kib> {
        match self.decision {
            Decision::Set(kib) | Decision::Keep(kib) => Some(kib),
            Decision::NoDifference | Decision::Inconclusive(_) => None,
        }
    }

    /// All that [`Decision::Set`] sets.
    pub fn to_set(&self) -> Option<CellSettings> {
        match self.decision {
            Decision::Set(kib) => {
                Some(self.settings.clone().unwrap_or_else(|| CellSettings::read_ahead(kib)))
            }
            _ => None,
        }
    }

    /// Whether more measuring would be needed to decide.
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
