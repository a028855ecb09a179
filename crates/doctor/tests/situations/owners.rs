//! Values that an owner or a user set, and claims without effect.

use super::hosts::{FLASH, Machine, Queue};
use super::{Situation, UDEV, case, flash, one};

/// A machine with one disk of `kib`, and a udev rule.
fn ruled(kib: u64, rule: &str) -> Machine {
    one("6.1.0", flash(kib)).with(UDEV, rule)
}

/// A machine with an LVM volume on one disk.
fn lvm(top: u64, disk: u64) -> Machine {
    Machine::new("6.1.0")
        .device("sda", "8:0", flash(disk))
        .dm("dm-0", "253:0", "vg-home", "LVM-abc", flash(top))
        .member("dm-0", "sda")
        .mount("253:0", "/home", "ext4", "/dev/mapper/vg-home")
}

/// Adds LVM metadata with this text in the section of the volume.
fn metadata(machine: Machine, read_ahead: &str) -> Machine {
    machine.with(
        "etc/lvm/backup/vg",
        &format!("vg {{\nlogical_volumes {{\nhome {{\n{read_ahead}\n}}\n}}\n}}\n"),
    )
}

pub fn udev_rules() -> Vec<Situation> {
    let rule = "ACTION==\"add|change\", KERNEL==\"sd[a-z]\", ATTR{queue/read_ahead_kb}=\"1024\"\n";
    let setra = "SUBSYSTEM==\"block\", RUN+=\"/sbin/blockdev --setra 8192 /dev/%k\"\n";
    let other = "SUBSYSTEM==\"block\", KERNEL==\"nvme*\", ATTR{queue/read_ahead_kb}=\"64\"\n";
    let serial = "SUBSYSTEM==\"block\", ENV{ID_SERIAL}==\"Q\", ATTR{bdi/read_ahead_kb}=\"64\"\n";
    let program =
        "SUBSYSTEM==\"block\", PROGRAM=\"/usr/bin/x %k\", ATTR{bdi/read_ahead_kb}=\"64\"\n";
    let jump = "KERNEL!=\"vd*\", GOTO=\"end\"\nATTR{queue/read_ahead_kb}=\"64\"\nLABEL=\"end\"\n";
    let nfs = |kib, rules: &str| {
        Machine::new("6.1.0")
            .bdi("0:46", kib)
            .mount_with("0:46", "/net", "nfs4", "server:/x", "rw,rsize=65536")
            .with("usr/lib/udev/rules.d/99-nfs.rules", rules)
    };
    let awk = "SUBSYSTEM==\"bdi\", ACTION==\"add\", PROGRAM=\"/bin/awk -v bdi=$kernel \
               'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' /proc/fs/nfsfs/volumes\", \
               ATTR{read_ahead_kb}=\"15380\"\n";
    let helper = "SUBSYSTEM==\"bdi\", ACTION==\"add\", PROGRAM=\"/usr/libexec/nfsrahead %k\", \
                  ATTR{read_ahead_kb}=\"%c\"\n";
    vec![
        case("a udev rule by name", ruled(1024, rule), "/data", "udev", "high", &[]),
        case("blockdev --setra in a rule", ruled(4096, setra), "/data", "udev", "high", &[]),
        case("a rule for other devices", ruled(128, other), "/data", "kernel", "high", &[]),
        case(
            "a rule whose value is gone",
            ruled(128, rule),
            "/data",
            "kernel",
            "high",
            &["overwritten"],
        ),
        case(
            "a rule by serial number",
            ruled(64, serial).with("run/udev/data/b8:0", "E:ID_SERIAL=Q\n"),
            "/data",
            "udev",
            "high",
            &[],
        ),
        case(
            "the same for another disk",
            ruled(128, serial).with("run/udev/data/b8:0", "E:ID_SERIAL=R\n"),
            "/data",
            "kernel",
            "high",
            &[],
        ),
        case("a rule that asks a program", ruled(64, program), "/data", "udev", "medium", &[]),
        case("a rule that is jumped over", ruled(128, jump), "/data", "kernel", "high", &[]),
        case(
            "a rule hidden by /etc",
            one("6.1.0", FLASH).with("usr/lib/udev/rules.d/60-ra.rules", rule).with(UDEV, "\n"),
            "/data",
            "kernel",
            "high",
            &[],
        ),
        case(
            "less than a page",
            ruled(0, &rule.replace("1024", "3")),
            "/data",
            "udev",
            "high",
            &["zero", "below-page"],
        ),
        case(
            "less than a page of 64 KiB",
            ruled(0, &rule.replace("1024", "32")).pages_of_64_kib(),
            "/data",
            "udev",
            "high",
            &["zero", "below-page"],
        ),
        case(
            "sectors taken for KiB",
            ruled(1024, &format!("# 1024 sectors, as the vendor says\n{rule}")),
            "/data",
            "udev",
            "high",
            &["sectors-for-kib"],
        ),
        case("the vendors' line of awk for NFS", nfs(15380, awk), "/net", "udev", "high", &[]),
        case(
            "nfsrahead with nfs.conf",
            nfs(16000, helper).with("etc/nfs.conf", "[nfsrahead]\nnfs4=16000\n"),
            "/net",
            "nfs-conf",
            "high",
            &[],
        ),
        case("nfsrahead without a setting", nfs(128, helper), "/net", "nfs-conf", "high", &[]),
        case(
            "a file of foreread",
            one("6.1.0", flash(512))
                .with("etc/udev/rules.d/99-foreread.rules", &rule.replace("1024", "512")),
            "/data",
            "foreread",
            "high",
            &[],
        ),
    ]
}

pub fn other_owners() -> Vec<Situation> {
    let throughput = "[main]\nsummary=x\n[disk]\nreadahead=>4096\n";
    let unit = "[Service]\nExecStart=/bin/sh -c 'echo 64 > /sys/block/sda/queue/read_ahead_kb'\n";
    let enabled = |machine: Machine| {
        let wants = "etc/systemd/system/multi-user.target.wants/ra.service";
        machine.link(wants, "../ra.service");
        machine.with("etc/systemd/system/ra.service", unit)
    };
    let big = Queue { read_ahead_kb: 65536, optimal_io_size: 32 << 20, ..FLASH };
    vec![
        case(
            "TuneD",
            one("6.1.0", flash(4096)).tuned("throughput-performance", throughput),
            "/data",
            "tuned",
            "high",
            &[],
        ),
        case(
            "TuneD leaves what is larger",
            one("6.8.0", big).tuned("throughput-performance", throughput).memory_available(1 << 30),
            "/data",
            "kernel",
            "high",
            &["jumped"],
        ),
        case(
            "TuneD chosen and not running",
            one("6.1.0", flash(4096))
                .with("etc/tuned/active_profile", "p\n")
                .with("etc/tuned/p/tuned.conf", throughput),
            "/data",
            "tuned",
            "medium",
            &[],
        ),
        case(
            "udev and TuneD",
            ruled(4096, "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"64\"\n")
                .tuned("throughput-performance", throughput),
            "/data",
            "tuned",
            "high",
            &["overwritten"],
        ),
        case(
            "a unit that is enabled",
            enabled(one("6.1.0", flash(64))),
            "/data",
            "systemd",
            "high",
            &[],
        ),
        case(
            "a unit that is not",
            one("6.1.0", flash(64)).with("etc/systemd/system/ra.service", unit),
            "/data",
            "systemd",
            "medium",
            &[],
        ),
        case(
            "tmpfiles",
            one("6.1.0", flash(64))
                .with("etc/tmpfiles.d/ra.conf", "w /sys/class/bdi/8:0/read_ahead_kb - - - - 64\n"),
            "/data",
            "tmpfiles",
            "high",
            &[],
        ),
        case(
            "sysfs.conf",
            one("6.1.0", flash(64)).with("etc/sysfs.conf", "block/sda/queue/read_ahead_kb = 64\n"),
            "/data",
            "sysfs-conf",
            "high",
            &[],
        ),
        case(
            "rc.local",
            one("6.1.0", flash(4096)).executable(
                "etc/rc.local",
                "#!/bin/sh\nfor d in sda sdb; do blockdev --setra 8192 /dev/$d; done\n",
            ),
            "/data",
            "boot-script",
            "high",
            &[],
        ),
        case(
            "rc.local that may not be run",
            one("6.1.0", FLASH).with("etc/rc.local", "#!/bin/sh\nblockdev --setra 8192 /dev/sda\n"),
            "/data",
            "kernel",
            "high",
            &[],
        ),
        case(
            "an option in fstab",
            Machine::new("6.1.0")
                .bdi("ceph-1", 4096)
                .mount_with("0:47", "/ceph", "ceph", "mon:/", "rw,rasize=4194304")
                .with("etc/fstab", "mon:/ /ceph ceph rasize=4194304 0 0\n"),
            "/ceph",
            "mount-option",
            "high",
            &[],
        ),
        case(
            "a Kubernetes driver",
            one("6.1.0", FLASH)
                .device("sdb", "8:16", flash(2048))
                .mount(
                    "8:16",
                    "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount",
                    "ext4",
                    "/dev/sdb",
                )
                .with(
                    "var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/vol_data.json",
                    "{\"driverName\":\"pd.csi.storage.gke.io\"}",
                ),
            "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount",
            "csi",
            "low",
            &[],
        ),
        case(
            "LVM metadata",
            metadata(lvm(4096, 128), "read_ahead = 8192"),
            "/home",
            "lvm",
            "high",
            &[],
        ),
        case(
            "LVM's automatic choice",
            metadata(lvm(2048, 2048), ""),
            "/home",
            "inherited",
            "high",
            &[],
        ),
        case(
            "the same without rights to its metadata",
            lvm(2048, 2048),
            "/home",
            "inherited",
            "medium",
            &[],
        ),
        case(
            "a disk below LVM tuned in vain",
            metadata(lvm(128, 4096), "")
                .with(UDEV, "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"4096\"\n"),
            "/home",
            "kernel",
            "high",
            &["wrong-layer"],
        ),
        case(
            "a value that somebody typed",
            one("6.1.0", flash(999 * 4)),
            "/data",
            "unknown",
            "none",
            &["not-persistent"],
        ),
        case(
            "zero that somebody typed",
            one("6.1.0", flash(0)),
            "/data",
            "unknown",
            "none",
            &["zero", "not-persistent"],
        ),
        case(
            "mapped files under a large window",
            one("6.1.0", flash(4096)).tuned("throughput-performance", throughput).process(
                300,
                "mongod",
                "7f0000000000-7f0010000000 r--s 00000000 08:00 9 /data/x\n",
            ),
            "/data",
            "tuned",
            "high",
            &["mapped-files"],
        ),
        case(
            "a number that MongoDB gives in sectors",
            one("6.1.0", flash(32))
                .with(UDEV, "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"32\"\n")
                .process(300, "mongod", ""),
            "/data",
            "udev",
            "high",
            &["sectors-for-kib"],
        ),
    ]
}
