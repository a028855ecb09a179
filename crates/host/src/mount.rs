//! The table of mounts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{DevNo, HostError, Root};

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountInfo {
    /// The mount's number; `statx` gives the same for a path on it.
    pub id: u64,
    /// The number of the mount it is on.
    pub parent: u64,
    /// The device of files on it, as `st_dev` (but btrfs has one more for each subvolume).
    pub device: DevNo,
    /// The directory of the file system that is mounted, other than `/` for bind mounts.
    pub root: PathBuf,
    /// The rest, that a [`crate::Storage`] keeps.
    pub mount: Mount,
}

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type of file system: `ext4`, `nfs4`, `fuse.sshfs`.
    pub fstype: String,
    /// What is mounted: a device, a server's export, or any word.
    pub source: String,
    /// The options of the mount and of the file system, joined by commas.
    pub options: String,
    /// Whether the mount or its file system is read-only.
    pub read_only: bool,
}

/// Reads the text of `mountinfo`; lines that cannot be understood are left out.
pub fn parse_mountinfo(_text: &str) -> Vec<MountInfo> {
    todo!()
}

/// Reads this process's mounts.
pub(crate) fn mounts(root: &Root) -> Result<Vec<MountInfo>, HostError> {
    Ok(parse_mountinfo(&root.read("/proc/self/mountinfo")?))
}
