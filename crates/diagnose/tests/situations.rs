//! Stacks, owners and values: for each situation the right origin and the right findings, and no
//! others.
#![allow(clippy::unwrap_used)] // a test may panic

mod hosts;

use hosts::{FLASH, Machine, Queue, TURNING};

/// One line of the table.
struct Situation {
    name: &'static str,
    machine: Machine,
    path: &'static str,
    origin: &'static str,
    confidence: &'static str,
    findings: &'static [&'static str],
}

fn case(
    name: &'static str,
    machine: Machine,
    path: &'static str,
    origin: &'static str,
    confidence: &'static str,
    findings: &'static [&'static str],
) -> Situation {
    Situation { name, machine, path, origin, confidence, findings }
}

const UDEV: &str = "etc/udev/rules.d/60-ra.rules";

fn flash(kib: u64) -> Queue {
    Queue { read_ahead_kb: kib, ..FLASH }
}

/// A machine with one flash disk of this read-ahead, mounted at /data with xfs.
fn one(kernel: &str, queue: Queue) -> Machine {
    Machine::new(kernel).device("sda", "8:0", queue).mount("8:0", "/data", "xfs", "/dev/sda")
}

/// The same with something asked for by a udev rule.
fn ruled(kib: u64, rule: &str) -> Machine {
    one("6.1.0", flash(kib)).with(UDEV, rule)
}

/// A disk under LVM.
fn lvm(top: u64, disk: u64) -> Machine {
    Machine::new("6.1.0")
        .device("sda", "8:0", flash(disk))
        .dm("dm-0", "253:0", "vg-home", "LVM-abc", flash(top))
        .member("dm-0", "sda")
        .mount("253:0", "/home", "ext4", "/dev/mapper/vg-home")
}

/// The metadata of that group, with this in its volume.
fn metadata(machine: Machine, read_ahead: &str) -> Machine {
    machine.with(
        "etc/lvm/backup/vg",
        &format!("vg {{\nlogical_volumes {{\nhome {{\n{read_ahead}\n}}\n}}\n}}\n"),
    )
}

fn kernel_on_block_devices() -> Vec<Situation> {
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

fn kernel_on_stacks() -> Vec<Situation> {
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
    let virtual_disk = Machine::new("6.18.0")
        .bdi("0:50", 128)
        .mount("0:50", "/run/foreread/vdisk/a/fuse", "fuse.foreread", "foreread")
        .loop_device(
            "loop0",
            "7:0",
            Some("/run/foreread/vdisk/a/fuse/disk"),
            Queue { max_sectors_kb: 512, ..TURNING },
        )
        .mount("7:0", "/run/foreread/vdisk/a/mnt", "xfs", "/dev/loop0");
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
            virtual_disk,
            "/run/foreread/vdisk/a/mnt",
            "kernel",
            "high",
            &["jumped"],
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

fn kernel_on_file_systems() -> Vec<Situation> {
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

fn udev_rules() -> Vec<Situation> {
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

fn other_owners() -> Vec<Situation> {
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

/// Checks each line; they are diagnosed one by one, and all that is wrong is told at once.
#[track_caller]
fn hold(all: &[Situation]) {
    let wrong: Vec<String> = all.iter().filter_map(problem).collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

fn problem(situation: &Situation) -> Option<String> {
    let found = situation.machine.diagnosis(situation.path);
    let mut findings: Vec<&str> = found.findings.iter().map(|found| found.id).collect();
    findings.sort_unstable();
    let mut expected = situation.findings.to_vec();
    expected.sort_unstable();
    let origin = (found.origin.kind.word(), found.origin.confidence.word());
    let told = found.findings.iter().all(|finding| {
        let typed: usize = finding.mend.iter().map(|mend| mend.commands.len()).sum();
        !finding.evidence.is_empty() && typed > 0 && !finding.why.is_empty()
    });
    let right = origin == (situation.origin, situation.confidence) && findings == expected && told;
    (!right).then(|| {
        format!(
            "{}: {origin:?} {findings:?}, not {:?} {expected:?}\n  {}",
            situation.name,
            (situation.origin, situation.confidence),
            found.origin.summary,
        )
    })
}

#[test]
fn the_table_has_at_least_forty_situations() {
    let all = [
        kernel_on_block_devices(),
        kernel_on_stacks(),
        kernel_on_file_systems(),
        udev_rules(),
        other_owners(),
    ];
    let count: usize = all.iter().map(Vec::len).sum();
    assert!(count >= 40, "{count}");
    println!("{count} situations");
}

#[test]
fn block_devices_are_explained() {
    hold(&kernel_on_block_devices());
}

#[test]
fn stacks_are_explained() {
    hold(&kernel_on_stacks());
}

#[test]
fn file_systems_of_their_own_bdi_are_explained() {
    hold(&kernel_on_file_systems());
}

#[test]
fn udev_rules_are_explained() {
    hold(&udev_rules());
}

#[test]
fn other_owners_are_explained() {
    hold(&other_owners());
}

#[test]
fn the_table_notices_what_is_wrong() {
    let wrong = case("wrong", one("6.1.0", FLASH), "/data", "udev", "high", &[]);
    assert!(problem(&wrong).is_some());
    let wrong = case("wrong", one("6.1.0", FLASH), "/data", "kernel", "high", &["zero"]);
    assert!(problem(&wrong).is_some());
}
