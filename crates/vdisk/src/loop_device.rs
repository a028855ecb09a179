//! The loop device over the FUSE file, and its queue.

use serde::{Deserialize, Serialize};
use units::{Bytes, Kib};

/// How the queue of a virtual disk's block device is set up; read back after writing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Requests that the block layer keeps in flight.
    pub requests: u64,
    /// What the model asked for, before the kernel's limits.
    pub requests_wanted: u64,
    /// The largest request.
    pub request_size: Bytes,
    /// What the model asked for, before the limits of FUSE and the kernel.
    pub request_size_wanted: Bytes,
    /// The scheduler, always `none` where the kernel lets us choose.
    pub scheduler: String,
    /// The read-ahead that this kernel gives a fresh loop device; the disk starts with it.
    pub read_ahead: Kib,
}
