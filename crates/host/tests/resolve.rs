//! Resolves paths to bdis in generated trees, one for each kind of stack.

mod tree;

use std::path::Path;

use foreread_host::{
    BlockStat, DevNo, HostError, PathProbe, ProbeKind, Root, Storage, StorageKind, block_stat,
    device_facts, resolve, resolve_probe,
};
use proptest::prelude::*;
use tree::Tree;
use units::Bytes;

fn resolved(tree: &Tree, path: &str) -> Storage {
    resolve(&tree.root(), Path::new(path)).expect(path)
}

fn refused(tree: &Tree, path: &str) -> HostError {
    resolve(&tree.root(), Path::new(path)).expect_err(path)
}

fn numbers(devices: &[DevNo]) -> Vec<String> {
    devices.iter().map(DevNo::to_string).collect()
}

#[test]
fn a_whole_disk_is_its_own() {
    let tree = Tree::new().disk("sdb", "8:16").mount("8:16", "/data", "xfs", "/dev/sdb");
    let storage = resolved(&tree, "/data/base/1");
    assert_eq!(storage.bdi.as_str(), "8:16");
    assert_eq!(numbers(&storage.devices), ["8:16"]);
    assert_eq!(numbers(&storage.leaves), ["8:16"]);
    assert_eq!(storage.kind, StorageKind::Directory);
    let mount = storage.mount.expect("a mount");
    assert_eq!((mount.point.as_path(), mount.fstype.as_str()), (Path::new("/data"), "xfs"));
}

#[test]
fn a_partition_has_its_disk_s_bdi_and_its_own_counters() {
    let tree = Tree::new();
    let storage = resolved(&tree, "/home");
    assert_eq!(storage.bdi.as_str(), "8:0");
    assert_eq!(numbers(&storage.devices), ["8:1"]);
    assert_eq!(numbers(&storage.leaves), ["8:0"]);
    let stat = storage.stat(&tree.root()).expect("counters").expect("a device");
    assert_eq!((stat.reads, stat.read_bytes), (4, Bytes::from_kib(16)));
}

#[test]
fn dm_over_a_partition_counts_at_the_top() {
    let tree = Tree::new().disk("dm-0", "253:0").member("dm-0", "sda/sda1").mount(
        "253:0",
        "/var",
        "ext4",
        "/dev/mapper/vg-var",
    );
    tree.file("sys/devices/virtual/block/dm-0/dm/name", "vg-var\n");
    let storage = resolved(&tree, "/var/lib");
    assert_eq!(storage.bdi.as_str(), "253:0");
    assert_eq!(numbers(&storage.devices), ["253:0"]);
    assert_eq!(numbers(&storage.leaves), ["8:0"]);
    let node = resolved(&tree, "/dev/mapper/vg-var");
    assert_eq!((node.bdi.as_str(), node.kind), ("253:0", StorageKind::BlockDevice));
    let facts = device_facts(&tree.root(), node.devices[0]).expect("facts");
    assert_eq!((facts.kind.as_str(), facts.label.as_deref()), ("dm", Some("vg-var")));
    assert_eq!(numbers(&facts.members), ["8:1"]);
}

#[test]
fn md_counts_at_the_top_and_shares_no_leaf_twice() {
    let tree = Tree::new()
        .disk("sdb", "8:16")
        .disk("sdc", "8:32")
        .partition("sdb", "sdb1", "8:17")
        .partition("sdb", "sdb2", "8:18")
        .disk("md0", "9:0")
        .member("md0", "sdb/sdb1")
        .member("md0", "sdb/sdb2")
        .member("md0", "sdc")
        .mount("9:0", "/srv", "xfs", "/dev/md0");
    let storage = resolved(&tree, "/srv");
    assert_eq!(storage.bdi.as_str(), "9:0");
    assert_eq!(numbers(&storage.leaves), ["8:16", "8:32"]);
}

#[test]
fn a_loop_of_stacked_devices_ends() {
    let tree = Tree::new().disk("dm-0", "253:0").member("dm-0", "dm-0");
    assert_eq!(numbers(&resolved(&tree, "253:0").leaves), ["253:0"]);
}

#[test]
fn btrfs_has_a_bdi_of_its_own_over_its_members() {
    let tree = Tree::new()
        .disk("sdb", "8:16")
        .partition("sdb", "sdb1", "8:17")
        .disk("sdc", "8:32")
        .disk("sdd", "8:48")
        .btrfs("1b5521b3-f895", "btrfs-1", &["sdd"])
        .btrfs("2b5521b3-f895", "btrfs-2", &["sdb/sdb1", "sdc"])
        .mount("0:39", "/pool", "btrfs", "/dev/sdc")
        .mount("0:40", "/other", "btrfs", "/dev/sdd");
    let storage = resolved(&tree, "/pool/x");
    assert_eq!(storage.bdi.as_str(), "btrfs-2");
    assert_eq!(numbers(&storage.devices), ["8:17", "8:32"]);
    assert_eq!(numbers(&storage.leaves), ["8:16", "8:32"]);
    let stat = storage.stat(&tree.root()).expect("counters").expect("devices");
    assert_eq!(stat.reads, 14, "both members together");
    assert_eq!(resolved(&tree, "/other").bdi.as_str(), "btrfs-1");
    // A member device that is named directly is a disk like any other.
    assert_eq!(resolved(&tree, "/dev/sdc").bdi.as_str(), "8:32");
    // No mount has the device number of a subvolume; the mount id identifies the mount.
    let probe = PathProbe {
        path: "/pool/sub".into(),
        kind: ProbeKind::File,
        device: "0:77".parse().expect("a number"),
        mount_id: Some(2),
    };
    let storage = resolve_probe(&tree.root(), &probe).expect("a subvolume");
    assert_eq!((storage.bdi.as_str(), storage.kind), ("btrfs-2", StorageKind::File));
}

#[test]
fn btrfs_of_an_unknown_source_needs_to_be_the_only_one() {
    let tree = Tree::new().disk("sdb", "8:16").btrfs("1b5521b3-f895", "btrfs-1", &["sdb"]).mount(
        "0:39",
        "/pool",
        "btrfs",
        "/dev/root",
    );
    assert_eq!(resolved(&tree, "/pool").bdi.as_str(), "btrfs-1");
    let tree = tree.disk("sdc", "8:32").btrfs("2b5521b3-f895", "btrfs-2", &["sdc"]);
    assert!(matches!(refused(&tree, "/pool"), HostError::NoBdi { .. }));
}

#[test]
fn a_loop_device_counts_itself_whatever_its_file_is_on() {
    let tree = Tree::new().disk("loop0", "7:0").mount("7:0", "/img", "ext4", "/dev/loop0");
    tree.file("sys/devices/virtual/block/loop0/loop/backing_file", "/var/disk image\n");
    tree.file("sys/devices/virtual/block/loop0/diskseq", "11\n");
    let storage = resolved(&tree, "/img");
    assert_eq!((storage.bdi.as_str(), numbers(&storage.leaves)), ("7:0", vec!["7:0".to_owned()]));
    let facts = device_facts(&tree.root(), storage.devices[0]).expect("facts");
    assert_eq!((facts.kind.as_str(), facts.diskseq), ("loop", Some(11)));
    assert_eq!(facts.backing_file.as_deref(), Some("/var/disk image"));
    assert_eq!(facts.size, Some(Bytes::from_mib(1)));
    assert_eq!(facts.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(facts.max_sectors, Some(Bytes::from_kib(1280)));
    assert_eq!((facts.rotational, facts.optimal_io_size), (Some(true), None));
}

#[test]
fn nfs_and_fuse_have_bdis_of_their_numbers_and_no_device() {
    let tree = Tree::new()
        .bdi("0:46", 15360)
        .bdi("0:47", 128)
        .mount("0:46", "/net/a b", "nfs4", "server:/export")
        .mount("0:47", "/fuse", "fuse.sshfs", "me@there:/");
    let storage = resolved(&tree, "/net/a b/file");
    assert_eq!((storage.bdi.as_str(), storage.devices.len()), ("0:46", 0));
    assert_eq!(storage.stat(&tree.root()).expect("no error"), None::<BlockStat>);
    assert_eq!(resolved(&tree, "/fuse").bdi.as_str(), "0:47");
    assert_eq!(resolved(&tree, "0:46").path, Path::new("/net/a b"));
}

#[test]
fn fuseblk_has_a_bdi_beside_its_disk_s() {
    let tree = Tree::new().bdi("8:1-fuseblk", 128).mount("8:1", "/win", "fuseblk", "/dev/sda1");
    let storage = resolved(&tree, "/win");
    assert_eq!(
        (storage.bdi.as_str(), numbers(&storage.devices)),
        ("8:1-fuseblk", vec!["8:1".into()])
    );
}

#[test]
fn a_counted_bdi_is_taken_where_it_is_the_only_one() {
    let tree = Tree::new().bdi("cifs-3", 1024).mount("0:50", "/smb", "cifs", "//server/share");
    assert_eq!(resolved(&tree, "/smb").bdi.as_str(), "cifs-3");
    let tree = tree.bdi("cifs-4", 1024).mount("0:51", "/smb2", "cifs", "//server/other");
    assert!(matches!(refused(&tree, "/smb"), HostError::NoBdi { .. }));
}

#[test]
fn an_overlay_is_refused_with_its_layers() {
    let options = "rw,lowerdir=/l2:/l1,upperdir=/var/lib/c/diff,workdir=/w";
    let tree = Tree::new().mount_with("0:60", "/merged", "overlay", "overlay", options);
    let text = refused(&tree, "/merged/etc").to_string();
    assert!(text.contains("new files are in /var/lib/c/diff"), "{text}");
    assert!(text.contains("/l2:/l1") && text.contains("volume"), "{text}");
}

#[test]
fn memory_and_made_up_files_are_refused() {
    let tree = Tree::new()
        .mount("0:61", "/tmp", "tmpfs", "tmpfs")
        .mount("0:62", "/proc", "proc", "proc")
        .mount("0:63", "/tank", "zfs", "tank");
    for (path, word) in
        [("/tmp/x", "memory"), ("/proc/1", "generates its files"), ("/tank", "prefetch")]
    {
        let error = refused(&tree, path);
        assert!(matches!(error, HostError::NoBackingDevice { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_device_that_is_gone_is_said_to_be() {
    let tree = Tree::new().disk("sdb", "8:16").mount("8:16", "/data", "xfs", "/dev/sdb");
    let storage = resolved(&tree, "/data");
    tree.remove("sys/dev/block/8:16");
    assert!(matches!(refused(&tree, "/data"), HostError::DeviceGone { .. }));
    assert!(matches!(refused(&tree, "8:16"), HostError::DeviceGone { .. }));
    let gone = storage.stat(&tree.root()).expect_err("no device");
    assert!(matches!(gone, HostError::DeviceGone { .. }), "{gone}");
    assert!(block_stat(&tree.root(), storage.devices[0]).is_err());
    assert!(device_facts(&tree.root(), storage.devices[0]).is_err());
}

#[test]
fn a_sysfs_without_the_bdi_is_told_from_a_lost_device() {
    let tree = Tree::new().disk("sdb", "8:16").mount("8:16", "/data", "xfs", "/dev/sdb");
    tree.remove("sys/class/bdi/8:16");
    let error = refused(&tree, "/data");
    assert!(matches!(error, HostError::NoBdi { .. }), "{error}");
}

#[test]
fn names_links_and_numbers_lead_to_the_same_device() {
    let tree = Tree::new();
    tree.link("dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1", "../../sda1");
    for handle in ["/dev/sda1", "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1", "8:1"] {
        let storage = resolved(&tree, handle);
        assert_eq!(storage.bdi.as_str(), "8:0", "{handle}");
        assert_eq!(numbers(&storage.devices), ["8:1"], "{handle}");
        assert_eq!(storage.kind, StorageKind::BlockDevice, "{handle}");
    }
    assert!(matches!(refused(&tree, "/dev/nothing"), HostError::NotFound { .. }));
}

#[test]
fn hostile_trees_give_errors_and_no_panic() {
    let tree = Tree::new().disk("sdb", "8:16").mount("8:16", "/data", "xfs", "/dev/sdb");
    tree.file("sys/devices/virtual/block/sdb/stat", "one two");
    let storage = resolved(&tree, "/data");
    tree.file("sys/devices/virtual/block/sdb/size", "18446744073709551615");
    tree.file("sys/devices/virtual/block/sdb/queue/max_sectors_kb", "18446744073709551615");
    let facts = device_facts(&tree.root(), storage.devices[0]).expect("facts");
    assert_eq!((facts.size, facts.max_sectors), (None, None));
    let error = storage.stat(&tree.root()).expect_err("no numbers");
    assert!(matches!(error, HostError::Malformed { .. }), "{error}");
    tree.file("sys/devices/virtual/block/sdb/partition", "1\n");
    assert!(matches!(refused(&tree, "/data"), HostError::DeviceGone { .. }));
}

#[test]
fn this_machine_s_paths_are_looked_at() {
    let root = Root::system();
    let missing = resolve(&root, Path::new("/no/such/place")).expect_err("nothing there");
    assert!(matches!(missing, HostError::NotFound { .. }));
    let null = resolve(&root, Path::new("/dev/null")).expect_err("no storage");
    assert!(matches!(null, HostError::NotStorage { what: "character device", .. }), "{null}");
    let made_up = resolve(&root, Path::new("/proc/self")).expect_err("no device");
    assert!(matches!(made_up, HostError::NoBackingDevice { .. }), "{made_up}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_mount_table_is_survived(
        table in "([0-9:/a-z\\\\, -]{0,30} ){0,9}- [a-z0-9 /\\\\=,]{0,30}\n"
    ) {
        let tree = Tree::new();
        let root = tree.root();
        tree.file("proc/self/mountinfo", &table);
        for path in ["/", "/data", "/dev/sda1", "8:1", "0:39"] {
            let _ = resolve(&root, Path::new(path));
        }
    }

    #[test]
    fn any_path_is_survived(path in "\\PC*") {
        let tree = Tree::new();
        let _ = resolve(&tree.root(), Path::new(&path));
        let _ = resolve(&Root::system(), Path::new(&path));
    }
}
