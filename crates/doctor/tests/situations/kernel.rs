//! Values that the kernel chose, or whose origin is unknown.

use super::hosts::{FLASH, Machine, Queue, TURNING};
use super::{Situation, UDEV, case, flash, one};

pub fn kernel_on_block_devices() -> Vec<Situation> {
    let virtio = |kernel: &str, kib, max: u64| {
        let queue =
            Queue { read_ahead_kb: kib, max_sectors_kb: max, max_hw_sectors_kb: 4096, ..TURNING };
        Machine::new(kernel).device("vda", "254:0", queue).mount("254:0", "/", "ext4", "/dev/vda")
    };
    let wish = |kib, bytes| Queue { read_ahead_kb: kib, optimal_io_size: bytes, ..FLASH };
    let partition = Machine::new("6.1.0")
        .device("sda", "8:0", FLASH)
        .partition("sda", "sda1", "8:1")
        .mount("8:1", "/", "ext4", "/dev/sda1");
    vec![
        case("flash disk, default", one("6.1.0", FLASH), "/data", "kernel", "high", &[]),
        case("the same on a partition", partition, "/", "kernel", "high", &[]),
        case(
            "virtio that looks rotational, 6.18",
            virtio("6.18.44", 8192, 4096),
            "/",
            "kernel",
            "high",
            &["jumped", "power-of-two"],
        ),
        case("the same on 6.16", virtio("6.16.2", 128, 4096), "/", "kernel", "high", &[]),
        case(
            "the rule of 6.17 in an older kernel",
            virtio("6.12.0-dist", 8192, 4096),
            "/",
            "kernel-earlier",
            "medium",
            &["jumped"],
        ),
        case(
            "limits lowered after the value was chosen",
            virtio("6.18.44", 8192, 256),
            "/",
            "kernel-earlier",
            "medium",
            &["jumped", "power-of-two"],
        ),
        case(
            "a disk that really turns",
            one("6.18.0", TURNING),
            "/data",
            "kernel",
            "high",
            &["jumped"],
        ),
        case(
            "a cloud disk that asks for 32 MiB",
            one("6.8.0", wish(65536, 32 << 20)).memory_available(1 << 30),
            "/data",
            "kernel",
            "high",
            &["jumped"],
        ),
        case(
            "the same where memory is short",
            one("6.8.0", wish(65536, 32 << 20)).memory_available(1 << 20),
            "/data",
            "kernel",
            "high",
            &["jumped", "memory"],
        ),
        case(
            "rbd asks for 4 MiB",
            one("6.8.0", wish(8192, 4 << 20)),
            "/data",
            "kernel",
            "high",
            &["jumped"],
        ),
        case(
            "optimal_io_size did nothing in 5.4",
            one("5.4.0", wish(128, 4 << 20)),
            "/data",
            "kernel",
            "high",
            &[],
        ),
    ]
}

pub fn kernel_on_stacks() -> Vec<Situation> {
    let raid = |kernel: &str, kib, optimal| {
        let queue = Queue { read_ahead_kb: kib, optimal_io_size: optimal, ..TURNING };
        let turning = Queue { read_ahead_kb: 128, ..TURNING };
        Machine::new(kernel)
            .device("sda", "8:0", turning)
            .device("sdb", "8:16", turning)
            .device("sdc", "8:32", turning)
            .md("md0", "9:0", "raid5", 3, queue)
            .member("md0", "sda")
            .member("md0", "sdb")
            .member("md0", "sdc")
            .mount("9:0", "/srv", "xfs", "/dev/md0")
    };
    let looped = |kernel: &str, queue| {
        one(kernel, FLASH).loop_device("loop0", "7:0", Some("/data/disk.img"), queue).mount(
            "7:0",
            "/mnt",
            "ext4",
            "/dev/loop0",
        )
    };
    let crypt = Machine::new("6.18.0")
        .device("vda", "254:0", Queue { read_ahead_kb: 2560, ..TURNING })
        .dm("dm-0", "253:0", "root", "CRYPT-LUKS2-x", TURNING)
        .member("dm-0", "vda")
        .mount("253:0", "/", "ext4", "/dev/mapper/root");
    let virtual_disk = |read_ahead_kb| {
        Machine::new("6.18.0")
            .bdi("0:50", 128)
            .mount("0:50", "/run/foreread/vdisk/a/fuse", "fuse.foreread", "foreread")
            .loop_device(
                "loop0",
                "7:0",
                Some("/run/foreread/vdisk/a/fuse/disk"),
                Queue { read_ahead_kb, max_sectors_kb: 512, ..TURNING },
            )
            .mount("7:0", "/run/foreread/vdisk/a/mnt", "xfs", "/dev/loop0")
    };
    vec![
        case(
            "md RAID 5, stripe of 1 MiB",
            raid("6.1.0", 2048, 1 << 20),
            "/srv",
            "kernel",
            "high",
            &[],
        ),
        case("md before 5.10, two stripes", raid("5.4.0", 2048, 0), "/srv", "kernel", "high", &[]),
        case("dm-crypt that looks rotational", crypt, "/", "kernel", "high", &["jumped"]),
        case(
            "loop device on 6.18",
            looped("6.18.0", TURNING),
            "/mnt",
            "kernel",
            "high",
            &["jumped"],
        ),
        case("loop device on 6.1", looped("6.1.0", FLASH), "/mnt", "kernel", "high", &[]),
        case(
            "virtual disk of foreread",
            virtual_disk(TURNING.read_ahead_kb),
            "/run/foreread/vdisk/a/mnt",
            "kernel",
            "high",
            &["jumped"],
        ),
        case(
            "virtual disk that rotates",
            virtual_disk(128),
            "/run/foreread/vdisk/a/mnt",
            "kernel",
            "high",
            &[],
        ),
        case(
            "a used loop device with somebody's value",
            looped("6.18.0", Queue { read_ahead_kb: 64, ..TURNING }),
            "/mnt",
            "left-over",
            "low",
            &[],
        ),
        case(
            "a vacant loop device with somebody's value",
            Machine::new("6.18.0").loop_device("loop1", "7:1", None, flash(777 * 4)),
            "7:1",
            "left-over",
            "medium",
            &[],
        ),
        case(
            "zram",
            Machine::new("6.18.0").device(
                "zram0",
                "253:0",
                Queue { optimal_io_size: 4096, ..FLASH },
            ),
            "253:0",
            "kernel",
            "high",
            &[],
        ),
    ]
}

pub fn kernel_on_file_systems() -> Vec<Situation> {
    let btrfs = |kib| {
        Machine::new("6.18.0")
            .device("sdb", "8:16", FLASH)
            .device("sdc", "8:32", FLASH)
            .btrfs("1b55", "btrfs-1", kib, &["sdb", "sdc"])
            .mount("0:39", "/pool", "btrfs", "/dev/sdb")
    };
    let nfs = |kernel: &str, kib, fstype: &str, options: &str| {
        Machine::new(kernel).bdi("0:46", kib).mount_with(
            "0:46",
            "/net",
            fstype,
            "server:/x",
            options,
        )
    };
    vec![
        case("btrfs of two", btrfs(4096), "/pool", "kernel", "high", &[]),
        case(
            "btrfs with its disk tuned in vain",
            btrfs(4096)
                .with(
                    UDEV,
                    "SUBSYSTEM==\"block\", KERNEL==\"sdb\", \
                ATTR{queue/read_ahead_kb}=\"64\"\n",
                )
                .bdi("8:16", 64),
            "/pool",
            "kernel",
            "high",
            &["wrong-layer"],
        ),
        case("NFS", nfs("6.1.0", 128, "nfs4", "rw,rsize=1048576"), "/net", "kernel", "high", &[]),
        case(
            "NFS before 5.4",
            nfs("5.3.0", 15360, "nfs", "rw,rsize=1048576"),
            "/net",
            "kernel",
            "high",
            &[],
        ),
        case(
            "NFS with a mount helper",
            nfs("6.1.0", 15360, "nfs4", "rw,rsize=1048576"),
            "/net",
            "mount-helper",
            "low",
            &[],
        ),
        case("FUSE", nfs("6.1.0", 128, "fuse.sshfs", "rw"), "/net", "kernel", "high", &[]),
        case(
            "FUSE whose server asked for less",
            nfs("6.1.0", 32, "fuse.x", "rw"),
            "/net",
            "mount-helper",
            "medium",
            &[],
        ),
        case(
            "gcsfuse",
            nfs("6.1.0", 16384, "fuse.gcsfuse", "rw"),
            "/net",
            "mount-helper",
            "low",
            &[],
        ),
        case("CephFS", nfs("6.1.0", 8192, "ceph", "rw"), "/net", "kernel", "high", &[]),
        case(
            "Lustre switches it off",
            nfs("6.1.0", 0, "lustre", "rw"),
            "/net",
            "kernel",
            "high",
            &[],
        ),
        case("CIFS", nfs("6.1.0", 4096, "cifs", "rw,rsize=4194304"), "/net", "kernel", "high", &[]),
        case(
            "a file system whose rule is not known",
            nfs("6.1.0", 300, "afs", "rw"),
            "/net",
            "unknown",
            "none",
            &[],
        ),
    ]
}
