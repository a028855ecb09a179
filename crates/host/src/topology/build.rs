//! Builds the tree of layers below a file system or device.

use std::path::Path;

use units::{Bytes, Kib, SECTOR_BYTES};

use super::device;
use super::{Layer, LayerKind, QueueLimits};
use crate::block::{block_dir, device_name, disk_of, members};
use crate::mount::{MountInfo, mount_above};
use crate::{BdiId, DevNo, Root};

/// Maximum depth: no real stack is deeper, but links in a captured tree may form a cycle.
const MAX_STACK_DEPTH: u32 = 12;

pub(super) struct Builder<'a> {
    pub root: &'a Root,
    pub mounts: &'a [MountInfo],
}

impl Builder<'_> {
    pub fn read_ahead(&self, bdi: &BdiId) -> Option<Kib> {
        self.root.number_if_present(bdi.dir().join("read_ahead_kb")).map(Kib::new)
    }

    /// Returns the layer of a block device with all layers below it.
    pub fn device(&self, device: DevNo, depth: u32) -> Layer {
        let name = device_name(self.root, device);
        let Ok(dir) = block_dir(self.root, device) else {
            return Layer { name, ..Layer::default() };
        };
        if depth > MAX_STACK_DEPTH {
            return Layer { name, ..Layer::default() };
        }
        let sectors = self.root.number_if_present(format!("{dir}/size"));
        let size = sectors.and_then(|count| count.checked_mul(SECTOR_BYTES)).map(Bytes::new);
        if let Ok(disk) = disk_of(self.root, device)
            && disk != device
        {
            return Layer {
                kind: LayerKind::Partition,
                name,
                device: Some(device),
                size,
                below: vec![self.device(disk, depth + 1)],
                ..Layer::default()
            };
        }
        let kind = device::kind(self.root, &dir, &name);
        let bdi = self.bdi_of(&dir, device);
        let below = match &kind {
            LayerKind::Loop { file: Some(file) } => self.file_system_of(file, depth),
            _ => members(self.root, device)
                .into_iter()
                .map(|member| self.device(member, depth + 1))
                .collect(),
        };
        Layer {
            kind,
            name,
            device: Some(device),
            read_ahead: bdi.as_ref().and_then(|bdi| self.read_ahead(bdi)),
            bdi,
            queue: Some(QueueLimits::read(self.root, &dir)),
            size,
            below,
        }
    }

    fn bdi_of(&self, dir: &str, device: DevNo) -> Option<BdiId> {
        let name = self.root.link_name(format!("{dir}/bdi")).unwrap_or_else(|| device.to_string());
        BdiId::new(&name).filter(|bdi| self.root.exists(bdi.dir()))
    }

    /// Returns the file system that contains a loop device's file. One layer suffices: its own
    /// stack is shown separately unless only the loop device uses it.
    fn file_system_of(&self, file: &Path, depth: u32) -> Vec<Layer> {
        // The kernel appends this suffix to the name of a removed file.
        let text = file.to_string_lossy();
        let path = text.strip_suffix(" (deleted)").map_or(file, Path::new);
        let Some(found) = mount_above(self.mounts, path) else { return Vec::new() };
        let mut layer = self.file_system(found, vec![found.mount.point.clone()]);
        if found.device.major != 0 {
            layer.below = vec![self.device(found.device, depth + 1)];
        }
        vec![layer]
    }

    /// Returns a file system's own layer, without the layers below.
    pub fn file_system(&self, info: &MountInfo, points: Vec<std::path::PathBuf>) -> Layer {
        let mount = &info.mount;
        Layer {
            kind: LayerKind::Filesystem {
                fstype: mount.fstype.clone(),
                source: mount.source.clone(),
                points,
                options: mount.options.clone(),
            },
            name: mount.source.clone(),
            device: Some(info.device),
            ..Layer::default()
        }
    }
}
