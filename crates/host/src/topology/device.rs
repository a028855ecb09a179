//! Determines the kind of a block device from sysfs.

use std::path::PathBuf;

use units::Bytes;

use super::LayerKind;
use crate::Root;
use crate::block::model;

/// Returns the kind of the device with sysfs directory `dir` and kernel name `name`.
pub(super) fn kind(root: &Root, dir: &str, name: &str) -> LayerKind {
    let text = |file: &str| root.read(format!("{dir}/{file}")).ok().filter(|text| !text.is_empty());
    if name.starts_with("loop") {
        return LayerKind::Loop { file: text("loop/backing_file").map(PathBuf::from) };
    }
    if name.starts_with("dm-") {
        let uuid = text("dm/uuid");
        let target = dm_target(uuid.as_deref().unwrap_or(""));
        return LayerKind::Dm { target, label: text("dm/name"), uuid };
    }
    if let Some(level) = name.starts_with("md").then(|| text("md/level")).flatten() {
        let number = |file: &str| root.number_if_present(format!("{dir}/md/{file}"));
        return LayerKind::Md {
            level,
            raid_disks: number("raid_disks"),
            chunk: number("chunk_size").filter(|chunk| *chunk > 0).map(Bytes::new),
            degraded: number("degraded").is_some_and(|missing| missing > 0),
        };
    }
    if name.starts_with("zram") {
        return LayerKind::Zram;
    }
    if name.starts_with("bcache") {
        return LayerKind::Bcache;
    }
    LayerKind::Disk { transport: transport(name), model: model(root, dir) }
}

/// Returns the creator of a device mapper device, from the prefix of its uuid.
fn dm_target(uuid: &str) -> &'static str {
    let prefix = uuid.split('-').next().unwrap_or("");
    match prefix {
        "LVM" => "lvm",
        "CRYPT" => "crypt",
        "mpath" => "multipath",
        "DMRAID" => "dmraid",
        prefix if prefix.starts_with("part") => "partition",
        _ => "other",
    }
}

fn transport(name: &str) -> &'static str {
    const KNOWN: &[(&str, &str)] = &[
        ("sd", "scsi"),
        ("sr", "scsi"),
        ("nvme", "nvme"),
        ("vd", "virtio"),
        ("xvd", "xen"),
        ("mmcblk", "mmc"),
        ("nbd", "nbd"),
        ("rbd", "rbd"),
        ("drbd", "drbd"),
        ("pmem", "pmem"),
        ("ram", "ram"),
    ];
    let starts = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    KNOWN.iter().find(|(prefix, _)| starts(prefix)).map_or("other", |(_, transport)| transport)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_uuids_tell_the_kind() {
        for (name, word) in [
            ("sda", "scsi"),
            ("nvme0n1", "nvme"),
            ("vdb", "virtio"),
            ("rbd0", "rbd"),
            ("sd", "other"),
            ("weird", "other"),
        ] {
            assert_eq!(transport(name), word, "{name}");
        }
        assert_eq!(dm_target("LVM-abc"), "lvm");
        assert_eq!(dm_target("CRYPT-LUKS2-x"), "crypt");
        assert_eq!(dm_target("part1-mpath-3600"), "partition");
        assert_eq!(dm_target("mpath-3600"), "multipath");
        assert_eq!(dm_target(""), "other");
    }
}
