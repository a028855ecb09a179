//! What the block layer did during a trial.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// The I/O of all devices that count for the storage, from the start of the readers until nothing
/// was in flight any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDelta {
    pub requests: u64,
    /// Read requests that were merged into another before they were sent.
    pub merges: u64,
    pub bytes: Bytes,
    /// Time that reads took, summed over all of them.
    pub read_time: Nanos,
    /// Requests under way, summed over time.
    pub queue_time: Nanos,
    /// Time in which at least one request was under way.
    pub busy: Nanos,
    pub elapsed: Nanos,
    /// Write requests completed: ours only of workloads that write.
    pub writes: u64,
    /// Data written: ours only of workloads that write.
    pub write_bytes: Bytes,
    /// What the readers themselves have caused to be read, as the kernel accounts it to their
    /// threads; `None` where it does not (`CONFIG_TASK_IO_ACCOUNTING`).
    pub own_bytes: Option<Bytes>,
}

impl DeviceDelta {
    /// The mean size of a read as it went to the device; nothing if there was none.
    pub fn mean_request(&self) -> Bytes {
        Bytes::new(self.bytes.get().checked_div(self.requests).unwrap_or(0))
    }

    /// The mean number of requests under way.
    pub fn mean_queue(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            0.0
        } else {
            self.queue_time.as_secs_f64() / self.elapsed.as_secs_f64()
        }
    }
}
