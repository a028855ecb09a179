//! One request of a reader.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::parameters::RangeAdvice;

/// The kind of a request, which determines its latency statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessClass {
    /// A stream: a run of related reads.
    Stream,
    /// A seek to somewhere else.
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Index of the file among the reader's files.
    pub file: u32,
    pub offset: Bytes,
    /// Length; less than a block at the end of a file.
    pub length: Bytes,
    pub class: AccessClass,
    /// Earliest time after the start, in the storage's own time; only for a replay at the recorded
    /// pace.
    ///
    /// In a replay with think time it is instead the time after the previous request.
    pub not_before: Nanos,
    /// The request is advice for the range, not a read; occurs only in replays.
    pub advice: Option<RangeAdvice>,
}
