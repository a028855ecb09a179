//! File systems of virtual disks.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use units::Bytes;

/// The file system on a virtual disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::Display, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Filesystem {
    #[default]
    Xfs,
    /// ext4, with extents.
    Ext4,
    /// ext3, with real indirect blocks, one for every 4 MiB of a file.
    Ext3,
    /// btrfs, whose own bdi determines read-ahead.
    Btrfs,
    /// No file system: a raw block device.
    Raw,
}

/// The program that creates a file system, its package, and the minimum size of the disk.
pub(crate) struct FilesystemMaker {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) smallest: Bytes,
}

impl Filesystem {
    /// Returns the name for mount(8) and the key `fs`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the program that creates the file system; `None` for a raw disk.
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
        let mut all = Self::VARIANTS.iter().copied();
        all.find(|fs| fs.name() == text).ok_or("use xfs, ext4, ext3, btrfs or raw")
    }
}
