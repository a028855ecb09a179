//! What speaks against a sample.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, Nanos};

/// Something from outside that makes a trial worth repeating, with its numbers.
#[derive(Clone, Debug, Error, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Disturbance {
    /// Part of the data was in the page cache when the readers started.
    #[error("{resident} of the data could not be evicted from the page cache")]
    WarmStart { resident: Bytes },
    /// Less was read from the device than the readers got: the rest was in some cache.
    #[error("not cold: the readers got {useful}, but only {device} came from the device")]
    WarmData { device: Bytes, useful: Bytes },
    /// Somebody emptied the page cache under the readers.
    #[error("the page cache was dropped {times} times by somebody else")]
    CacheDropped { times: u64 },
    #[error("other traffic on the device: {read} read and {written} written beside ours ({own})")]
    ForeignTraffic {
        /// Data read that our readers did not ask for.
        read: Bytes,
        written: Bytes,
        own: Bytes,
    },
    /// Memory was short: tasks were held up until some was free.
    #[error(
        "memory was short: tasks were stalled for {stalled} of {elapsed} and looked at \
         {scanned_pages} pages for free ones"
    )]
    MemoryPressure {
        /// How long at least one task was stalled.
        stalled: Nanos,
        elapsed: Nanos,
        /// Pages that tasks looked at to find free ones.
        scanned_pages: u64,
    },
    /// The program that was to run the workload did not do it.
    #[error("{problem}")]
    ToolFailed { problem: String },
    /// Requests were still under way when waiting for them was given up.
    #[error("{requests} requests were still under way after {waited}")]
    NotDrained { requests: u64, waited: Nanos },
}
