//! The kernel's default read-ahead, computed from sysfs.
//!
//! Block devices (block/blk-settings.c): 128 KiB; since 5.10 at least twice `optimal_io_size`;
//! since 6.17 a rotational device without one uses twice its largest request. Until 5.9 only md
//! raised it, to two stripes. File systems with a bdi of their own have their own rules
//! (fs/btrfs/disk-io.c, fs/nfs/super.c, fs/fuse/inode.c, fs/ceph/super.c, fs/smb/client/cifsfs.c).

use serde::Serialize;
use units::{Bytes, Kib, PageSize};

use crate::{KernelRelease, Layer, LayerKind};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelDefault {
    #[serde(rename = "read_ahead_kib")]
    pub read_ahead: Kib,
    pub rule: KernelRule,
    /// The rule with its numbers, as a phrase.
    pub reason: String,
    /// The sysfs files that the value was computed from, relative to the device's directory.
    pub inputs: Vec<&'static str>,
}

impl KernelDefault {
    /// The minimum of block devices.
    pub fn floor(reason: &str) -> Self {
        Self {
            read_ahead: DEFAULT_KIB,
            rule: KernelRule::Floor,
            reason: reason.to_owned(),
            inputs: vec!["queue/optimal_io_size"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelRule {
    /// 128 KiB, the minimum of block devices.
    Floor,
    /// Twice `optimal_io_size`, which arrays set to a full stripe.
    OptimalIo,
    /// Twice `max_sectors_kb`, for devices that appear rotational.
    Rotational,
    /// Two stripes of md, before Linux 5.10.
    MdStripes,
    /// 4 MiB, or 128 KiB for each member if that is more.
    Btrfs,
    /// 128 KiB since Linux 5.4, 15 × rsize before.
    Nfs,
    /// 128 KiB, or less if the server asks for less.
    Fuse,
    /// The mount option rasize, or 8 MiB.
    Ceph,
    /// The mount option rasize, or one or two times rsize.
    Cifs,
    /// 0: the file system disables the kernel's read-ahead and has its own.
    None,
}

/// `VM_READAHEAD_PAGES` of include/linux/mm.h.
const DEFAULT_KIB: Kib = Kib::new(128);

/// Returns the kernel's default for the layer that owns a bdi, or `None` if the rule is unknown.
pub fn kernel_default(
    kernel: KernelRelease,
    page: PageSize,
    owner: &Layer,
) -> Option<KernelDefault> {
    match &owner.kind {
        LayerKind::Filesystem { fstype, options, .. } => {
            of_file_system(kernel, page, owner, fstype, options)
        }
        LayerKind::Missing | LayerKind::Partition => None,
        _ => Some(of_block_device(kernel, page, owner)),
    }
}

/// Returns other defaults that a kernel may have chosen for this device: a value from before its
/// limits were lowered, because the kernel then keeps the higher value (since 6.15), or the value
/// of a later kernel's rule that a distribution backported.
pub fn other_defaults(kernel: KernelRelease, page: PageSize, owner: &Layer) -> Vec<KernelDefault> {
    let Some(queue) = &owner.queue else { return Vec::new() };
    let mut found = Vec::new();
    let rotational = queue.rotational == Some(true);
    let no_wish = queue.optimal_io_size.is_none_or(|size| size.get() == 0);
    let at_least = |major, minor| kernel >= KernelRelease { major, minor };
    if rotational && no_wish && !at_least(6, 17) {
        found.extend(queue.max_sectors.map(|size| {
            let why = format!(
                "2 × max_sectors_kb ({}), the rule of Linux 6.17 for rotational devices, which \
                 distributions backport to older kernels",
                size.to_kib_floor().get()
            );
            twice_size(page, size, KernelRule::Rotational, why, &["queue/max_sectors_kb"])
        }));
    }
    let limits = [queue.max_hw_sectors, Some(Bytes::from_kib(1280)), Some(Bytes::from_kib(4096))];
    if rotational && no_wish && at_least(6, 17) {
        let hardware = queue.max_hw_sectors.unwrap_or(Bytes::new(u64::MAX / 4));
        for size in limits.into_iter().flatten().filter(|size| *size <= hardware) {
            let why = format!(
                "2 × {}, the largest request before max_sectors_kb was lowered; read-ahead does \
                 not follow downward",
                size.to_kib_floor()
            );
            found.push(twice_size(
                page,
                size,
                KernelRule::Rotational,
                why,
                &["queue/max_hw_sectors_kb"],
            ));
        }
    }
    found
}

fn of_block_device(kernel: KernelRelease, page: PageSize, owner: &Layer) -> KernelDefault {
    let floor = KernelDefault::floor;
    let at_least = |major, minor| kernel >= KernelRelease { major, minor };
    if !at_least(5, 10) {
        return md_stripes(page, owner)
            .filter(|found| found.read_ahead > DEFAULT_KIB)
            .unwrap_or_else(|| floor("128 KiB, the initial value of block devices"));
    }
    let Some(queue) = &owner.queue else {
        return floor("128 KiB, the initial value of block devices");
    };
    let wish = queue.optimal_io_size.unwrap_or_default();
    if wish.get() > 0 {
        let stripe = match &owner.kind {
            LayerKind::Md { level, .. } => format!(", a full stripe of this {level}"),
            _ => String::new(),
        };
        let why = format!("2 × optimal_io_size ({wish}{stripe})");
        let found = twice_size(page, wish, KernelRule::OptimalIo, why, &["queue/optimal_io_size"]);
        if found.read_ahead > DEFAULT_KIB {
            return found;
        }
        return floor(&format!("128 KiB, as 2 × optimal_io_size ({wish}) is less"));
    }
    if at_least(6, 17)
        && queue.rotational == Some(true)
        && let Some(size) = queue.max_sectors
    {
        let why = format!(
            "2 × max_sectors_kb ({}), as Linux does since 6.17 for rotational devices",
            size.to_kib_floor().get()
        );
        let inputs = ["queue/max_sectors_kb", "queue/rotational", "queue/optimal_io_size"];
        let found = twice_size(page, size, KernelRule::Rotational, why, &inputs);
        if found.read_ahead > DEFAULT_KIB {
            return found;
        }
        return floor("128 KiB, as 2 × max_sectors_kb is less");
    }
    floor("128 KiB, the initial value of block devices without an optimal_io_size")
}

fn twice_size(
    page: PageSize,
    size: Bytes,
    rule: KernelRule,
    reason: String,
    inputs: &[&'static str],
) -> KernelDefault {
    let pages = Bytes::new(size.get().saturating_mul(2)).to_pages_floor(page);
    let read_ahead = pages.to_bytes(page).to_kib_floor();
    KernelDefault { read_ahead, rule, reason, inputs: inputs.to_vec() }
}

/// Returns two stripes of md, as in drivers/md/raid0.c, raid5.c and raid10.c.
fn md_stripes(page: PageSize, owner: &Layer) -> Option<KernelDefault> {
    let LayerKind::Md { level, raid_disks, chunk, .. } = &owner.kind else { return None };
    let (disks, chunk) = ((*raid_disks)?, (*chunk)?);
    let data = match level.as_str() {
        "raid0" => disks,
        "raid4" | "raid5" => disks.saturating_sub(1),
        "raid6" => disks.saturating_sub(2),
        // Two near copies are md's default layout.
        "raid10" => disks / 2,
        _ => return None,
    };
    let stripe = Bytes::new(chunk.get().checked_mul(data)?);
    let why = format!("2 stripes of this {level} ({data} × {chunk})");
    Some(twice_size(page, stripe, KernelRule::MdStripes, why, &["md/chunk_size", "md/raid_disks"]))
}

fn of_file_system(
    kernel: KernelRelease,
    page: PageSize,
    owner: &Layer,
    fstype: &str,
    options: &str,
) -> Option<KernelDefault> {
    let rule = |read_ahead, rule, reason: String| KernelDefault {
        read_ahead,
        rule,
        reason,
        inputs: Vec::new(),
    };
    let bytes = |name: &str| option_number(options, name);
    match fstype {
        "btrfs" => {
            let members = owner.below.len().max(1) as u64;
            let kib = Kib::new((128 * members).max(4096));
            let why = if kib.get() > 4096 {
                format!("128 KiB for each of its {members} devices")
            } else {
                "4 MiB, the default of btrfs, independent of its devices".to_owned()
            };
            Some(rule(kib, KernelRule::Btrfs, why))
        }
        "nfs" | "nfs4" if kernel >= (KernelRelease { major: 5, minor: 4 }) => {
            let why = "128 KiB, the default of NFS since Linux 5.4";
            Some(rule(DEFAULT_KIB, KernelRule::Nfs, why.to_owned()))
        }
        "nfs" | "nfs4" => {
            let rsize = bytes("rsize")?;
            let kib = Bytes::new(rsize.checked_mul(15)?).to_kib_floor();
            let why = format!("15 × rsize ({rsize} bytes), as NFS did before Linux 5.4");
            Some(rule(kib, KernelRule::Nfs, why))
        }
        "ceph" => {
            let size = Bytes::new(bytes("rasize").unwrap_or(8 << 20));
            let why = match bytes("rasize") {
                Some(bytes) => format!("the mount option rasize={bytes} (bytes)"),
                None => "8 MiB, the default of CephFS's mount option rasize".to_owned(),
            };
            let kib = size.to_pages_floor(page).to_bytes(page).to_kib_floor();
            Some(rule(kib, KernelRule::Ceph, why))
        }
        "cifs" | "smb3" => {
            let (name, size) =
                ["rasize", "rsize"].iter().find_map(|name| Some((*name, bytes(name)?)))?;
            let kib = Bytes::new(size).to_pages_floor(page).to_bytes(page).to_kib_floor();
            Some(rule(kib, KernelRule::Cifs, format!("the mount option {name}={size} (bytes)")))
        }
        "lustre" | "ubifs" => {
            let why = format!("{fstype} disables the kernel's read-ahead");
            Some(rule(Kib::new(0), KernelRule::None, why))
        }
        "virtiofs" => Some(fuse(rule)),
        fstype if is_fuse(fstype) => Some(fuse(rule)),
        _ => None,
    }
}

fn fuse(rule: impl Fn(Kib, KernelRule, String) -> KernelDefault) -> KernelDefault {
    let why = "128 KiB, the default limit of FUSE";
    rule(DEFAULT_KIB, KernelRule::Fuse, why.to_owned())
}

/// Returns whether a userspace program serves file systems of this type.
pub fn is_fuse(fstype: &str) -> bool {
    matches!(fstype, "fuse" | "fuseblk")
        || fstype.starts_with("fuse.")
        || fstype.starts_with("fuseblk.")
}

/// Returns the number in a mount option.
pub fn option_number(options: &str, name: &str) -> Option<u64> {
    options
        .split(',')
        .filter_map(|option| option.split_once('='))
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::QueueLimits;

    fn disk(queue: QueueLimits) -> Layer {
        Layer {
            kind: LayerKind::Disk { transport: "scsi", model: None },
            name: "sda".to_owned(),
            device: None,
            bdi: None,
            read_ahead: None,
            queue: Some(queue),
            size: None,
            below: Vec::new(),
        }
    }

    fn queue(optimal: u64, max_kib: u64, rotational: bool) -> QueueLimits {
        QueueLimits {
            optimal_io_size: Some(Bytes::new(optimal)),
            max_sectors: Some(Bytes::from_kib(max_kib)),
            rotational: Some(rotational),
            ..QueueLimits::default()
        }
    }

    fn kib(kernel: (u32, u32), owner: &Layer) -> (u64, KernelRule) {
        let kernel = KernelRelease { major: kernel.0, minor: kernel.1 };
        let found = kernel_default(kernel, PageSize::FOUR_KIB, owner).unwrap();
        (found.read_ahead.get(), found.rule)
    }

    #[test]
    fn a_block_device_s_default_depends_on_the_kernel() {
        let turning = disk(queue(0, 1280, true));
        assert_eq!(kib((6, 18), &turning), (2560, KernelRule::Rotational));
        assert_eq!(kib((6, 16), &turning), (128, KernelRule::Floor));
        let flash = disk(queue(0, 1280, false));
        assert_eq!(kib((6, 18), &flash), (128, KernelRule::Floor));
        let array = disk(queue(1 << 20, 1280, true));
        assert_eq!(kib((6, 18), &array), (2048, KernelRule::OptimalIo));
        assert_eq!(kib((5, 10), &array), (2048, KernelRule::OptimalIo));
        assert_eq!(kib((5, 9), &array), (128, KernelRule::Floor));
        let small = disk(queue(4096, 1280, true));
        assert_eq!(kib((6, 18), &small), (128, KernelRule::Floor));
        let cloud = disk(queue(32 << 20, 1280, false));
        assert_eq!(kib((6, 8), &cloud), (65536, KernelRule::OptimalIo));
    }

    #[test]
    fn md_had_two_stripes_before_the_block_layer_did() {
        let md = |level: &str, disks| Layer {
            kind: LayerKind::Md {
                level: level.to_owned(),
                raid_disks: Some(disks),
                chunk: Some(Bytes::from_kib(512)),
                degraded: false,
            },
            ..disk(queue(0, 512, true))
        };
        assert_eq!(kib((5, 4), &md("raid5", 4)), (3072, KernelRule::MdStripes));
        assert_eq!(kib((5, 4), &md("raid6", 6)), (4096, KernelRule::MdStripes));
        assert_eq!(kib((5, 4), &md("raid10", 4)), (2048, KernelRule::MdStripes));
        assert_eq!(kib((5, 4), &md("raid1", 2)), (128, KernelRule::Floor));
    }

    fn mounted(fstype: &str, options: &str, members: usize) -> Layer {
        Layer {
            kind: LayerKind::Filesystem {
                fstype: fstype.to_owned(),
                source: "x".to_owned(),
                points: Vec::new(),
                options: options.to_owned(),
            },
            queue: None,
            below: vec![disk(QueueLimits::default()); members],
            ..disk(QueueLimits::default())
        }
    }

    #[test]
    fn file_systems_have_their_own_rules() {
        assert_eq!(kib((6, 18), &mounted("btrfs", "rw", 2)).0, 4096);
        assert_eq!(kib((6, 18), &mounted("btrfs", "rw", 40)).0, 5120);
        assert_eq!(kib((6, 1), &mounted("nfs4", "rw,rsize=1048576", 0)).0, 128);
        assert_eq!(kib((5, 3), &mounted("nfs", "rw,rsize=1048576", 0)).0, 15360);
        assert_eq!(kib((6, 1), &mounted("fuse.sshfs", "rw", 0)).0, 128);
        assert_eq!(kib((6, 1), &mounted("ceph", "rw", 0)).0, 8192);
        assert_eq!(kib((6, 1), &mounted("ceph", "rw,rasize=4194304", 0)).0, 4096);
        assert_eq!(kib((6, 1), &mounted("lustre", "rw", 0)).0, 0);
        let kernel = KernelRelease { major: 6, minor: 1 };
        let unknown = mounted("bcachefs", "rw", 1);
        assert_eq!(kernel_default(kernel, PageSize::FOUR_KIB, &unknown), None);
    }

    #[test]
    fn a_lowered_limit_leaves_the_old_value_behind() {
        let kernel = KernelRelease { major: 6, minor: 18 };
        let lowered = disk(QueueLimits {
            max_hw_sectors: Some(Bytes::from_kib(4096)),
            ..queue(0, 256, true)
        });
        let others = other_defaults(kernel, PageSize::FOUR_KIB, &lowered);
        assert!(others.iter().any(|other| other.read_ahead.get() == 8192));
        assert!(others.iter().any(|other| other.read_ahead.get() == 2560));
    }

    proptest! {
        #[test]
        fn no_numbers_overflow(
            optimal: u64, max: u64, hw: u64, rotational: bool, major in 2u32..9, minor in 0u32..30,
            chunk: u64, disks: u64, options in "(rsize|rasize)=[0-9]{1,20}",
        ) {
            let queue = QueueLimits {
                optimal_io_size: Some(Bytes::new(optimal)),
                max_sectors: Some(Bytes::new(max)),
                max_hw_sectors: Some(Bytes::new(hw)),
                rotational: Some(rotational),
                ..QueueLimits::default()
            };
            let kernel = KernelRelease { major, minor };
            let page = PageSize::FOUR_KIB;
            let mut layer = disk(queue);
            kernel_default(kernel, page, &layer);
            other_defaults(kernel, page, &layer);
            layer.kind = LayerKind::Md {
                level: "raid5".to_owned(),
                raid_disks: Some(disks),
                chunk: Some(Bytes::new(chunk)),
                degraded: false,
            };
            kernel_default(kernel, page, &layer);
            for fstype in ["nfs", "ceph", "cifs"] {
                kernel_default(kernel, page, &mounted(fstype, &options, 1));
            }
        }
    }
}
