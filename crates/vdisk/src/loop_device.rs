//! The loop device on the FUSE file, and its queue.
//!
//! This module writes settings under `/sys` only for a device that this process has just created
//! and that is removed with the disk. Therefore it needs no journal and restores nothing.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use model::{Scheduler, Spec};
use serde::{Deserialize, Serialize};
use sys::loopdev::{self, LoopDevice};
use units::{Bytes, Kib};

use crate::config::BLOCK_SIZE;
use crate::error::VdiskError;
use crate::layout::{DiskDirs, write_json};

/// Maximum size of a FUSE request with the kernel's default limit of 256 pages.
pub(crate) const LARGEST_REQUEST: Bytes = Bytes::from_mib(1);

/// Effective queue settings of a virtual disk's block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// Number of requests in the block layer's queue.
    pub requests: u64,
    /// The model's value for `requests`, before the kernel's limits.
    pub requests_wanted: u64,
    pub request_size: Bytes,
    /// The model's value for `request_size`, before the limits of FUSE and the kernel.
    pub request_size_wanted: Bytes,
    /// Active scheduler: the model's if the kernel supports it.
    pub scheduler: String,
    /// Initial read-ahead: this kernel's default for loop devices.
    pub read_ahead: Kib,
}

/// A loop device that was created for a disk. It is recorded before it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttachedLoop {
    pub(crate) number: u32,
}

/// mq-deadline's default for the longest wait of a read in ms, after which it is served next.
const READ_EXPIRY_MS: f64 = 500.0;

/// The kernel's limit for the number of requests in a scheduler.
const SORTED_REQUESTS: u64 = 2048;

/// Maximum number of attempts, each of which another process may defeat by taking the device.
const MAX_ATTEMPTS: u32 = 64;

/// Sets up a new loop device on the file of a disk.
pub(crate) fn attach(home: &DiskDirs) -> Result<LoopDevice, VdiskError> {
    let file = home.disk_file();
    let backing = File::options()
        .read(true)
        .write(true)
        .open(&file)
        .map_err(VdiskError::io("opening", &file))?;
    let failed = VdiskError::io("setting up a loop device over", &file);
    for _ in 0..MAX_ATTEMPTS {
        let number = new_device(home)?;
        match LoopDevice::set_up(number, backing.as_fd(), BLOCK_SIZE) {
            // Another process was faster: it uses the device, or it removed the device because it
            // took it for its own.
            Err(error) if is_taken(&error) => {}
            result => return result.map_err(failed),
        }
    }
    Err(failed(io::ErrorKind::ResourceBusy.into()))
}

fn is_taken(error: &io::Error) -> bool {
    let gone = [rustix::io::Errno::NXIO, rustix::io::Errno::NODEV].map(|e| Some(e.raw_os_error()));
    matches!(error.kind(), io::ErrorKind::ResourceBusy | io::ErrorKind::NotFound)
        || gone.contains(&error.raw_os_error())
}

/// Creates a device, or finds a free one if the kernel creates none or `/dev` does not show it.
fn new_device(home: &DiskDirs) -> Result<u32, VdiskError> {
    let control = Path::new("/dev/loop-control");
    if let Ok(number) = loopdev::add() {
        if loopdev::path_of(number).exists() {
            write_json(&home.loop_device(), &AttachedLoop { number })?;
            return Ok(number);
        }
        // Only in a container with its own /dev. The new device is useless there: remove it.
        let _ = loopdev::remove(number);
    }
    loopdev::find_free().map_err(VdiskError::io("asking for a loop device", control))
}

/// Applies the model's scheduler, queue depth, request size and kind of storage to the device's
/// queue, for a disk with this dilation.
pub(crate) fn set_up_queue(
    device: u32,
    model: &Spec,
    dilation: f64,
) -> Result<QueueSettings, VdiskError> {
    let host = model.host();
    let queue = SysfsQueue { dir: PathBuf::from(format!("/sys/block/loop{device}/queue")) };
    let read_ahead = queue.read_number("read_ahead_kb")?;
    // The order matters: a scheduler changes the depth, and the request size and rotation change
    // read-ahead.
    queue.try_write("scheduler", host.scheduler.name());
    if host.scheduler == Scheduler::MqDeadline {
        // The only time in the block layer that affects the order of requests, so it is dilated
        // like the disk.
        let expiry_ms = READ_EXPIRY_MS * dilation;
        queue.try_write("iosched/read_expire", &expiry_ms.round().to_string());
    }
    // A scheduler sorts the requests that the device does not accept yet. More requests allow a
    // better order.
    let requests = match host.scheduler {
        Scheduler::None => host.nr_requests as u64,
        Scheduler::MqDeadline => SORTED_REQUESTS,
    };
    if queue.read_number("nr_requests")? != requests {
        queue.try_write("nr_requests", &requests.to_string());
    }
    let hardware = Bytes::from_kib(queue.read_number("max_hw_sectors_kb")?);
    let size = host.max_request.min(LARGEST_REQUEST).min(hardware).max(BLOCK_SIZE);
    queue.write("max_sectors_kb", &size.to_kib_floor().get().to_string())?;
    queue.try_write("rotational", if model.is_rotational() { "1" } else { "0" });
    queue.write("read_ahead_kb", &read_ahead.to_string())?;
    Ok(QueueSettings {
        requests: queue.read_number("nr_requests")?,
        requests_wanted: requests,
        request_size: Bytes::from_kib(queue.read_number("max_sectors_kb")?),
        request_size_wanted: host.max_request,
        scheduler: chosen(&queue.read("scheduler")?),
        read_ahead: Kib::new(queue.read_number("read_ahead_kb")?),
    })
}

struct SysfsQueue {
    dir: PathBuf,
}

impl SysfsQueue {
    fn read(&self, attribute: &str) -> Result<String, VdiskError> {
        let path = self.dir.join(attribute);
        let text = fs::read_to_string(&path).map_err(VdiskError::io("reading", &path))?;
        Ok(text.trim().to_owned())
    }

    fn read_number(&self, attribute: &str) -> Result<u64, VdiskError> {
        let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        self.read(attribute)?
            .parse()
            .map_err(|error| VdiskError::io("reading", &self.dir.join(attribute))(bad(error)))
    }

    fn write(&self, attribute: &str, value: &str) -> Result<(), VdiskError> {
        let path = self.dir.join(attribute);
        fs::write(&path, value).map_err(VdiskError::io("writing", &path))
    }

    /// Writes a value that the kernel may limit or reject. The record holds the effective value.
    fn try_write(&self, attribute: &str, value: &str) {
        if let Err(error) = self.write(attribute, value) {
            tracing::debug!("{value} was not accepted: {error}");
        }
    }
}

/// Returns the word in brackets, as in `[none] mq-deadline kyber`.
fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(chosen, _)| chosen).to_owned()
}

/// Returns the loop devices on files in `dir`, in any state and from any creator.
pub(crate) fn over_files_in(dir: &Path) -> Vec<PathBuf> {
    let Ok(blocks) = fs::read_dir("/sys/block") else { return Vec::new() };
    blocks
        .flatten()
        .filter(|block| {
            let file = fs::read_to_string(block.path().join("loop/backing_file"));
            file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')).starts_with(dir))
        })
        .map(|block| Path::new("/dev").join(block.file_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("[none] mq-deadline kyber bfq"), "none");
        assert_eq!(chosen("none [mq-deadline]"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
