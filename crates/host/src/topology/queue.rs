//! Queue settings of a block device: those that determine its default read-ahead, and related ones.

use serde::Serialize;
use units::Bytes;

use crate::Root;
use crate::block::active_scheduler;

/// Queue settings of a block device. A field is `None` if the kernel or device lacks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueLimits {
    /// Optimal request size; 0 if the device reports none.
    pub optimal_io_size: Option<Bytes>,
    pub max_sectors: Option<Bytes>,
    pub max_hw_sectors: Option<Bytes>,
    /// Whether the kernel treats the device as a rotating disk.
    pub rotational: Option<bool>,
    pub logical_block_size: Option<Bytes>,
    pub scheduler: Option<String>,
    pub nr_requests: Option<u64>,
    /// Maximum number of commands in flight on a SCSI device.
    pub queue_depth: Option<u64>,
    /// Number of stripes that md keeps in memory, for RAID 4, 5 and 6.
    pub stripe_cache_size: Option<u64>,
}

impl QueueLimits {
    /// Reads the settings of the whole device in `dir`.
    pub(crate) fn read(root: &Root, dir: &str) -> Self {
        let number = |name: &str| root.number_if_present(format!("{dir}/{name}"));
        let amount = |name: &str, unit: u64| {
            number(&format!("queue/{name}")).and_then(|n| n.checked_mul(unit)).map(Bytes::new)
        };
        let scheduler = root.read(format!("{dir}/queue/scheduler")).ok();
        Self {
            optimal_io_size: amount("optimal_io_size", 1),
            max_sectors: amount("max_sectors_kb", 1024),
            max_hw_sectors: amount("max_hw_sectors_kb", 1024),
            rotational: number("queue/rotational").map(|flag| flag != 0),
            logical_block_size: amount("logical_block_size", 1),
            scheduler: scheduler
                .filter(|text| !text.is_empty())
                .map(|text| active_scheduler(&text)),
            nr_requests: number("queue/nr_requests"),
            queue_depth: number("device/queue_depth"),
            stripe_cache_size: number("md/stripe_cache_size"),
        }
    }
}
