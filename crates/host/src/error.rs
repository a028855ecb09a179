//! Errors that occur while reading the machine's state.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::ErrorKind;

use crate::DevNo;

/// The reason why a fact about the machine is unavailable. Each error names the path or device and,
/// if possible, a remedy.
#[derive(Debug, Error)]
pub enum HostError {
    /// The path does not exist.
    #[error("{path}: no such file, directory or device{hint}", path = path.display())]
    NotFound {
        path: PathBuf,
        /// A suggestion of the intended path, or empty.
        hint: String,
    },
    /// The path cannot be resolved: a loop of links, a name that is too long, a file instead of a
    /// directory.
    #[error("cannot resolve {path}", path = path.display())]
    Unresolvable { path: PathBuf, source: io::Error },
    /// A file's content or metadata cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A kernel file has unexpected content.
    #[error("{path}: {problem}", path = path.display())]
    Malformed { path: PathBuf, problem: String },
    /// The path is a socket, pipe or character device.
    #[error("{path} is a {what}: name a directory, file or block device", path = path.display())]
    NotStorage { path: PathBuf, what: &'static str },
    /// The file system has no device, and therefore no read-ahead.
    #[error("{path} is on {fstype}: {why}", path = path.display())]
    NoBackingDevice {
        path: PathBuf,
        fstype: String,
        /// Why no setting exists, and what to name instead.
        why: String,
    },
    /// A kernel file system such as proc is not mounted, as in an unpacked chroot.
    #[error("{path} is not mounted here, as in a bare chroot: mount -t {fstype} {fstype} {path}")]
    NotMounted { path: &'static str, fstype: &'static str },
    /// The block device with this number no longer exists.
    #[error("block device {device} is gone")]
    DeviceGone { device: DevNo },
    /// The bdi of the storage cannot be determined.
    #[error("{path}: cannot determine its backing device info (bdi): {why}",
        path = path.display())]
    NoBdi { path: PathBuf, why: String },
}

impl units::Classified for HostError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } | Self::NotStorage { .. } | Self::Unresolvable { .. } => {
                ErrorKind::Usage
            }
            Self::NoBackingDevice { .. } | Self::NoBdi { .. } | Self::NotMounted { .. } => {
                ErrorKind::Unsupported
            }
            Self::Read { source, .. } => ErrorKind::from_io(source),
            Self::Malformed { .. } | Self::DeviceGone { .. } => ErrorKind::Failed,
        }
    }
}
