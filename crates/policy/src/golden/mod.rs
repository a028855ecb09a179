//! Replays sequences whose decisions were recorded on a real kernel, and compares the decisions.
//!
//! A recording is a JSON document. It has *patterns* (lists of operations on one file). For each of
//! several *configurations* (kind of mapping, `read_ahead_kb`) it has the kernel's decision at each
//! miss and mark, and the number of cached pages at the end. [`run`] replays every pattern with
//! [`Linux618`](crate::algorithm::linux_6_18::Linux618) and reports its first difference.

mod decision;
mod operation;
mod replay;
mod schema;

use std::fmt;

pub use decision::{Decision, RecordedSubmission};

use schema::GoldenRecording;

/// Error of replaying a recording.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    #[error("this is not a recording of read-ahead decisions; compare it with its schema")]
    Schema(#[from] serde_json::Error),
    /// The recording names no device, or an impossible one.
    #[error("the recording's \"device\" is {device:?}; {wanted}")]
    Device { device: String, wanted: &'static str },
    /// The recording has patterns but no results to compare with.
    #[error("the recording contains no results")]
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceResult {
    /// Configuration: kind of mapping and `read_ahead_kb`.
    pub config: String,
    pub pattern: String,
    pub decisions: usize,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All decisions and the number of cached pages are equal.
    Same,
    /// At least one decision or the number of cached pages differs.
    Differs(Difference),
    /// The sequence could not be replayed, with the reason.
    Unreadable(String),
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Two decisions differ; `None` on the side that has no further decision.
    Decision {
        /// Number of the decision, counted from 0.
        nth: usize,
        recorded: Option<Decision>,
        made: Option<Decision>,
    },
    /// The numbers of cached pages at the end differ.
    Cached { recorded: u64, made: u64 },
}

impl SequenceResult {
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Same
    }
}

impl fmt::Display for SequenceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, pattern, decisions, verdict } = self;
        match verdict {
            Verdict::Same => write!(f, "same {config} {pattern}: {decisions} decisions"),
            Verdict::Differs(difference) => write!(f, "DIFFERS {config} {pattern}: {difference}"),
            Verdict::Unreadable(reason) => write!(f, "UNREADABLE {config} {pattern}: {reason}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |decision: &Option<Decision>| {
            decision.as_ref().map_or_else(|| "none".to_owned(), Decision::to_string)
        };
        match self {
            Self::Decision { nth, recorded, made } => {
                write!(f, "decision {nth}: recorded {}, replayed {}", text(recorded), text(made))
            }
            Self::Cached { recorded, made } => {
                write!(f, "cached pages at the end: recorded {recorded}, replayed {made}")
            }
        }
    }
}

/// Replays every sequence of a recording. `file` is the text of the recording.
///
/// # Errors
///
/// If the text is not a recording, or has no usable device or no results. A sequence that cannot be
/// replayed is a [`Verdict`].
pub fn run(file: &str) -> Result<Vec<SequenceResult>, GoldenError> {
    let recording: GoldenRecording = serde_json::from_str(file)?;
    let device = recording.device()?;
    let results: Vec<_> = recording
        .results
        .iter()
        .flat_map(|(config, patterns)| patterns.iter().map(move |(name, is)| (config, name, is)))
        .map(|(config, pattern, recorded)| SequenceResult {
            config: config.clone(),
            pattern: pattern.clone(),
            decisions: recorded.decisions.len(),
            verdict: match replay::sequence(&recording, device, config, pattern) {
                Ok(made) => recorded.compare(&made),
                Err(reason) => Verdict::Unreadable(reason),
            },
        })
        .collect();
    if results.is_empty() { Err(GoldenError::Empty) } else { Ok(results) }
}
