//! The first look at a path, the only one that needs system calls.

use std::path::{Path, PathBuf};

use crate::{DevNo, HostError, Root};

/// What kind of thing a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A block device of this number.
    BlockDevice(DevNo),
}

/// What system calls tell of a path; the rest is in `/proc` and `/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The path, absolute and without links.
    pub path: PathBuf,
    /// What is there.
    pub kind: ProbeKind,
    /// The device of its file system (`st_dev`).
    pub device: DevNo,
    /// The number of its mount, from Linux 5.8 on.
    pub mount_id: Option<u64>,
}

impl Probe {
    /// Looks at `path`.
    pub fn of(_root: &Root, _path: &Path) -> Result<Self, HostError> {
        todo!()
    }
}
