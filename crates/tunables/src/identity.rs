//! Which device a bdi was.
//!
//! Numbers are used again: `7:0` is whatever was last attached to the first loop device, `0:46` any
//! NFS mount. A value must go back to the device that it was taken from, and to no other.

use host::{DevNo, DeviceFacts, Root, device_facts, mount_source};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Site;

/// What tells a device from another that later has the same number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The block devices, those that are there.
    pub devices: Vec<DeviceIdentity>,
    /// What is mounted, for a bdi without block devices.
    pub source: Option<String>,
}

/// One block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceIdentity {
    /// Its number.
    pub device: DevNo,
    /// Counts disks since boot (Linux 5.15); a loop device gets a new one with each file.
    pub diskseq: Option<u64>,
    /// Its size.
    pub size: Option<Bytes>,
    /// Its model.
    pub model: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

impl From<DeviceFacts> for DeviceIdentity {
    fn from(facts: DeviceFacts) -> Self {
        let DeviceFacts { device, diskseq, size, model, backing_file, .. } = facts;
        Self { device, diskseq, size, model, backing_file }
    }
}

impl Identity {
    /// Looks at what is there now.
    pub fn of(root: &Root, site: &Site) -> Self {
        let facts = |device: &DevNo| device_facts(root, *device).ok();
        let mut numbers: Vec<&DevNo> = site.devices.iter().chain(&site.leaves).collect();
        numbers.sort();
        numbers.dedup();
        let devices = numbers.into_iter().filter_map(facts).map(DeviceIdentity::from).collect();
        let number = site.bdi.as_str().parse().ok().filter(|number: &DevNo| number.major == 0);
        Self { devices, source: number.and_then(|number| mount_source(root, number)) }
    }

    /// Whether `now` may be the same thing. Over a reboot counters start anew.
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
        // A loop device without a file is nobody's, and it would hand the value that it was left
        // with to the next who attaches one (seen on 6.18: 64 MiB stay over detach and attach).
        if self.backing_file.is_some() && now.backing_file.is_none() {
            return true;
        }
        if same_boot && let (Some(then), Some(now)) = (self.diskseq, now.diskseq) {
            return then == now;
        }
        (&self.size, &self.model, &self.backing_file) == (&now.size, &now.model, &now.backing_file)
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
}
