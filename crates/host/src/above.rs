//! Finds the bdis above a block device: the opposite direction of [`crate::resolve`].

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::block::number_in;
use crate::mount::mounts;
use crate::resolve::{of_block_device, of_file_system};
use crate::{BdiId, DevNo, PathProbe, ProbeKind, Root};

/// Returns the bdis that use a block device: the device's own, those of arrays, volumes and mapped
/// devices above it, and those of file systems on any of these. Removing the device or changing its
/// behaviour affects measurements on each of them.
pub fn bdis_on(root: &Root, device: DevNo) -> BTreeSet<BdiId> {
    let devices = stack_on(root, device);
    let of_device = |device: &DevNo| {
        let path = PathBuf::from(format!("/dev/block/{device}"));
        of_block_device(root, &path, *device).ok().map(|(bdi, _)| bdi)
    };
    let mut bdis: BTreeSet<BdiId> = devices.iter().filter_map(of_device).collect();
    let mounts = mounts(root).unwrap_or_default();
    for info in &mounts {
        let (path, mount_id) = (info.mount.point.clone(), Some(info.id));
        let probe = PathProbe { path, kind: ProbeKind::Directory, device: info.device, mount_id };
        // Do not access the mount itself: it might hang.
        let Ok((bdi, below)) = of_file_system(root, &mounts, &probe, info) else { continue };
        if below.iter().any(|below| devices.contains(below)) {
            bdis.insert(bdi);
        }
    }
    bdis
}

/// Returns the device, its partitions, and all devices that use one of them.
fn stack_on(root: &Root, device: DevNo) -> BTreeSet<DevNo> {
    let mut stack = BTreeSet::new();
    let mut next = vec![device];
    while let Some(device) = next.pop() {
        if !stack.insert(device) {
            continue;
        }
        let dir = format!("/sys/dev/block/{device}");
        let partition = |name: &String| number_in(root, &format!("{dir}/{name}/dev"));
        next.extend(root.names(&dir).iter().filter_map(partition));
        let holder = |name: &String| number_in(root, &format!("{dir}/holders/{name}/dev"));
        next.extend(root.names(format!("{dir}/holders")).iter().filter_map(holder));
    }
    stack
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn partitions_volumes_and_file_systems_rest_on_a_disk() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        let device = |number: &str| {
            file(&format!("sys/dev/block/{number}/dev"), number);
            file(&format!("sys/dev/block/{number}/size"), "2048\n");
        };
        for number in ["7:0", "7:1", "259:1", "253:0", "8:0"] {
            device(number);
        }
        for bdi in ["7:0", "7:1", "253:0", "8:0", "btrfs-1"] {
            file(&format!("sys/class/bdi/{bdi}/read_ahead_kb"), "128\n");
        }
        file("sys/dev/block/259:1/partition", "1\n");
        file("sys/dev/block/7:0/loop0p1/dev", "259:1\n");
        file("sys/dev/block/7:0/loop0p1/partition", "1\n");
        file("sys/dev/block/7:0/loop0p1/holders/dm-0/dev", "253:0\n");
        file("sys/dev/block/259:1/holders/dm-0/dev", "253:0\n");
        file(
            "proc/self/mountinfo",
            "1 0 8:0 / / rw - ext4 /dev/sda rw\n2 1 253:0 / /mnt rw - xfs /dev/dm-0 rw\n",
        );
        let root = Root::at(dir.path());
        let of = |device: &str| {
            let bdis = bdis_on(&root, device.parse().expect("a number"));
            bdis.iter().map(|bdi| bdi.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("7:0"), ["253:0", "7:0"]);
        assert_eq!(of("7:1"), ["7:1"]);
        assert_eq!(of("8:0"), ["8:0"]);
        assert!(of("9:9").is_empty(), "what is not there bears nothing");
    }
}
