//! The filesystems of virtual disks.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::Bytes;

/// The filesystem on a virtual disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Filesystem {
    #[default]
    Xfs,
    /// ext4, with extents.
    Ext4,
    /// ext3: real indirect blocks, one for every 4 MiB of a file.
    Ext3,
    /// btrfs, whose own bdi has the effective read-ahead.
    Btrfs,
    /// None: a raw block device.
    Raw,
}

/// The program that makes a filesystem.
pub(crate) struct FilesystemMaker {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) smallest: Bytes,
}

impl Filesystem {
    const ALL: [Self; 5] = [Self::Xfs, Self::Ext4, Self::Ext3, Self::Btrfs, Self::Raw];

    /// Its name in mount(8) and for the key `fs`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The program that creates it; `None` if none is needed.
    pub(crate) fn maker(self) -> Option<FilesystemMaker> {
        let (program, package, mib) = match self {
            Self::Xfs => ("mkfs.xfs", "xfsprogs", 300),
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs", 16),
            Self::Ext3 => ("mkfs.ext3", "e2fsprogs", 16),
            Self::Btrfs => ("mkfs.btrfs", "btrfs-progs", 128),
            Self::Raw => return None,
        };
        Some(FilesystemMaker { program, package, smallest: Bytes::from_mib(mib) })
    }
}

impl FromStr for Filesystem {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|fs| fs.name() == text).ok_or("use xfs, ext4, ext3, btrfs or raw")
    }
}
