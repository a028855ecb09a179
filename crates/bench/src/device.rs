//! The block layer's activity during a trial.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// The I/O of all relevant devices, from the start of the readers until nothing is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDelta {
    pub requests: u64,
    /// Read requests that were merged into another one.
    pub merges: u64,
    pub bytes: Bytes,
    /// Total duration of the reads.
    pub read_time: Nanos,
    /// Requests in flight, summed over time.
    pub queue_time: Nanos,
    /// Time with at least one request in flight.
    pub busy: Nanos,
    pub elapsed: Nanos,
    /// Completed write requests; they are ours only if the workload writes.
    pub writes: u64,
    /// Written data; it is ours only if the workload writes.
    pub write_bytes: Bytes,
    /// Data that the readers themselves caused to be read, from the kernel's accounting of their
    /// threads; `None` without `CONFIG_TASK_IO_ACCOUNTING`.
    pub own_bytes: Option<Bytes>,
}

impl DeviceDelta {
    /// The mean size of a read request; 0 without requests.
    pub fn mean_request(&self) -> Bytes {
        Bytes::new(self.bytes.get().checked_div(self.requests).unwrap_or(0))
    }

    /// The mean number of requests in flight.
    pub fn mean_queue(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            0.0
        } else {
            self.queue_time.as_secs_f64() / self.elapsed.as_secs_f64()
        }
    }
}
