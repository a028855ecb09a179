//! Block devices: the facts that a record stores.

use serde::{Deserialize, Serialize};
use units::{Bytes, SECTOR_BYTES};

use crate::{DevNo, HostError, Root};

/// The recorded facts of a block device. A field is `None` if the kernel does not report it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    pub device: DevNo,
    /// The kernel's name: `sda1`, `dm-0`.
    pub name: String,
    /// The disk that a partition belongs to; `None` if the device is not a partition.
    pub disk: Option<DevNo>,
    /// Device type: `partition`, `dm`, `md`, `loop`, `zram` or `disk`.
    pub kind: String,
    pub size: Option<Bytes>,
    /// Vendor and model, as the device reports them.
    pub model: Option<String>,
    /// Name in device mapper.
    pub label: Option<String>,
    /// Whether the kernel treats the device as a rotating disk.
    pub rotational: Option<bool>,
    /// Whether the device is read-only.
    pub read_only: Option<bool>,
    pub scheduler: Option<String>,
    pub nr_requests: Option<u64>,
    pub max_sectors: Option<Bytes>,
    /// Optimal request size; `None` if the device reports none.
    pub optimal_io_size: Option<Bytes>,
    pub logical_block_size: Option<Bytes>,
    pub read_ahead: Option<Bytes>,
    /// Sequence number of the disk since boot, which reveals reused numbers (since Linux 5.15).
    pub diskseq: Option<u64>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The devices directly below a dm or md device; empty for others.
    pub members: Vec<DevNo>,
}

/// Reads the facts of one device.
pub fn device_facts(root: &Root, device: DevNo) -> Result<DeviceFacts, HostError> {
    let dir = block_dir(root, device)?;
    let disk = disk_of(root, device)?;
    let disk_dir = block_dir(root, disk)?;
    // Only the disk has a queue; its partitions share it.
    let queue = |name: &str| format!("{disk_dir}/queue/{name}");
    let flag = |path: String| root.number_if_present(path).map(|number| number != 0);
    let amount = |path: String, unit: u64| {
        root.number_if_present(path).and_then(|n| n.checked_mul(unit)).map(Bytes::new)
    };
    let text = |path: String| root.read(path).ok().filter(|text| !text.is_empty());
    Ok(DeviceFacts {
        device,
        name: device_name(root, device),
        disk: (disk != device).then_some(disk),
        kind: kind(root, &dir).to_owned(),
        size: amount(format!("{dir}/size"), SECTOR_BYTES),
        model: model(root, &disk_dir),
        label: text(format!("{dir}/dm/name")),
        rotational: flag(queue("rotational")),
        read_only: flag(format!("{dir}/ro")),
        scheduler: text(queue("scheduler")).map(|text| active_scheduler(&text)),
        nr_requests: root.number_if_present(queue("nr_requests")),
        max_sectors: amount(queue("max_sectors_kb"), 1024),
        optimal_io_size: amount(queue("optimal_io_size"), 1),
        logical_block_size: amount(queue("logical_block_size"), 1),
        read_ahead: amount(queue("read_ahead_kb"), 1024),
        diskseq: root.number_if_present(format!("{disk_dir}/diskseq")),
        backing_file: text(format!("{dir}/loop/backing_file")),
        members: members(root, device),
    })
}

/// Returns whether the device has disappeared since it was resolved.
pub fn device_gone(root: &Root, device: DevNo) -> bool {
    block_dir(root, device).is_err()
}

pub(crate) fn block_dir(root: &Root, device: DevNo) -> Result<String, HostError> {
    let dir = format!("/sys/dev/block/{device}");
    if root.exists(&dir) {
        return Ok(dir);
    }
    root.ensure_mounted().and(Err(HostError::DeviceGone { device }))
}

/// Returns the disk of a partition, or `device` itself if it is not a partition.
pub(crate) fn disk_of(root: &Root, device: DevNo) -> Result<DevNo, HostError> {
    let dir = block_dir(root, device)?;
    if !root.exists(format!("{dir}/partition")) {
        return Ok(device);
    }
    // The directory is a link to …/sda/sda1, so this is the parent in the device tree.
    number_in(root, &format!("{dir}/../dev")).ok_or(HostError::DeviceGone { device })
}

/// Reads the number in a `dev` file.
pub(crate) fn number_in(root: &Root, path: &str) -> Option<DevNo> {
    root.read(path).ok()?.parse().ok()
}

/// Returns the kernel's name for a device, or its number if the name is unknown.
pub(crate) fn device_name(root: &Root, device: DevNo) -> String {
    root.link_name(format!("/sys/dev/block/{device}")).unwrap_or_else(|| device.to_string())
}

/// Returns the devices directly below a dm or md device.
pub(crate) fn members(root: &Root, device: DevNo) -> Vec<DevNo> {
    let dir = format!("/sys/dev/block/{device}/slaves");
    let names = root.names(&dir);
    names.iter().filter_map(|name| number_in(root, &format!("{dir}/{name}/dev"))).collect()
}

/// Returns the lowest devices below `device`, each once, with disks in place of their partitions.
pub(crate) fn leaves(root: &Root, device: DevNo) -> Vec<DevNo> {
    let mut found = Vec::new();
    gather_leaves(root, device, 0, &mut found);
    found.sort();
    found.dedup();
    found
}

/// Real stacks are not deeper, but links in a captured tree may form a loop.
const DEEPEST_STACK: u32 = 16;

fn gather_leaves(root: &Root, device: DevNo, depth: u32, found: &mut Vec<DevNo>) {
    let disk = disk_of(root, device).unwrap_or(device);
    let below = members(root, disk);
    if below.is_empty() || depth == DEEPEST_STACK {
        found.push(disk);
        return;
    }
    for member in below {
        gather_leaves(root, member, depth + 1, found);
    }
}

fn kind(root: &Root, dir: &str) -> &'static str {
    let signs = [("partition", "partition"), ("dm", "dm"), ("md", "md"), ("loop", "loop")];
    let sign = signs.iter().find(|(file, _)| root.exists(format!("{dir}/{file}")));
    let name = root.link_name(dir).unwrap_or_default();
    match sign {
        Some((_, kind)) => kind,
        None if name.starts_with("loop") => "loop",
        None if name.starts_with("zram") => "zram",
        None => "disk",
    }
}

pub(crate) fn model(root: &Root, disk_dir: &str) -> Option<String> {
    let part = |name: &str| root.read(format!("{disk_dir}/device/{name}")).ok();
    let model = part("model").filter(|model| !model.is_empty())?;
    // SCSI reports "ATA" as the vendor of ATA disks; virtio reports a number. Neither is a vendor.
    let vendor = part("vendor")
        .filter(|vendor| !vendor.is_empty() && vendor != "ATA" && !vendor.starts_with("0x"));
    Some(vendor.map_or_else(|| model.clone(), |vendor| format!("{vendor} {model}")))
}

/// Returns `mq-deadline` from `none [mq-deadline] kyber`.
pub(crate) fn active_scheduler(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| text.trim().to_owned(), |(chosen, _)| chosen.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_scheduler_is_the_one_in_brackets() {
        assert_eq!(active_scheduler("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(active_scheduler("none"), "none");
        assert_eq!(active_scheduler("["), "[");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC*") {
            active_scheduler(&text);
        }
    }
}
