//! Disturbances of a trial.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::text::counted;
use units::{Bytes, Nanos};

/// An external influence that invalidates a trial, so that it should be repeated, with figures.
#[derive(Clone, Debug, Error, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Disturbance {
    /// Part of the data was in the page cache when the readers started.
    #[error("{resident} of the data could not be evicted from the page cache")]
    WarmStart { resident: Bytes },
    /// The device delivered less data than the readers received: some cache held the rest.
    #[error("not cold: the readers received {useful}, but only {device} came from the device")]
    WarmData { device: Bytes, useful: Bytes },
    /// Another process dropped the page cache during the trial.
    #[error("another process dropped the page cache {}", counted(*times as usize, "time"))]
    CacheDropped { times: u64 },
    #[error(
        "other traffic on the device: {read} read and {written} written in addition to ours \
             ({own})"
    )]
    ForeignTraffic {
        /// Data read besides the requests of the trial's readers.
        read: Bytes,
        written: Bytes,
        own: Bytes,
    },
    /// Memory was short: tasks stalled until some was free.
    #[error(
        "memory was short: tasks were stalled for {stalled} of {elapsed} and looked at \
         {scanned_pages} pages for free ones"
    )]
    MemoryPressure {
        /// Time during which at least one task was stalled.
        stalled: Nanos,
        elapsed: Nanos,
        /// Pages that tasks scanned to find free memory.
        scanned_pages: u64,
    },
    /// The program that runs the workload failed.
    #[error("{problem}")]
    ToolFailed { problem: String },
    /// Requests were still in flight when the time limit expired.
    #[error("{requests} requests were still in flight after {waited}")]
    NotDrained { requests: u64, waited: Nanos },
}
