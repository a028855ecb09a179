//! Finds the owners of a kernel file in a generated tree.
#![allow(clippy::unwrap_used)] // a test may panic

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use foreread_host::Root;
use foreread_host::owners::{Certainty, setters};
use tempfile::TempDir;

/// A machine with a disk `sda` (8:0), an array `md127` (9:127) known to udev, and a running TuneD.
fn machine() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, number, file) in [
        ("sda", "8:0", "queue/scheduler"),
        ("sda", "8:0", "device/queue_depth"),
        ("md127", "9:127", "md/stripe_cache_size"),
    ] {
        put(&dir, &format!("sys/devices/virtual/block/{name}/{file}"), "1\n");
        put(&dir, &format!("sys/devices/virtual/block/{name}/dev"), &format!("{number}\n"));
        for link in [format!("sys/dev/block/{number}"), format!("sys/class/block/{name}")] {
            let link = dir.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let _ = symlink(format!("../../devices/virtual/block/{name}"), link);
        }
    }
    put(&dir, "run/udev/data/b8:0", "E:ID_SERIAL=S1\n");
    put(&dir, "run/udev/data/b9:127", "E:MD_NAME=host:five\nE:MD_UUID=a:b:c:d\n");
    put(&dir, "etc/tuned/active_profile", "mine\n");
    put(&dir, "run/tuned/tuned.pid", "7\n");
    put(&dir, "proc/7/stat", "7 (tuned)\n");
    put(&dir, "etc/systemd/system/multi-user.target.wants/tune.service", "");
    dir
}

fn put(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const SCHEDULER: &str = "/sys/dev/block/8:0/queue/scheduler";
const DEPTH: &str = "/sys/dev/block/8:0/device/queue_depth";
const STRIPES: &str = "/sys/dev/block/9:127/md/stripe_cache_size";
const DIRTY: &str = "/proc/sys/vm/dirty_bytes";

#[test]
fn every_owner_of_every_kind_of_file_is_found() {
    for (path, text, file, owner) in [
        (
            "etc/udev/rules.d/60-x.rules",
            "KERNEL==\"sd*\", ENV{ID_SERIAL}==\"S1\", ATTR{queue/scheduler}=\"bfq\"",
            SCHEDULER,
            "udev rule",
        ),
        ("etc/udev/rules.d/60-x.rules", "ATTR{device/queue_depth}=\"4\"", DEPTH, "udev rule"),
        (
            "etc/udev/rules.d/60-x.rules",
            "KERNEL==\"md*\", RUN+=\"/bin/sh -c 'echo 8192 > /sys/block/%k/md/stripe_cache_size'\"",
            STRIPES,
            "udev rule",
        ),
        ("etc/tuned/mine/tuned.conf", "[disk]\nelevator=kyber", SCHEDULER, "TuneD profile"),
        ("etc/tuned/mine/tuned.conf", "[sysctl]\nvm.dirty_bytes=9", DIRTY, "TuneD profile"),
        ("etc/tuned/mine/tuned.conf", "[vm]\ndirty_bytes=9", DIRTY, "TuneD profile"),
        (
            "etc/tuned/mine/tuned.conf",
            "[x]\ntype=sysfs\n/sys/block/md*/md/stripe_cache_size=4096",
            STRIPES,
            "TuneD profile",
        ),
        ("etc/sysctl.d/50-x.conf", "vm.dirty_bytes = 7", DIRTY, "sysctl.d"),
        (
            "etc/tmpfiles.d/x.conf",
            "w /sys/block/sda/queue/scheduler - - - - none",
            SCHEDULER,
            "tmpfiles.d",
        ),
        ("etc/tmpfiles.d/x.conf", "w /proc/sys/vm/dirty_bytes - - - - 5", DIRTY, "tmpfiles.d"),
        ("etc/sysfs.conf", "block/sda/device/queue_depth = 1", DEPTH, "sysfs.conf"),
        (
            "etc/systemd/system/tune.service",
            "[Service]\nExecStart=/bin/sh -c 'echo none > /sys/block/sda/queue/scheduler'",
            SCHEDULER,
            "systemd unit",
        ),
        (
            "etc/systemd/system/tune.service",
            "[Service]\nExecStart=/sbin/sysctl -w vm.dirty_bytes=8",
            DIRTY,
            "systemd unit",
        ),
        (
            "etc/mdadm/mdadm.conf",
            "SYSFS name=/dev/md/five stripe_cache_size=9",
            STRIPES,
            "mdadm.conf",
        ),
        ("etc/mdadm.conf", "sysfs uuid=a:b:c:d stripe_cache_size=9", STRIPES, "mdadm.conf"),
    ] {
        let dir = machine();
        put(&dir, path, &format!("{text}\n"));
        let found = setters(&Root::at(dir.path()), Path::new(file));
        let [one] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!((one.owner, one.certainty), (owner, Certainty::Sure), "{text}");
        assert!(!one.by_foreread && one.place.file.ends_with(path), "{one:?}");
    }
}

#[test]
fn what_is_about_something_else_is_no_owner() {
    for (path, text, file) in [
        (
            "etc/udev/rules.d/60-x.rules",
            "KERNEL==\"sdb\", ATTR{queue/scheduler}=\"bfq\"",
            SCHEDULER,
        ),
        ("etc/udev/rules.d/60-x.rules", "ATTR{queue/scheduler}==\"bfq\"", SCHEDULER),
        ("etc/udev/rules.d/60-x.rules", "ATTR{queue/rotational}=\"0\"", SCHEDULER),
        ("etc/tuned/other/tuned.conf", "[disk]\nelevator=kyber", SCHEDULER),
        ("etc/sysctl.d/50-x.conf", "vm.dirty_ratio = 7", DIRTY),
        ("etc/tmpfiles.d/x.conf", "w /sys/block/sdb/queue/scheduler - - - - none", SCHEDULER),
        ("etc/mdadm.conf", "SYSFS name=/dev/md/ten stripe_cache_size=9", STRIPES),
        ("etc/mdadm.conf", "ARRAY /dev/md/five stripe_cache_size=9", STRIPES),
    ] {
        let dir = machine();
        put(&dir, path, &format!("{text}\n"));
        let found = setters(&Root::at(dir.path()), Path::new(file));
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn what_cannot_be_looked_up_is_in_doubt_and_what_foreread_wrote_is_ours() {
    let dir = machine();
    let root = Root::at(dir.path());
    put(
        &dir,
        "etc/udev/rules.d/60-x.rules",
        "PROGRAM==\"/bin/x\", ATTR{queue/scheduler}=\"bfq\"\n",
    );
    assert_eq!(setters(&root, Path::new(SCHEDULER))[0].certainty, Certainty::Perhaps);
    put(
        &dir,
        "etc/udev/rules.d/60-x.rules",
        "# managed by foreread\nATTR{queue/scheduler}=\"bfq\"\n",
    );
    assert!(setters(&root, Path::new(SCHEDULER))[0].by_foreread);
}

#[test]
fn rules_that_an_uncertain_goto_may_skip_are_in_doubt() {
    let set = "ATTR{queue/scheduler}=\"bfq\"";
    let may_skip = "PROGRAM==\"/bin/x\", GOTO=\"end\"";
    let (perhaps, sure) = (Certainty::Perhaps, Certainty::Sure);
    for (rules, expected) in [
        // The number of the line that sets the scheduler, and its certainty.
        (vec![may_skip, set, "LABEL=\"end\"", set], vec![(2, perhaps), (4, sure)]),
        (vec![may_skip, "KERNEL==\"sda\", GOTO=\"end\"", set, "LABEL=\"end\""], vec![]),
        (
            vec![may_skip, "GOTO=\"far\"", set, "LABEL=\"end\"", set, "LABEL=\"far\"", set],
            vec![(5, perhaps), (7, sure)],
        ),
        (
            vec![may_skip, "GOTO=\"near\"", set, "LABEL=\"near\"", set, "LABEL=\"end\""],
            vec![(5, perhaps)],
        ),
        // Two that may be followed, and one that is: rules behind the nearest label are in doubt.
        (
            vec![
                "PROGRAM==\"/bin/x\", GOTO=\"near\"",
                may_skip,
                "GOTO=\"far\"",
                set,
                "LABEL=\"near\"",
                set,
                "LABEL=\"end\"",
                set,
                "LABEL=\"far\"",
                set,
            ],
            vec![(6, perhaps), (8, perhaps), (10, sure)],
        ),
        // udev ignores a GOTO whose label is missing or earlier.
        (vec!["LABEL=\"end\"", may_skip, "GOTO=\"end\"", set], vec![(4, sure)]),
    ] {
        let dir = machine();
        put(&dir, "etc/udev/rules.d/60-x.rules", &(rules.join("\n") + "\n"));
        let found = setters(&Root::at(dir.path()), Path::new(SCHEDULER));
        let found: Vec<_> = found.iter().map(|it| (it.place.line, it.certainty)).collect();
        assert_eq!(found, expected, "{rules:#?}");
    }
}

#[test]
fn a_property_that_an_uncertain_rule_sets_is_in_doubt() {
    let dir = machine();
    put(
        &dir,
        "etc/udev/rules.d/60-x.rules",
        "PROGRAM==\"/bin/x\", ENV{SLOW}=\"1\"\n\
         ENV{SLOW}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n\
         ENV{SLOW}!=\"1\", ATTR{queue/scheduler}=\"none\"\n\
         ENV{SLOW}=\"0\"\n\
         ENV{SLOW}==\"0\", ATTR{queue/scheduler}=\"kyber\"\n",
    );
    let found = setters(&Root::at(dir.path()), Path::new(SCHEDULER));
    let found: Vec<_> = found.iter().map(|it| (it.place.line, it.certainty)).collect();
    let (perhaps, sure) = (Certainty::Perhaps, Certainty::Sure);
    assert_eq!(found, [(2, perhaps), (3, perhaps), (5, sure)]);
}
