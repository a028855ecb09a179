//! Replays sequences whose decisions were recorded on a real kernel, and compares.
//!
//! A recording is a JSON document: *patterns* (lists of operations on one file), and for each of
//! several *configurations* (kind of mapping, `read_ahead_kb`) what the kernel decided at each
//! miss and mark, and how many pages were cached in the end. [`run`] leads every pattern through
//! [`Linux618`](crate::algorithm::linux_6_18::Linux618) and reports the first difference of each.

mod operation;
mod recorder;
mod replay;
mod schema;

use std::fmt;

pub use recorder::{Decision, Submitted};

use schema::GoldenRecording;

/// Why a recording cannot be replayed at all.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    #[error("this is not a recording of read-ahead decisions; compare it with its schema")]
    Schema(#[from] serde_json::Error),
    /// The recording does not say on what device it was made, or on one that cannot be.
    #[error("the recording's \"device\" is {device:?}; {wanted}")]
    Device { device: String, wanted: &'static str },
    /// The recording has patterns but no results to compare with.
    #[error("the recording holds no results")]
    Empty,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceResult {
    /// The configuration: kind of mapping and `read_ahead_kb`.
    pub config: String,
    pub pattern: String,
    pub decisions: usize,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every decision and the number of cached pages are the same.
    Same,
    /// Something is not.
    Differs(Difference),
    /// The sequence could not be replayed, for this reason.
    Unreadable(String),
}

/// The first thing that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A decision; `None` where one side had made all of its own.
    Decision {
        /// Which, counted from 0.
        nth: usize,
        recorded: Option<Decision>,
        made: Option<Decision>,
    },
    /// The number of pages cached in the end.
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
                write!(f, "decision {nth}: recorded {}, made {}", text(recorded), text(made))
            }
            Self::Cached { recorded, made } => {
                write!(f, "cached pages in the end: recorded {recorded}, made {made}")
            }
        }
    }
}

/// Replays every sequence of the recording in `file` (its text).
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
