//! Block devices: their numbers and the facts that a record keeps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Bytes;

use crate::{HostError, Root};

/// The number of a device, `8:0`. Major 0 is a file system without a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DevNo {
    /// The driver's number.
    pub major: u32,
    /// The number of the disk or partition under that driver.
    pub minor: u32,
}

impl DevNo {
    /// The number as `stat(2)` gives it.
    pub fn from_raw(dev: u64) -> Self {
        Self { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }
}

impl fmt::Display for DevNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.major, self.minor))
    }
}

/// A text that is no device number.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is no device number: write MAJOR:MINOR, as in 8:0")]
pub struct ParseDevNoError {
    text: String,
}

impl FromStr for DevNo {
    type Err = ParseDevNoError;

    fn from_str(text: &str) -> Result<Self, ParseDevNoError> {
        let number = |part: &str| -> Option<u32> {
            // `parse` alone would take a sign.
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
        };
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| ParseDevNoError { text: text.to_owned() })
    }
}

impl TryFrom<String> for DevNo {
    type Error = ParseDevNoError;

    fn try_from(text: String) -> Result<Self, ParseDevNoError> {
        text.parse()
    }
}

impl From<DevNo> for String {
    fn from(device: DevNo) -> String {
        device.to_string()
    }
}

/// What a record keeps of a block device. A field is `None` where the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The device's number.
    pub device: DevNo,
    /// The kernel's name for it: `sda1`, `dm-0`.
    pub name: String,
    /// The disk it is a partition of.
    pub disk: Option<DevNo>,
    /// Its driver's idea: `partition`, `dm`, `md`, `loop`, `zram` or `disk`.
    pub kind: String,
    /// Its size.
    pub size: Option<Bytes>,
    /// Maker and model, as the device reports them.
    pub model: Option<String>,
    /// The name that device mapper or md gave it.
    pub label: Option<String>,
    /// Whether the kernel takes it for a disk that turns.
    pub rotational: Option<bool>,
    /// Whether it can only be read.
    pub read_only: Option<bool>,
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// Requests that its queue holds.
    pub nr_requests: Option<u64>,
    /// The largest request.
    pub max_sectors: Option<Bytes>,
    /// The size of request that the device asks for; nothing if it does not care.
    pub optimal_io_size: Option<Bytes>,
    /// The device's own sector.
    pub logical_block_size: Option<Bytes>,
    /// Read-ahead of its queue.
    pub read_ahead: Option<Bytes>,
    /// Counts disks since boot, so that a number used again is not mistaken (since Linux 5.15).
    pub diskseq: Option<u64>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The devices right below it, as of dm and md.
    pub members: Vec<DevNo>,
}

/// Gathers the facts of one device.
pub fn device_facts(_root: &Root, _device: DevNo) -> Result<DeviceFacts, HostError> {
    todo!()
}

/// Whether the device has gone since it was resolved.
pub fn device_gone(root: &Root, device: DevNo) -> bool {
    !root.exists(format!("/sys/dev/block/{device}"))
}
