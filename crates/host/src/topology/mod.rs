//! The stack below a file system, as a tree: file system, partition, device mapper, md, loop device
//! and its file, the members of btrfs, down to the disk. Only one layer has the effective
//! read-ahead. The other layers have values as well, and users often set these by mistake.

mod build;
mod device;
mod queue;
mod survey;

use std::path::PathBuf;

use serde::Serialize;
use units::{Bytes, Kib};

use crate::{BdiId, DevNo};

pub use queue::QueueLimits;
pub use survey::{Subject, Survey};

/// One layer of a stack, with all layers below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layer {
    pub kind: LayerKind,
    /// The kernel's name of a device (`sda1`), or the source of a file system.
    pub name: String,
    /// Number of the block device, or device number of the file system's files.
    pub device: Option<DevNo>,
    /// The layer's own bdi; `None` for a partition, or a file system that uses its device's bdi.
    pub bdi: Option<BdiId>,
    pub read_ahead: Option<Kib>,
    /// Queue settings; `None` except for whole block devices.
    pub queue: Option<QueueLimits>,
    pub size: Option<Bytes>,
    pub below: Vec<Layer>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum LayerKind {
    Filesystem {
        /// Type, as in the mount table.
        fstype: String,
        /// Source, as in the mount table.
        source: String,
        points: Vec<PathBuf>,
        options: String,
    },
    Partition,
    /// A disk: the lowest layer.
    Disk {
        /// Transport: `scsi`, `nvme`, `virtio`, `xen`, `mmc`, `nbd`, `rbd`, …, or `other`.
        transport: &'static str,
        model: Option<String>,
    },
    Dm {
        /// Creator: `lvm`, `crypt`, `multipath`, `dmraid`, `partition` or `other`.
        target: &'static str,
        label: Option<String>,
        uuid: Option<String>,
    },
    Md {
        level: String,
        /// Number of devices of the complete array.
        raid_disks: Option<u64>,
        #[serde(rename = "chunk_bytes")]
        chunk: Option<Bytes>,
        degraded: bool,
    },
    Loop {
        /// The backing file; `None` if no file is attached.
        file: Option<PathBuf>,
    },
    Zram,
    /// A cache on a faster device in front of a slower disk.
    Bcache,
    /// A layer that should exist but is not visible.
    #[default]
    Missing,
}

impl Layer {
    pub fn walk(&self) -> Vec<&Layer> {
        let mut all = vec![self];
        for below in &self.below {
            all.extend(below.walk());
        }
        all
    }

    pub fn with_bdi(&self, bdi: &BdiId) -> Option<&Layer> {
        self.walk().into_iter().find(|layer| layer.bdi.as_ref() == Some(bdi))
    }

    pub fn fstype(&self) -> Option<&str> {
        match &self.kind {
            LayerKind::Filesystem { fstype, .. } => Some(fstype),
            _ => None,
        }
    }

    /// Returns whether the layer is a loop device without a file, or a device without a medium.
    pub fn vacant(&self) -> bool {
        match &self.kind {
            LayerKind::Loop { file } => file.is_none(),
            LayerKind::Filesystem { .. } | LayerKind::Missing => false,
            _ => self.size.is_some_and(|size| size.get() == 0),
        }
    }
}
