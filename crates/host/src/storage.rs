//! The storage behind a path.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::{BlockStat, DevNo, HostError, KernelRelease, Mount, Root};

/// The name of a bdi under `/sys/class/bdi`: `8:0`, `btrfs-1`, `0:46`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BdiId(String);

impl BdiId {
    /// The bdi of this name; `None` if it could not be one (a name is one part of a path).
    pub fn new(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.".contains(&byte);
        let sound = !name.is_empty() && name.len() <= 64 && !name.starts_with('.');
        (sound && name.bytes().all(fits)).then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its directory in sysfs.
    pub fn dir(&self) -> PathBuf {
        PathBuf::from("/sys/class/bdi").join(&self.0)
    }
}

impl fmt::Display for BdiId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for BdiId {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::new(&name).ok_or_else(|| format!("{name:?} is no name of a bdi"))
    }
}

impl From<BdiId> for String {
    fn from(bdi: BdiId) -> String {
        bdi.0
    }
}

/// What the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// A directory on a mounted file system.
    Directory,
    /// A file on a mounted file system.
    File,
    /// A block device, or a partition of one.
    BlockDevice,
}

/// Whether a file system keeps its cache in folios larger than a page, on which windows that are
/// powers of two ramp badly (DESIGN: what the kernel really does, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LargeFolios {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It may, by how the kernel was built.
    Unknown,
}

/// The storage behind a path: its mount, the bdi whose read-ahead counts for it and the devices
/// that count its I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The path, absolute and without links.
    pub path: PathBuf,
    /// What is there.
    pub kind: StorageKind,
    /// The mount that the path is on; `None` for a block device.
    pub mount: Option<Mount>,
    /// The bdi that new open files take their window from.
    pub bdi: BdiId,
    /// The devices whose counters together are this storage's I/O: one, several under btrfs, none
    /// under NFS and FUSE. A partition stands for itself, though its bdi is the disk's.
    pub devices: Vec<DevNo>,
    /// The physical (or at least undermost) devices below those: the same, or the members of
    /// members under dm and md.
    pub leaves: Vec<DevNo>,
}

/// Room on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// All of it.
    pub total: Bytes,
    /// What this user may still fill.
    pub available: Bytes,
}

impl Storage {
    /// Whether nothing can be written there: a read-only mount or file system.
    pub fn read_only(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.read_only)
    }

    /// Whether the file system uses large folios on a kernel of this release; `None` for a block
    /// device.
    pub fn large_folios(&self, _kernel: KernelRelease) -> Option<LargeFolios> {
        todo!()
    }

    /// Room on its file system, by `statvfs(3)`.
    pub fn space(&self) -> Result<Space, HostError> {
        todo!()
    }

    /// The counters of all its devices together; `None` where there are none.
    pub fn stat(&self, _root: &Root) -> Result<Option<BlockStat>, HostError> {
        todo!()
    }
}
