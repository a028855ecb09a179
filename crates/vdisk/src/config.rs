//! What a virtual disk is to be: model, filesystem, size, dilation, seed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use model::Spec;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::error::VdiskError;

/// The filesystem on a virtual disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// XFS.
    #[default]
    Xfs,
    /// ext4, with extents.
    Ext4,
    /// ext3: real indirect blocks, one for every 4 MiB of a file.
    Ext3,
    /// btrfs, whose own bdi has the read-ahead setting that counts.
    Btrfs,
    /// None: the bare block device.
    Raw,
}

/// The program that makes a filesystem.
pub(crate) struct Maker {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) smallest: Bytes,
}

impl Filesystem {
    const ALL: [Self; 5] = [Self::Xfs, Self::Ext4, Self::Ext3, Self::Btrfs, Self::Raw];

    /// Its name, as mount(8) and the key `fs` have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
            Self::Ext3 => "ext3",
            Self::Btrfs => "btrfs",
            Self::Raw => "raw",
        }
    }

    /// What makes one, or `None` if nothing has to.
    pub(crate) fn maker(self) -> Option<Maker> {
        let (program, package, mib) = match self {
            Self::Xfs => ("mkfs.xfs", "xfsprogs", 300),
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs", 16),
            Self::Ext3 => ("mkfs.ext3", "e2fsprogs", 16),
            Self::Btrfs => ("mkfs.btrfs", "btrfs-progs", 128),
            Self::Raw => return None,
        };
        Some(Maker { program, package, smallest: Bytes::from_mib(mib) })
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Filesystem {
    type Err = VdiskError;

    fn from_str(text: &str) -> Result<Self, VdiskError> {
        Self::ALL.into_iter().find(|fs| fs.name() == text).ok_or_else(|| VdiskError::BadValue {
            key: "fs",
            value: text.to_owned(),
            reason: "use xfs, ext4, ext3, btrfs or raw".to_owned(),
        })
    }
}

/// How many times slower than its model a disk runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dilation {
    /// As much as this machine needs to keep up with the model's peak.
    #[default]
    Auto,
    /// This factor, 1 for real time.
    Fixed(f64),
}

/// What a virtual disk is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model of the device.
    pub model: Spec,
    /// The filesystem on it.
    pub filesystem: Filesystem,
    /// Its size: by default the model's capacity, but no more than 64 GiB.
    pub size: Bytes,
    /// How many times slower than the model.
    pub dilation: Dilation,
    /// The seed of the model's jitter.
    pub seed: u64,
    /// Its name; by default the model's with a number.
    pub name: Option<String>,
    /// The words that name the model, for [`Display`](fmt::Display).
    words: String,
}

impl Config {
    /// Reads `MODEL[,key=value…]`. The keys `fs`, `size`, `dilation` and `seed` are the disk's
    /// own; the rest override the model's. MODEL is a preset or the path of a TOML file.
    pub fn parse(words: &str) -> Result<Self, VdiskError> {
        todo!()
    }
}
