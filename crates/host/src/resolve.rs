//! Resolves a path to its bdi.
//!
//! Read-ahead comes from the bdi of the file system's super block. This is usually the disk's bdi;
//! btrfs, NFS and FUSE have their own. Lower devices (members of an array, the disk under a dm
//! device, the file of a loop device) have no effect.

use std::path::{Path, PathBuf};

use crate::block::{block_dir, disk_of, leaves, number_in};
use crate::mount::{MountInfo, mount_above, mounts};
use crate::probe::node_number;
use crate::{BdiId, DevNo, HostError, PathProbe, ProbeKind, Root, Storage, StorageKind};

/// Finds the storage of a directory, file, block device, symbolic link, or `MAJ:MIN`.
pub fn resolve(root: &Root, path: &Path) -> Result<Storage, HostError> {
    match path.to_str().and_then(|text| text.parse().ok()) {
        Some(device) => resolve_number(root, device),
        None => resolve_probe(root, &PathProbe::read(root, path)?),
    }
}

/// The part of [`resolve`] that reads only `/proc` and `/sys` of `root`.
pub fn resolve_probe(root: &Root, probe: &PathProbe) -> Result<Storage, HostError> {
    let kind = match probe.kind {
        ProbeKind::BlockDevice(device) => {
            let (bdi, devices) = of_block_device(root, &probe.path, device)?;
            let kind = StorageKind::BlockDevice;
            return Ok(storage(root, probe.path.clone(), kind, None, bdi, devices));
        }
        ProbeKind::Directory => StorageKind::Directory,
        ProbeKind::File => StorageKind::File,
    };
    let mounts = mounts(root)?;
    let found = mount_of(&mounts, probe).ok_or_else(|| HostError::NoBdi {
        path: probe.path.clone(),
        why: "its mount is not in /proc/self/mountinfo".to_owned(),
    })?;
    refuse_baseless(&probe.path, found)?;
    let (bdi, devices) = of_file_system(root, &mounts, probe, found)?;
    let mount = Some(found.mount.clone());
    Ok(storage(root, probe.path.clone(), kind, mount, bdi, devices))
}

fn storage(
    root: &Root,
    path: PathBuf,
    kind: StorageKind,
    mount: Option<crate::Mount>,
    bdi: BdiId,
    devices: Vec<DevNo>,
) -> Storage {
    let mut leaves: Vec<DevNo> = devices.iter().flat_map(|device| leaves(root, *device)).collect();
    leaves.sort();
    leaves.dedup();
    Storage { path, kind, mount, bdi, devices, leaves }
}

/// Resolves `MAJ:MIN`: a block device, or the number of an NFS, FUSE or btrfs mount.
fn resolve_number(root: &Root, device: DevNo) -> Result<Storage, HostError> {
    let probe = if block_dir(root, device).is_ok() {
        let node = root
            .read(format!("/sys/dev/block/{device}/uevent"))
            .ok()
            .and_then(|uevent| {
                let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
                Some(Path::new("/dev").join(name))
            })
            .unwrap_or_else(|| PathBuf::from(format!("/dev/block/{device}")));
        PathProbe { path: node, kind: ProbeKind::BlockDevice(device), device, mount_id: None }
    } else {
        let mounts = mounts(root)?;
        let found = mounts.iter().rev().find(|info| info.device == device);
        let found = found.ok_or(HostError::DeviceGone { device })?;
        let (path, mount_id) = (found.mount.point.clone(), Some(found.id));
        PathProbe { path, kind: ProbeKind::Directory, device, mount_id }
    };
    resolve_probe(root, &probe)
}

/// Finds the mount of a path: by its id if the kernel returned one, otherwise by name.
fn mount_of<'a>(mounts: &'a [MountInfo], probe: &PathProbe) -> Option<&'a MountInfo> {
    let by_id = probe.mount_id.and_then(|id| mounts.iter().find(|info| info.id == id));
    by_id.or_else(|| mount_above(mounts, &probe.path))
}

/// Returns whether file systems of this type have no kernel read-ahead of their own: files in
/// memory, generated files, autofs, overlays, and ZFS, which has its own prefetch.
pub(crate) fn without_device(fstype: &str) -> bool {
    in_memory(fstype) || made_up(fstype) || matches!(fstype, "autofs" | "zfs" | "overlay" | "aufs")
}

fn in_memory(fstype: &str) -> bool {
    matches!(fstype, "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" | "rootfs")
}

fn made_up(fstype: &str) -> bool {
    const KINDS: &[&str] = &[
        "proc",
        "sysfs",
        "cgroup",
        "cgroup2",
        "debugfs",
        "tracefs",
        "securityfs",
        "bpf",
        "configfs",
        "devpts",
        "mqueue",
        "pstore",
        "efivarfs",
        "fusectl",
        "selinuxfs",
        "binfmt_misc",
        "rpc_pipefs",
        "nsfs",
        "nfsd",
    ];
    KINDS.contains(&fstype)
}

/// Rejects storage without a device; the error says what to name instead.
fn refuse_baseless(path: &Path, found: &MountInfo) -> Result<(), HostError> {
    let elsewhere = "name a directory on a disk";
    let why = match found.mount.fstype.as_str() {
        fstype if in_memory(fstype) => {
            format!("its files are in memory, so there is no read-ahead; {elsewhere}")
        }
        fstype if made_up(fstype) => {
            format!("the kernel generates its files, so there is no read-ahead; {elsewhere}")
        }
        "autofs" => {
            "nothing is mounted there yet; look into the directory and try again".to_owned()
        }
        "zfs" => {
            "ZFS has its own cache and prefetch, which read_ahead_kb does not affect".to_owned()
        }
        "overlay" | "aufs" => layers(&found.mount.options),
        _ => return Ok(()),
    };
    let fstype = found.mount.fstype.clone();
    Err(HostError::NoBackingDevice { path: path.to_owned(), fstype, why })
}

/// Explains an overlay: its files are read from their layers, with the layers' read-ahead.
fn layers(options: &str) -> String {
    let option = |name: &str| {
        let value = options.split(',').find_map(|option| option.strip_prefix(name))?;
        Some(value.trim_start_matches('='))
    };
    let upper = option("upperdir").map(|dir| format!("new files are in {dir}"));
    let lower = option("lowerdir").map(|dirs| format!("old ones below {dirs}"));
    let places: Vec<String> = upper.into_iter().chain(lower).collect();
    let places =
        if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
    format!(
        "its files are on the file systems of its layers{places}; name the layer's directory from \
         outside the container, or a volume"
    )
}

pub(crate) fn of_file_system(
    root: &Root,
    mounts: &[MountInfo],
    probe: &PathProbe,
    found: &MountInfo,
) -> Result<(BdiId, Vec<DevNo>), HostError> {
    let path = &probe.path;
    if found.mount.fstype == "btrfs" {
        return of_btrfs(root, path, &found.mount.source);
    }
    if found.device.major == 0 {
        let bdi = of_anonymous(root, mounts, probe, found)?;
        return Ok((bdi, sources(root, &found.mount.source)));
    }
    let device = found.device;
    if found.mount.fstype == "fuseblk" {
        let bdi =
            known_bdi(root, &format!("{device}-fuseblk")).ok_or_else(|| HostError::NoBdi {
                path: path.clone(),
                why: format!("/sys/class/bdi/{device}-fuseblk does not exist"),
            })?;
        return Ok((bdi, vec![device]));
    }
    of_block_device(root, path, device)
}

pub(crate) fn of_block_device(
    root: &Root,
    path: &Path,
    device: DevNo,
) -> Result<(BdiId, Vec<DevNo>), HostError> {
    let disk = disk_of(root, device)?;
    let name =
        root.link_name(format!("/sys/dev/block/{disk}/bdi")).unwrap_or_else(|| disk.to_string());
    let bdi = known_bdi(root, &name).ok_or_else(|| HostError::NoBdi {
        path: path.to_owned(),
        why: format!("/sys/class/bdi/{name} does not exist"),
    })?;
    Ok((bdi, vec![device]))
}

/// Finds the bdi and members of a btrfs. It has its own bdi, and only btrfs knows the members.
fn of_btrfs(root: &Root, path: &Path, source: &str) -> Result<(BdiId, Vec<DevNo>), HostError> {
    let base = "/sys/fs/btrfs";
    let all: Vec<(String, Vec<DevNo>)> = root
        .names(base)
        .into_iter()
        .filter(|uuid| root.exists(format!("{base}/{uuid}/devices")))
        .map(|uuid| {
            let members = btrfs_members(root, &format!("{base}/{uuid}/devices"));
            (uuid, members)
        })
        .collect();
    let number = node_number(root, Path::new(source));
    let ours = match (number, all.as_slice()) {
        (Some(number), all) => all.iter().find(|(_, members)| members.contains(&number)),
        // The source is unknown, as in containers: accept a btrfs only if it is the only one.
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let no_bdi = |why: String| HostError::NoBdi { path: path.to_owned(), why };
    let (uuid, members) =
        ours.ok_or_else(|| no_bdi(format!("no file system in {base} has {source} as a member")))?;
    let name = root.link_name(format!("{base}/{uuid}/bdi"));
    let bdi = match name {
        Some(name) => known_bdi(root, &name),
        None => only_bdi(root, "btrfs"),
    };
    let bdi = bdi.ok_or_else(|| no_bdi(format!("{base}/{uuid}/bdi is a dangling link")))?;
    Ok((bdi, members.clone()))
}

fn btrfs_members(root: &Root, dir: &str) -> Vec<DevNo> {
    let names = root.names(dir);
    names.iter().filter_map(|name| number_in(root, &format!("{dir}/{name}/dev"))).collect()
}

/// Finds the bdi of a file system without a single block device. NFS and FUSE name it after the
/// device number; others count (`cifs-1`, `9p-1`), and sysfs does not show the assignment.
fn of_anonymous(
    root: &Root,
    mounts: &[MountInfo],
    probe: &PathProbe,
    found: &MountInfo,
) -> Result<BdiId, HostError> {
    let by_number = [found.device, probe.device];
    if let Some(bdi) = by_number.iter().find_map(|device| known_bdi(root, &device.to_string())) {
        return Ok(bdi);
    }
    let fstype = &found.mount.fstype;
    let mut same: Vec<DevNo> =
        mounts.iter().filter(|info| info.mount.fstype == *fstype).map(|info| info.device).collect();
    same.sort();
    same.dedup();
    only_bdi(root, fstype).filter(|_| same.len() == 1).ok_or_else(|| HostError::NoBdi {
        path: probe.path.clone(),
        why: format!(
            "/sys/class/bdi has no {}, and not exactly one {fstype}-N for one mounted {fstype}",
            found.device
        ),
    })
}

/// Returns the block devices in a mount's source. bcachefs lists several: `/dev/sda:/dev/sdb`.
fn sources(root: &Root, source: &str) -> Vec<DevNo> {
    if !source.starts_with("/dev/") {
        return Vec::new();
    }
    source.split(':').filter_map(|node| node_number(root, Path::new(node))).collect()
}

fn known_bdi(root: &Root, name: &str) -> Option<BdiId> {
    BdiId::new(name).filter(|bdi| root.exists(bdi.dir()))
}

/// Returns the bdi named `fstype-N` if there is exactly one.
fn only_bdi(root: &Root, fstype: &str) -> Option<BdiId> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let names = root.names("/sys/class/bdi");
    let mut ours = names.iter().filter(|name| {
        name.strip_prefix(fstype).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_number)
    });
    let first = ours.next()?;
    if ours.next().is_some() { None } else { BdiId::new(first) }
}
