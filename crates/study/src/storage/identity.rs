//! The identity of a target. An interrupted run is resumed only on the same storage.

use std::collections::BTreeSet;

use host::{Machine, Root, Storage, device_facts};
use serde_json::{Value as Json, json};
use tunables::DeviceIdentity;
use vdisk::VirtualDisk;

/// Describes storage, kernel and version of this program, because versions may measure differently.
pub(super) fn identity(
    root: &Root,
    storage: &Storage,
    machine: &Machine,
    disk: Option<&VirtualDisk>,
) -> Json {
    match disk {
        Some(disk) => of_virtual_disk(disk.record(), machine),
        None => of_path(storage, &devices(root, storage), machine),
    }
}

/// Returns identities of the devices in addition to their numbers, which are reused.
fn devices(root: &Root, storage: &Storage) -> Vec<DeviceIdentity> {
    let numbers: BTreeSet<_> = storage.devices.iter().chain(&storage.leaves).collect();
    let facts = numbers.into_iter().filter_map(|number| device_facts(root, *number).ok());
    facts.map(DeviceIdentity::from).collect()
}

fn of_path(storage: &Storage, devices: &[DeviceIdentity], machine: &Machine) -> Json {
    let mount = storage.mount.as_ref();
    json!({
        "path": storage.path, "bdi": storage.bdi, "devices": storage.devices,
        "device_identities": devices,
        "filesystem": mount.map(|mount| json!([mount.fstype, mount.source])),
        "kernel": machine.kernel, "hostname": machine.hostname,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Includes the whole model, because a specification may name a file and presets may change with
/// the version.
fn of_virtual_disk(record: &vdisk::DiskRecord, machine: &Machine) -> Json {
    json!({
        "virtual": record.words, "model": record.model, "filesystem": record.filesystem,
        "size": record.size, "seed": record.seed, "dilation": record.dilation,
        "kernel": machine.kernel, "hostname": machine.hostname,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use host::{BdiId, DevNo, Mount, StorageKind};
    use units::Bytes;

    use super::*;

    fn machine() -> Machine {
        Machine {
            kernel: "6.18".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus: 2,
            cpu_model: None,
            memory: Bytes::from_gib(4),
            memory_available: Bytes::from_gib(3),
            page_size: units::PageSize::FOUR_KIB,
            virtualised: None,
            hostname: Some("here".to_owned()),
            boot_id: None,
        }
    }

    fn storage() -> Storage {
        let device = DevNo { major: 8, minor: 0 };
        let mount = Mount {
            point: "/data".into(),
            fstype: "xfs".to_owned(),
            source: "/dev/sda".to_owned(),
            options: "rw".to_owned(),
            read_only: false,
        };
        Storage {
            path: "/data".into(),
            kind: StorageKind::Directory,
            mount: Some(mount),
            bdi: BdiId::new("8:0").expect("a bdi"),
            devices: vec![device],
            leaves: vec![device],
        }
    }

    fn device() -> DeviceIdentity {
        DeviceIdentity {
            device: DevNo { major: 8, minor: 0 },
            diskseq: Some(3),
            size: Some(Bytes::from_gib(500)),
            model: Some("Maker Disk".to_owned()),
            backing_file: None,
            marks: BTreeMap::new(),
        }
    }

    #[test]
    fn another_device_with_the_same_number_is_another_target() {
        let of = |device: DeviceIdentity| of_path(&storage(), &[device], &machine());
        let same = of(device());
        assert_eq!(of(device()), same);
        assert_ne!(of(DeviceIdentity { diskseq: Some(4), ..device() }), same);
        assert_ne!(of(DeviceIdentity { size: Some(Bytes::from_gib(400)), ..device() }), same);
        assert_ne!(of(DeviceIdentity { model: None, ..device() }), same);
        let mut other = storage();
        other.mount.as_mut().expect("a mount").fstype = "ext4".to_owned();
        assert_ne!(of_path(&other, &[device()], &machine()), same);
    }

    #[test]
    fn the_same_words_may_mean_another_model() {
        let record = |model: &str| {
            serde_json::from_value::<vdisk::DiskRecord>(json!({
                "name": "d", "words": "disk.toml", "model": model, "filesystem": "xfs",
                "size": Bytes::from_gib(1), "dilation": 1.5, "seed": 1, "pid": 1,
                "device": "/dev/loop0", "loop_number": 0, "mountpoint": null,
                "queue": {
                    "requests": 1, "requests_wanted": 1, "request_size": Bytes::from_kib(512),
                    "request_size_wanted": Bytes::from_kib(512), "scheduler": "none",
                    "read_ahead": units::Kib::new(128),
                },
                "realtime": false, "dies_with_creator": true,
            }))
            .expect("a record")
        };
        let of = |record: &vdisk::DiskRecord| of_virtual_disk(record, &machine());
        let same = of(&record("seek = 8"));
        // The process and the loop device do not matter.
        let moved = vdisk::DiskRecord { pid: 2, loop_number: 7, ..record("seek = 8") };
        assert_eq!(of(&moved), same);
        assert_ne!(of(&record("seek = 9")), same);
    }
}
