//! The virtual disks of this machine: list, show, remove.

use std::path::PathBuf;

use host::Dirs;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::config::Filesystem;
use crate::counters::Counters;
use crate::error::VdiskError;
use crate::loop_device::QueueSettings;

/// What is written down about a virtual disk, beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// The words that make the same disk again.
    pub words: String,
    /// The model as TOML, complete.
    pub model: String,
    /// The filesystem on it.
    pub filesystem: Filesystem,
    /// Its size.
    pub size: Bytes,
    /// How many times slower than its model it runs.
    pub dilation: f64,
    /// The seed of the model's jitter.
    pub seed: u64,
    /// The server's process.
    pub pid: u32,
    /// The block device.
    pub device: PathBuf,
    /// The mount point; `None` for a raw disk.
    pub mountpoint: Option<PathBuf>,
    /// How the block device's queue was set up.
    pub queue: QueueSettings,
    /// Whether the server runs at real-time priority.
    pub realtime: bool,
    /// Whether it dies with its creator.
    pub dies_with_creator: bool,
}

/// Whether a virtual disk works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskState {
    /// Somebody makes it just now, or died while at it.
    Unfinished,
    /// It works.
    Serving,
    /// Its server is gone; only removing is left.
    Dead,
}

/// One virtual disk in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// Its name.
    pub name: String,
    /// Whether it works.
    pub state: DiskState,
    /// What is known of it; `None` if it was never finished.
    pub record: Option<Record>,
    /// What it counts, if it works.
    pub counters: Option<Counters>,
}

/// All virtual disks under these directories, by name.
pub fn list(dirs: &Dirs) -> Result<Vec<Listing>, VdiskError> {
    todo!()
}

/// The virtual disk of this name.
pub fn show(dirs: &Dirs, name: &str) -> Result<Listing, VdiskError> {
    todo!()
}

/// Removes the disk of this name, whatever state it is in: unmounts it, releases its loop device,
/// ends its server, removes its directory.
pub fn remove(dirs: &Dirs, name: &str) -> Result<(), VdiskError> {
    todo!()
}
