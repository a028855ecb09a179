//! Identifies the device of a bdi.
//!
//! The kernel reuses device numbers: `7:0` is the file last attached to the first loop device,
//! `0:46` any NFS mount. A value must be restored only on the device that it was read from.

use std::collections::BTreeMap;

use host::{DevNo, DeviceFacts, Root, device_facts, mount_source};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::TunableScope;

/// Distinguishes a device from another device that later has the same number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The block devices of the scope that exist.
    pub devices: Vec<DeviceIdentity>,
    /// The mount source of a bdi without block devices.
    pub source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    pub device: DevNo,
    /// Sequence number since boot (Linux 5.15); a loop device gets a new one with each file.
    pub diskseq: Option<u64>,
    pub size: Option<Bytes>,
    pub model: Option<String>,
    /// The backing file of a loop device.
    pub backing_file: Option<String>,
    /// Permanent identifiers of the disk by their name in udev or sysfs: serial number, WWN, UUID.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, String>,
}

/// The result of comparing a device with the device of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityMatch {
    Same,
    Other,
    /// The device matches, but so does another device of this machine.
    Ambiguous,
}

impl From<DeviceFacts> for DeviceIdentity {
    fn from(facts: DeviceFacts) -> Self {
        let DeviceFacts { device, diskseq, size, model, backing_file, .. } = facts;
        Self { device, diskseq, size, model, backing_file, marks: BTreeMap::new() }
    }
}

impl Identity {
    /// Reads the current identity of a scope's devices.
    pub fn read(root: &Root, site: &TunableScope) -> Self {
        let facts = |device: &DevNo| device_facts(root, *device).ok();
        let mut numbers: Vec<&DevNo> = site.devices.iter().chain(&site.leaves).collect();
        numbers.sort();
        numbers.dedup();
        let of = |facts: DeviceFacts| {
            let disk = facts.disk.unwrap_or(facts.device);
            let marks = crate::marks::lasting_marks(root, disk).into_iter();
            let marks = marks.map(|(name, value)| (name.to_owned(), value)).collect();
            DeviceIdentity { marks, ..DeviceIdentity::from(facts) }
        };
        let devices = numbers.into_iter().filter_map(facts).map(of).collect();
        let number = site.bdi.as_str().parse().ok().filter(|number: &DevNo| number.major == 0);
        Self { devices, source: number.and_then(|number| mount_source(root, number)) }
    }

    /// Compares this identity with the current one. After a reboot, counters restart and numbers
    /// may belong to other disks.
    pub fn compare(&self, root: &Root, site: &TunableScope, same_boot: bool) -> IdentityMatch {
        let now = Self::read(root, site);
        if !self.is_same(&now, same_boot) {
            return IdentityMatch::Other;
        }
        let known = |then: &DeviceIdentity| {
            let now = now.devices.iter().find(|now| now.device == then.device);
            now.is_none_or(|now| then.is_told_apart(now, same_boot) || then.is_alone(root))
        };
        if self.devices.iter().all(known) { IdentityMatch::Same } else { IdentityMatch::Ambiguous }
    }

    /// Returns whether `now` may be the same device. After a reboot, counters restart.
    pub fn is_same(&self, now: &Self, same_boot: bool) -> bool {
        if let (Some(then), Some(now)) = (&self.source, &now.source)
            && then != now
        {
            return false;
        }
        self.devices.iter().all(|then| {
            let now = now.devices.iter().find(|now| now.device == then.device);
            now.is_none_or(|now| then.is_same(now, same_boot))
        })
    }
}

impl DeviceIdentity {
    fn is_same(&self, now: &Self, same_boot: bool) -> bool {
        // A loop device without a file is unused, and would keep a changed value for the next file
        // that is attached (seen on 6.18: 64 MiB survive detach and attach).
        if self.backing_file.is_some() && now.backing_file.is_none() {
            return true;
        }
        if same_boot && let (Some(then), Some(now)) = (self.diskseq, now.diskseq) {
            return then == now;
        }
        if let Some(same) = self.has_marks_of(now) {
            return same;
        }
        (&self.size, &self.model, &self.backing_file) == (&now.size, &now.model, &now.backing_file)
    }

    /// Compares the strongest identifier that both have; `None` if they have none in common.
    fn has_marks_of(&self, now: &Self) -> Option<bool> {
        let both = |name: &&&str| now.marks.contains_key(**name) && self.marks.contains_key(**name);
        let name = crate::marks::MARKS.iter().find(both)?;
        Some(self.marks.get(*name) == now.marks.get(*name))
    }

    /// Returns whether an identifier was compared, and not only size and model.
    fn is_told_apart(&self, now: &Self, same_boot: bool) -> bool {
        (same_boot && self.diskseq.is_some() && now.diskseq.is_some())
            || self.has_marks_of(now).is_some()
            || self.backing_file.is_some()
    }

    /// Returns whether no other device of this machine has the same size and model.
    fn is_alone(&self, root: &Root) -> bool {
        let numbers = root.names("/sys/dev/block").into_iter();
        let others = numbers.filter_map(|name| name.parse().ok()).filter(|n| *n != self.device);
        let alike = |number: DevNo| {
            device_facts(root, number).is_ok_and(|facts| {
                facts.backing_file.is_none()
                    && facts.size.is_some_and(|size| size.get() > 0)
                    && (&facts.size, &facts.model) == (&self.size, &self.model)
            })
        };
        !others.into_iter().any(alike)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loop_device(diskseq: u64, file: Option<&str>) -> Identity {
        let device = DeviceIdentity {
            device: DevNo { major: 7, minor: 0 },
            diskseq: Some(diskseq),
            size: Some(Bytes::from_mib(if file.is_some() { 64 } else { 0 })),
            model: None,
            backing_file: file.map(str::to_owned),
            marks: BTreeMap::new(),
        };
        Identity { devices: vec![device], source: None }
    }

    #[test]
    fn a_number_used_again_is_another_device() {
        let then = loop_device(5, Some("/a"));
        assert!(then.is_same(&then, true));
        assert!(!then.is_same(&loop_device(6, Some("/a")), true), "attached anew");
        assert!(then.is_same(&loop_device(6, None), true), "left vacant");
        assert!(then.is_same(&loop_device(9, Some("/a")), false), "the same file after a reboot");
        assert!(!then.is_same(&loop_device(5, Some("/b")), false));
        assert!(then.is_same(&Identity::default(), true), "what is gone, its file tells");
    }

    #[test]
    fn without_counters_size_and_file_tell() {
        let mut then = loop_device(5, Some("/a"));
        then.devices[0].diskseq = None;
        assert!(then.is_same(&loop_device(6, Some("/a")), true));
        assert!(!then.is_same(&loop_device(6, Some("/b")), true));
    }

    #[test]
    fn another_mount_on_the_same_number_is_told_where_mounts_are_seen() {
        let mount =
            |source: &str| Identity { source: Some(source.to_owned()), ..Identity::default() };
        assert!(!mount("a:/x").is_same(&mount("b:/x"), true));
        assert!(mount("a:/x").is_same(&Identity::default(), true));
    }

    #[test]
    fn a_mark_that_both_have_decides_after_a_boot() {
        let disk = |marks: &[(&str, &str)]| DeviceIdentity {
            device: DevNo { major: 8, minor: 0 },
            diskseq: Some(1),
            size: Some(Bytes::from_gib(1)),
            model: Some("DISK".to_owned()),
            backing_file: None,
            marks: marks.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        };
        let then = disk(&[("ID_WWN", "w1"), ("ID_FS_UUID", "u1")]);
        let formatted = disk(&[("ID_WWN", "w1"), ("ID_FS_UUID", "u2")]);
        assert!(then.is_same(&formatted, false), "a new file system on the same disk");
        assert!(!then.is_same(&disk(&[("ID_WWN", "w2"), ("ID_FS_UUID", "u1")]), false));
        assert!(then.is_same(&disk(&[("serial", "s")]), false), "nothing that both have");
        assert!(!then.is_told_apart(&disk(&[("serial", "s")]), false));
        assert!(then.is_told_apart(&formatted, false));
    }
}
