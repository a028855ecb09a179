//! Block-layer activity during a trial.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// The I/O of all devices involved, from the start of the readers until no request is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDelta {
    pub requests: u64,
    /// Read requests that were merged into other requests.
    pub merges: u64,
    pub bytes: Bytes,
    /// Sum of the durations of all reads.
    pub read_time: Nanos,
    /// Number of requests in flight, integrated over time.
    pub queue_time: Nanos,
    /// Time with at least one request in flight.
    pub busy: Nanos,
    pub elapsed: Nanos,
    /// Completed write requests; the trial causes them only if its workload writes.
    pub writes: u64,
    /// Written data; the trial causes it only if its workload writes.
    pub write_bytes: Bytes,
    /// Data read from devices on behalf of the readers' threads, from the kernel's task accounting;
    /// `None` without `CONFIG_TASK_IO_ACCOUNTING`.
    pub own_bytes: Option<Bytes>,
}

impl DeviceDelta {
    /// Returns the mean size of a read request; 0 if there were no requests.
    pub fn mean_request(&self) -> Bytes {
        Bytes::new(self.bytes.get().checked_div(self.requests).unwrap_or(0))
    }

    /// Returns the mean number of requests in flight.
    pub fn mean_queue(&self) -> f64 {
        if self.elapsed == Nanos::ZERO {
            0.0
        } else {
            self.queue_time.as_secs_f64() / self.elapsed.as_secs_f64()
        }
    }
}
