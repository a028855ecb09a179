//! Builds file paths from the name components that the kernel reports.

use std::collections::BTreeMap;
use std::path::PathBuf;

use host::{DevNo, Root, parse_mountinfo};
use observe::FileName;

/// Mount points of file systems, by device.
#[derive(Debug, Default)]
pub(crate) struct MountPoints {
    points: BTreeMap<DevNo, PathBuf>,
}

impl MountPoints {
    pub(crate) fn read(root: &Root) -> Self {
        let mut points = BTreeMap::new();
        for one in parse_mountinfo(&root.read("/proc/self/mountinfo").unwrap_or_default()) {
            if one.root == std::path::Path::new("/") {
                points.entry(one.device).or_insert(one.mount.point);
            }
        }
        Self { points }
    }

    /// Returns the path of a file, or its inode and device if the name is unknown.
    pub(crate) fn path(&self, root: &Root, name: &FileName) -> String {
        if name.is_block_device {
            let device = name.inode.device;
            return device_name(root, device).map_or(device.to_string(), |it| format!("/dev/{it}"));
        }
        if name.parts.is_empty() {
            return format!("inode {} on {}", name.inode.inode, name.inode.device);
        }
        let below = name.parts.join("/");
        if name.is_cut {
            return format!("…/{below}");
        }
        let point = self.points.get(&name.inode.device).cloned().unwrap_or_default();
        point.join(below).display().to_string()
    }
}

/// Returns the kernel's name of a block device.
pub(crate) fn device_name(root: &Root, device: DevNo) -> Option<String> {
    let link = root.path(format!("/sys/dev/block/{device}")).canonicalize().ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}
