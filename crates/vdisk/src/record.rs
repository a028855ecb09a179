//! The stored description of a virtual disk.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::filesystem::Filesystem;
use crate::loop_device::QueueSettings;

/// The description of a virtual disk, which is stored in its directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskRecord {
    pub name: String,
    /// The specification that creates an identical disk.
    pub words: String,
    /// The complete model as TOML.
    pub model: String,
    pub filesystem: Filesystem,
    pub size: Bytes,
    /// How many times slower than its model the disk runs.
    pub dilation: f64,
    /// Seed of the model's jitter.
    pub seed: u64,
    pub pid: u32,
    pub device: PathBuf,
    /// Number of the loop device: 3 for `/dev/loop3`.
    pub loop_number: u32,
    /// Mount point; `None` for a raw disk.
    pub mountpoint: Option<PathBuf>,
    /// Effective settings of the block device's queue.
    pub queue: QueueSettings,
    /// Whether the server runs at real-time priority.
    pub realtime: bool,
    /// Whether the disk dies with its creator.
    pub dies_with_creator: bool,
}
