//! What the block layer has counted.

use std::iter::Sum;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, Nanos};

use crate::{DevNo, HostError, Root};

/// The counters of a block device since it came up, or the difference of two readings
/// (Documentation/block/stat.rst). Times are counted by the kernel in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStat {
    /// Reads completed.
    pub reads: u64,
    /// Reads that were merged into another before they were sent.
    pub read_merges: u64,
    /// Data read.
    pub read_bytes: Bytes,
    /// The time that reads took, summed over all of them.
    pub read_time: Nanos,
    /// Writes completed.
    pub writes: u64,
    /// Writes that were merged into another before they were sent.
    pub write_merges: u64,
    /// Data written.
    pub write_bytes: Bytes,
    /// The time that writes took, summed over all of them.
    pub write_time: Nanos,
    /// Requests under way at the (later) reading.
    pub in_flight: u64,
    /// Time in which at least one request was under way.
    pub busy: Nanos,
    /// Requests under way, summed over time: divided by elapsed time it is the mean queue.
    pub queue_time: Nanos,
    /// Discards completed.
    pub discards: u64,
    /// Flushes completed.
    pub flushes: u64,
}

impl BlockStat {
    /// The mean size of a read as it went to the device; nothing if there was none.
    pub fn mean_read(&self) -> Bytes {
        Bytes::new(self.read_bytes.get().checked_div(self.reads).unwrap_or(0))
    }

    /// The mean number of requests under way over `elapsed`.
    pub fn mean_queue(&self, elapsed: Nanos) -> f64 {
        if elapsed == Nanos::ZERO {
            0.0
        } else {
            self.queue_time.as_secs_f64() / elapsed.as_secs_f64()
        }
    }
}

/// A text that is no `stat` file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is no block device statistics: at least 11 numbers are due")]
pub struct ParseStatError {
    text: String,
}

impl FromStr for BlockStat {
    type Err = ParseStatError;

    fn from_str(_text: &str) -> Result<Self, ParseStatError> {
        todo!()
    }
}

/// What was counted between two readings. A device that came anew has smaller counters than
/// before: the difference is then nothing, never negative.
impl Sub for BlockStat {
    type Output = Self;

    fn sub(self, _earlier: Self) -> Self {
        todo!()
    }
}

impl Add for BlockStat {
    type Output = Self;

    fn add(self, _other: Self) -> Self {
        todo!()
    }
}

impl Sum for BlockStat {
    fn sum<I: Iterator<Item = Self>>(stats: I) -> Self {
        stats.fold(Self::default(), Self::add)
    }
}

/// Reads the counters of one device (a partition has its own).
pub fn block_stat(root: &Root, device: DevNo) -> Result<BlockStat, HostError> {
    let _ = (root, device);
    todo!()
}
