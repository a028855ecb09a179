//! What may go wrong while looking at the machine.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::ErrorKind;

use crate::DevNo;

/// Why a fact about the machine could not be had. Each names the path or device and, where there
/// is something to do, says what.
#[derive(Debug, Error)]
pub enum HostError {
    /// The path that was asked about is not there.
    #[error("{path}: no such file, directory or device{hint}", path = path.display())]
    NotFound {
        path: PathBuf,
        /// What may have been meant, or empty.
        hint: String,
    },
    /// The path leads nowhere: a loop of links, a name that is too long, a file in the place of a
    /// directory.
    #[error("cannot resolve {path}", path = path.display())]
    Unresolvable { path: PathBuf, source: io::Error },
    /// Reading a file or looking at it did not work.
    #[error("cannot read {path}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A kernel file holds something else than it should.
    #[error("{path}: {problem}", path = path.display())]
    Malformed { path: PathBuf, problem: String },
    /// The path is a socket, pipe or character device.
    #[error("{path} is a {what}: name a directory, file or block device", path = path.display())]
    NotStorage { path: PathBuf, what: &'static str },
    /// A file system without a device behind it, so without read-ahead.
    #[error("{path} is on {fstype}: {why}", path = path.display())]
    NoBackingDevice {
        path: PathBuf,
        fstype: String,
        /// Why there is nothing to set, and what to name instead.
        why: String,
    },
    /// The device number has no block device any more.
    #[error("block device {device} is gone")]
    DeviceGone { device: DevNo },
    /// There is storage, but which bdi belongs to it cannot be told.
    #[error("{path}: cannot tell which backing device info (bdi) counts: {why}",
        path = path.display())]
    NoBdi { path: PathBuf, why: String },
}

impl units::Classified for HostError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } | Self::NotStorage { .. } | Self::Unresolvable { .. } => {
                ErrorKind::Usage
            }
            Self::NoBackingDevice { .. } | Self::NoBdi { .. } => ErrorKind::Unsupported,
            Self::Read { source, .. } => ErrorKind::from_io(source),
            Self::Malformed { .. } | Self::DeviceGone { .. } => ErrorKind::Failed,
        }
    }
}
