//! One request of a reader.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// What a request belongs to, and so which latency it is counted with.
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
    /// The file, counted among the reader's own.
    pub file: u32,
    pub offset: Bytes,
    /// How much; less than a block at the end of a file.
    pub length: Bytes,
    /// What it belongs to.
    pub class: AccessClass,
    /// It is not made before this time after the start, in the storage's own time; only a replay
    /// at the recorded pace has one.
    pub not_before: Nanos,
}
