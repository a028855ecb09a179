//! Disturbances of a sample.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, Nanos};

/// An external influence because of which a trial should be repeated, with its figures.
#[derive(Clone, Debug, Error, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Disturbance {
    /// Part of the data was in the page cache when the readers started.
    #[error("{resident} of the data could not be evicted from the page cache")]
    WarmStart { resident: Bytes },
    /// Less was read from the device than the readers received: the rest was cached somewhere.
    #[error("not cold: the readers received {useful}, but only {device} came from the device")]
    WarmData { device: Bytes, useful: Bytes },
    /// The page cache was dropped during the trial.
    #[error("another process dropped the page cache {times} times")]
    CacheDropped { times: u64 },
    #[error(
        "other traffic on the device: {read} read and {written} written in addition to ours \
             ({own})"
    )]
    ForeignTraffic {
        /// Data read that our readers did not request.
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
        /// Pages that tasks scanned to find free ones.
        scanned_pages: u64,
    },
    /// The program that should run the workload failed.
    #[error("{problem}")]
    ToolFailed { problem: String },
    /// Requests were still in flight at the time limit.
    #[error("{requests} requests were still in flight after {waited}")]
    NotDrained { requests: u64, waited: Nanos },
}
