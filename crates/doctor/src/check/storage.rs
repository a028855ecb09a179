//! The properties of a storage that rules match.

use std::path::Path;

use host::{Layer, LayerKind, is_fuse};

use crate::{Diagnosis, HostSnapshot};

/// The device classes that a rule may name.
pub const CLASSES: &[&str] = &[
    "disk",
    "hdd",
    "ssd",
    "scsi",
    "nvme",
    "virtio",
    "xen",
    "mmc",
    "nbd",
    "rbd",
    "drbd",
    "pmem",
    "ram",
    "loop",
    "dm",
    "lvm",
    "crypt",
    "multipath",
    "md",
    "zram",
    "bcache",
    "btrfs",
    "nfs",
    "fuse",
    "network",
    "member",
    "vacant",
];

/// The properties of one storage, as rules match them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageProperties {
    pub name: String,
    pub classes: Vec<&'static str>,
    pub mounts: Vec<String>,
    /// The types of the file systems on it.
    pub filesystems: Vec<String>,
    /// Labels of file systems, and device mapper names.
    pub labels: Vec<String>,
    /// Names of the device that has the bdi, and of the bdi itself.
    pub devices: Vec<String>,
}

impl StorageProperties {
    pub fn new(snapshot: &HostSnapshot, diagnosis: &Diagnosis) -> Self {
        let subject = &diagnosis.subject;
        let mut facts = Self {
            name: String::new(),
            classes: Vec::new(),
            mounts: Vec::new(),
            filesystems: Vec::new(),
            labels: Vec::new(),
            devices: vec![subject.bdi.to_string()],
        };
        for layer in subject.filesystems() {
            if let LayerKind::Filesystem { fstype, points, .. } = &layer.kind {
                facts.filesystems.push(fstype.clone());
                facts.mounts.extend(points.iter().map(|point| point.display().to_string()));
            }
        }
        for stack in &subject.stacks {
            facts
                .labels
                .extend(stack.walk().into_iter().filter_map(|layer| label(snapshot, layer)));
        }
        if let Some(owner) = subject.owner() {
            facts.classes = classes(owner);
            if owner.device.is_some() && owner.fstype().is_none() {
                facts.devices.push(owner.name.clone());
                facts.devices.push(format!("/dev/{}", owner.name));
            }
            if let LayerKind::Dm { label: Some(label), .. } = &owner.kind {
                facts.labels.push(label.clone());
                facts.devices.push(format!("/dev/mapper/{label}"));
            }
        }
        if subject.member {
            facts.classes.push("member");
        }
        if subject.vacant() {
            facts.classes.push("vacant");
        }
        facts.name = facts
            .mounts
            .first()
            .cloned()
            .unwrap_or_else(|| facts.devices.last().cloned().unwrap_or_default());
        facts
    }
}

fn classes(owner: &Layer) -> Vec<&'static str> {
    match &owner.kind {
        LayerKind::Disk { transport, .. } => {
            let rotational = owner.queue.as_ref().and_then(|queue| queue.rotational);
            let turning = rotational.map(|rotational| if rotational { "hdd" } else { "ssd" });
            [Some("disk"), turning, Some(*transport)].into_iter().flatten().collect()
        }
        LayerKind::Dm { target, .. } => vec!["dm", target],
        LayerKind::Md { .. } => vec!["md"],
        LayerKind::Loop { .. } => vec!["loop"],
        LayerKind::Zram => vec!["zram"],
        LayerKind::Bcache => vec!["bcache"],
        LayerKind::Partition | LayerKind::Missing => Vec::new(),
        LayerKind::Filesystem { fstype, .. } => match fstype.as_str() {
            "btrfs" => vec!["btrfs"],
            "nfs" | "nfs4" => vec!["nfs", "network"],
            "cifs" | "smb3" | "ceph" | "9p" | "afs" | "lustre" => vec!["network"],
            fstype if is_fuse(fstype) => vec!["fuse"],
            _ => Vec::new(),
        },
    }
}

/// Returns the label of the file system on a device, from udev's database or `/dev/disk/by-label`.
fn label(snapshot: &HostSnapshot, layer: &Layer) -> Option<String> {
    let device = layer.device.filter(|_| layer.fstype().is_none())?;
    if let Ok(data) = snapshot.root.read(format!("/run/udev/data/b{device}"))
        && let Some(label) = data.lines().find_map(|line| line.strip_prefix("E:ID_FS_LABEL="))
    {
        return Some(label.to_owned());
    }
    let folder = Path::new("/dev/disk/by-label");
    let links = std::fs::read_dir(snapshot.root.path(folder)).ok()?;
    links.flatten().find_map(|link| {
        let target = std::fs::read_link(link.path()).ok()?;
        let ours = target.file_name()?.to_str()? == layer.name;
        ours.then(|| link.file_name().to_string_lossy().into_owned())
    })
}
