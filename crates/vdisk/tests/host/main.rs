//! Tests virtual disks on the real kernel. Needs root, FUSE and loop devices; otherwise skips.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // tests throughout, helpers included

mod stage;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use foreread_vdisk::{
    DiskConfig, DiskState, Filesystem, Lifetime, ServerCommand, VdiskError, VirtualDisk, list,
    remove, show,
};
use host::{DevNo, Root, block_stat};
use rustix::process::Signal;
use units::Bytes;

use stage::{
    HALF_MS, HDD, HELPER, Stage, ZERO, end, noise, read_direct, wait_until, write_and_read_back,
};

fn is_mounted(point: &Path, fstype: &str) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let found = |info: &host::MountInfo| info.mount.point == point && info.mount.fstype == fstype;
    host::parse_mountinfo(&table).iter().any(found)
}

fn is_made_listed_shown_and_removed(test: &str, filesystem: Filesystem) {
    let Some(stage) = Stage::set(test, filesystem) else { return };
    let disk = stage.create("one", HALF_MS, &format!("fs={filesystem},size=1G,dilation=2"));
    if let Some(point) = disk.mountpoint() {
        assert!(is_mounted(point, filesystem.name()));
    }
    assert_eq!(disk.mountpoint().is_none(), filesystem == Filesystem::Raw);
    let shown = show(&stage.dirs, "one").unwrap();
    assert_eq!((shown.state, shown.record.as_ref()), (DiskState::Serving, Some(disk.record())));
    assert_eq!(list(&stage.dirs).unwrap().len(), 1);
    assert_eq!(disk.dilation(), 2.0);
    assert_eq!(VirtualDisk::open(&stage.dirs, "one").unwrap().record(), disk.record());
    let facts = disk.record();
    let again = DiskConfig::parse(&facts.words).unwrap();
    assert_eq!((again.size, again.filesystem), (Bytes::from_gib(1), filesystem));
    remove(&stage.dirs, "one").unwrap();
    drop(disk);
    // The server is a child of this process: it may be a zombie, which has no command line.
    stage.assert_nothing_left();
    assert!(matches!(remove(&stage.dirs, "one"), Err(VdiskError::NoSuchDisk { .. })));
}

#[test]
fn host_an_xfs_disk_is_made_listed_shown_and_removed() {
    is_made_listed_shown_and_removed("host_an_xfs_disk…", Filesystem::Xfs);
}

#[test]
fn host_an_ext4_disk_is_made_listed_shown_and_removed() {
    is_made_listed_shown_and_removed("host_an_ext4_disk…", Filesystem::Ext4);
}

#[test]
fn host_an_ext3_disk_is_made_listed_shown_and_removed() {
    is_made_listed_shown_and_removed("host_an_ext3_disk…", Filesystem::Ext3);
}

#[test]
fn host_a_btrfs_disk_is_made_listed_shown_and_removed() {
    is_made_listed_shown_and_removed("host_a_btrfs_disk…", Filesystem::Btrfs);
}

#[test]
fn host_a_raw_disk_is_made_listed_shown_and_removed() {
    is_made_listed_shown_and_removed("host_a_raw_disk…", Filesystem::Raw);
}

#[test]
fn host_what_is_written_is_read_back_while_the_model_keeps_time() {
    for filesystem in [Filesystem::Xfs, Filesystem::Ext4, Filesystem::Raw] {
        let Some(stage) = Stage::set("host_what_is_written…", filesystem) else { continue };
        let disk = stage.create("data", HALF_MS, &format!("fs={filesystem},size=512M"));
        let path = match disk.mountpoint() {
            Some(point) => point.join("file"),
            None => disk.device().to_owned(),
        };
        let data = noise(1, 24 << 20);
        disk.reset().unwrap();
        assert!(write_and_read_back(&path, &data) == data, "{filesystem}: other data came back");
        let counters = disk.counters().unwrap();
        assert!(counters.timing && counters.timed >= 2 * 24 * 4, "{counters:?}");
        assert!(counters.read_bytes >= Bytes::from_mib(24), "{counters:?}");
        assert!(counters.stored >= Bytes::from_mib(24), "{counters:?}");
        assert_eq!(counters.refused_writes, 0);
        disk.remove().unwrap();
        stage.assert_nothing_left();
    }
}

#[test]
fn host_counters_add_up_exactly() {
    let Some(stage) = Stage::set("host_counters_add_up_exactly", Filesystem::Raw) else { return };
    let disk = stage.create("count", HALF_MS, "fs=raw,size=64M");
    disk.reset().unwrap();
    let before = block_stat(&Root::system(), disk.devno()).unwrap();
    read_direct(disk.device(), 64 << 10, 256);
    let counters = disk.counters().unwrap();
    assert_eq!((counters.requests(), counters.reads, counters.timed), (256, 256, 256));
    assert_eq!((counters.bytes(), counters.read_bytes), (Bytes::from_mib(16), Bytes::from_mib(16)));
    assert_eq!((counters.writes, counters.flushes, counters.queue), (0, 0, 0));
    assert!((1.0..1.01).contains(&counters.queue_mean), "{counters:?}");
    // Replies may be late on a busy machine, but never early.
    assert!(counters.service_p50.as_millis_f64() >= 0.5, "{counters:?}");
    let after = block_stat(&Root::system(), disk.devno()).unwrap();
    assert_eq!(after.reads - before.reads, 256);
    disk.set_timing(false).unwrap();
    read_direct(disk.device(), 64 << 10, 16);
    let counters = disk.counters().unwrap();
    assert_eq!((counters.reads, counters.timed, counters.timing), (272, 256, false));
    disk.remove().unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_the_queue_is_the_model_s_and_the_read_ahead_the_kernel_s() {
    let test = "host_the_queue_is_the_model_s_and_the_read_ahead_the_kernel_s";
    let Some(stage) = Stage::set(test, Filesystem::Raw) else { return };
    let fresh = stage.create("fresh", ZERO, "fs=raw,size=64M");
    let disk = stage.create("queue", HALF_MS, "fs=raw,size=64M");
    let queue = &disk.record().queue;
    assert_eq!((queue.requests, queue.requests_wanted), (64, 64));
    assert_eq!((queue.request_size, &*queue.scheduler), (Bytes::from_kib(256), "none"));
    assert_eq!(queue.read_ahead, fresh.record().queue.read_ahead);
    let read_of = |disk: &VirtualDisk, attribute: &str| {
        let path = format!("/sys/block/loop{}/{attribute}", disk.record().loop_number);
        fs::read_to_string(path).unwrap().trim().to_owned()
    };
    let read = |attribute: &str| read_of(&disk, attribute);
    assert_eq!(read("queue/read_ahead_kb"), queue.read_ahead.get().to_string());
    assert_eq!(read("queue/max_sectors_kb"), "256");
    assert_eq!((read("loop/dio"), read("queue/logical_block_size")), ("1".into(), "4096".into()));
    assert_eq!(read("queue/rotational"), "0");
    let rotating = stage.create("rotating", HDD, "fs=raw,size=64M");
    assert_eq!(read_of(&rotating, "queue/rotational"), "1");
    assert_eq!(rotating.record().queue.read_ahead, queue.read_ahead);
    rotating.remove().unwrap();
    disk.reset().unwrap();
    read_direct(disk.device(), 1 << 20, 4);
    let counters = disk.counters().unwrap();
    assert_eq!((counters.reads, counters.queue_max), (16, 4));
    fresh.remove().unwrap();
    disk.remove().unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_a_scheduler_before_the_model_is_as_slow_as_the_disk() {
    let test = "host_a_scheduler_before_the_model_is_as_slow_as_the_disk";
    let Some(stage) = Stage::set(test, Filesystem::Raw) else { return };
    let words = "fs=raw,size=64M,dilation=3,scheduler=mq-deadline";
    let disk = stage.create("sorted", HALF_MS, words);
    let number = disk.record().loop_number;
    assert_eq!(disk.record().queue.scheduler, "mq-deadline");
    let expiry = format!("/sys/block/loop{number}/queue/iosched/read_expire");
    assert_eq!(fs::read_to_string(expiry).unwrap().trim(), "1500");
    assert_eq!(disk.record().queue.requests, 2048);
    disk.remove().unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_a_killed_server_leaves_nothing_that_remove_cannot_clean() {
    for filesystem in [Filesystem::Xfs, Filesystem::Ext4, Filesystem::Raw] {
        let Some(stage) = Stage::set("host_a_killed_server…", filesystem) else { continue };
        let disk = stage.create("victim", HALF_MS, &format!("fs={filesystem},size=512M"));
        if let Some(point) = disk.mountpoint() {
            // Dirty data that never reaches the disk.
            fs::write(point.join("dirty"), noise(2, 1 << 20)).unwrap();
        }
        end(disk.record().pid, Signal::KILL);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(show(&stage.dirs, "victim").unwrap().state, DiskState::Dead);
        assert!(matches!(disk.counters(), Err(VdiskError::Dead { .. })));
        remove(&stage.dirs, "victim").unwrap();
        stage.assert_nothing_left();
    }
}

#[test]
fn host_a_dead_disk_is_removed_from_under_its_users() {
    for filesystem in [Filesystem::Xfs, Filesystem::Ext4, Filesystem::Raw] {
        let test = "host_a_dead_disk_is_removed_from_under_its_users";
        let Some(stage) = Stage::set(test, filesystem) else { continue };
        let disk = stage.create("mourned", HALF_MS, &format!("fs={filesystem},size=512M"));
        let file = match disk.mountpoint() {
            Some(point) => {
                fs::write(point.join("file"), noise(8, 1 << 20)).unwrap();
                File::open(point.join("file")).unwrap()
            }
            None => File::open(disk.device()).unwrap(),
        };
        let inside = disk.mountpoint().unwrap_or(Path::new("/"));
        let mut user = Command::new("sleep").arg("600").current_dir(inside).spawn().unwrap();
        end(disk.record().pid, Signal::KILL);
        std::thread::sleep(Duration::from_millis(50));
        let removed = remove(&stage.dirs, "mourned");
        user.kill().unwrap();
        user.wait().unwrap();
        drop(file);
        removed.unwrap();
        // The kernel no longer knows the path of the file under the loop device.
        let bound = format!("/sys/block/loop{}/loop/backing_file", disk.record().loop_number);
        wait_until(|| !Path::new(&bound).exists());
        assert!(!Path::new(&bound).exists(), "{bound} is still there");
        stage.await_nothing_left();
        // The users of a removed disk leave an unconfigured device, which any process may use.
        let _ = sys::loopdev::remove(disk.record().loop_number);
    }
}

#[test]
fn host_a_server_that_hangs_can_be_removed() {
    let test = "host_a_server_that_hangs_can_be_removed";
    let Some(stage) = Stage::set(test, Filesystem::Ext4) else { return };
    let disk = stage.create("stopped", HALF_MS, "fs=ext4,size=512M");
    fs::write(disk.target().join("dirty"), noise(3, 1 << 20)).unwrap();
    end(disk.record().pid, Signal::STOP);
    remove(&stage.dirs, "stopped").unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_a_server_that_is_asked_to_end_takes_its_disk_down() {
    let test = "host_a_server_that_is_asked_to_end_takes_its_disk_down";
    let Some(stage) = Stage::set(test, Filesystem::Xfs) else { return };
    let disk = stage.create("asked", HALF_MS, "fs=xfs,size=512M");
    fs::write(disk.target().join("file"), noise(4, 1 << 20)).unwrap();
    end(disk.record().pid, Signal::TERM);
    stage.await_nothing_left();
}

#[test]
fn host_a_disk_dies_with_its_creator() {
    // Not SIGINT: background processes of a shell ignore it, and their children inherit that.
    for (filesystem, signal) in [(Filesystem::Xfs, Signal::KILL), (Filesystem::Raw, Signal::TERM)] {
        let Some(stage) = Stage::set("host_a_disk_dies_with_its_creator", filesystem) else {
            return;
        };
        let mut creator = Command::new(HELPER)
            .arg("hold")
            .arg(stage.base.path())
            .arg(stage.words(HALF_MS, &format!("fs={filesystem},size=512M")))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut target = String::new();
        BufReader::new(creator.stdout.take().unwrap()).read_line(&mut target).unwrap();
        let disks = list(&stage.dirs).unwrap();
        assert_eq!((disks.len(), disks[0].state), (1, DiskState::Serving));
        let number = disks[0].record.as_ref().unwrap().loop_number;
        // A process that uses the disk does not keep it alive.
        let in_use = File::open(PathBuf::from(target.trim())).unwrap();
        end(creator.id(), signal);
        creator.wait().unwrap();
        let device = Path::new("/sys/block").join(format!("loop{number}"));
        stage.await_nothing_but(&device);
        drop(in_use);
        stage.await_nothing_left();
        wait_until(|| !device.exists());
        assert!(!device.exists(), "the loop device stays");
    }
}

#[test]
fn host_a_dropped_disk_is_gone() {
    let Some(stage) = Stage::set("host_a_dropped_disk_is_gone", Filesystem::Ext4) else { return };
    let disk = stage.try_create("drop", ZERO, "fs=ext4,size=512M", Lifetime::DiesWithMe).unwrap();
    fs::write(disk.target().join("file"), "contents").unwrap();
    drop(disk);
    stage.assert_nothing_left();
}

#[test]
fn host_two_disks_are_two() {
    let Some(stage) = Stage::set("host_two_disks_are_two", Filesystem::Raw) else { return };
    let one = stage.create("one", HALF_MS, "fs=raw,size=64M");
    let two = stage.create("two", ZERO, "fs=raw,size=64M");
    let devices: [DevNo; 2] = [one.devno(), two.devno()];
    assert_ne!(devices[0], devices[1]);
    let names: Vec<String> = list(&stage.dirs).unwrap().into_iter().map(|disk| disk.name).collect();
    assert_eq!(names, ["one", "two"]);
    let (left, right) = (noise(5, 4 << 20), noise(6, 4 << 20));
    assert!(write_and_read_back(one.device(), &left) == left);
    assert!(write_and_read_back(two.device(), &right) == right);
    one.remove().unwrap();
    let mut still = vec![0; 4 << 20];
    File::open(two.device()).unwrap().read_exact(&mut still).unwrap();
    assert!(still == right, "removing one disk changed the other");
    two.remove().unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_a_name_is_taken_once() {
    let Some(stage) = Stage::set("host_a_name_is_taken_once", Filesystem::Raw) else { return };
    let disk = stage.create("mine", ZERO, "fs=raw,size=64M");
    let second = stage.try_create("mine", ZERO, "fs=raw,size=64M", Lifetime::Kept);
    assert!(matches!(second, Err(VdiskError::NameTaken { .. })), "{second:?}");
    read_direct(disk.device(), 4096, 1);
    disk.remove().unwrap();
    stage.assert_nothing_left();
}

#[test]
fn host_a_disk_in_use_is_not_removed_and_goes_on() {
    let test = "host_a_disk_in_use_is_not_removed_and_goes_on";
    let Some(stage) = Stage::set(test, Filesystem::Ext4) else { return };
    let disk = stage.create("busy", HALF_MS, "fs=ext4,size=512M");
    let path = disk.target().join("file");
    fs::write(&path, "contents").unwrap();
    let file = File::open(&path).unwrap();
    assert!(matches!(remove(&stage.dirs, "busy"), Err(VdiskError::Busy { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "contents");
    assert!(disk.counters().unwrap().timing);
    drop(file);
    disk.remove().unwrap();
    stage.assert_nothing_left();
}

/// A mount namespace of another program may keep a disk busy, which must not spoil a measurement.
#[test]
fn host_a_creator_releases_a_disk_that_is_in_use() {
    for filesystem in [Filesystem::Ext4, Filesystem::Raw] {
        let test = "host_a_creator_releases_a_disk_that_is_in_use";
        let Some(stage) = Stage::set(test, filesystem) else { continue };
        let words = format!("fs={filesystem},size=512M");
        let disk = stage.try_create("mine", HALF_MS, &words, Lifetime::DiesWithMe).unwrap();
        let device = Path::new("/sys/block").join(format!("loop{}", disk.record().loop_number));
        let in_use = File::open(disk.target()).unwrap();
        disk.release().unwrap();
        stage.await_nothing_but(&device);
        drop(in_use);
        stage.await_nothing_left();
        wait_until(|| !device.exists());
        assert!(!device.exists(), "the loop device stays");
    }
}

#[test]
fn host_a_disk_whose_device_is_open_is_not_removed_and_goes_on() {
    for filesystem in [Filesystem::Xfs, Filesystem::Ext4, Filesystem::Raw] {
        let test = "host_a_disk_whose_device_is_open_is_not_removed_and_goes_on";
        let Some(stage) = Stage::set(test, filesystem) else { continue };
        let disk = stage.create("held", HALF_MS, &format!("fs={filesystem},size=512M"));
        let path = disk.mountpoint().map(|point| point.join("file"));
        if let Some(path) = &path {
            fs::write(path, "contents").unwrap();
        }
        let block = format!("/sys/block/loop{}", disk.record().loop_number);
        let settings = || {
            ["loop/dio", "loop/autoclear", "queue/max_sectors_kb", "queue/read_ahead_kb"]
                .map(|attribute| fs::read_to_string(format!("{block}/{attribute}")).unwrap())
        };
        let before = settings();
        let opened = File::open(disk.device()).unwrap();
        assert!(matches!(remove(&stage.dirs, "held"), Err(VdiskError::Busy { .. })));
        assert!(disk.counters().unwrap().timing);
        drop(opened);
        assert_eq!(settings(), before);
        // The last close does not release the device either.
        read_direct(disk.device(), 4096, 4);
        assert_eq!(show(&stage.dirs, "held").unwrap().state, DiskState::Serving);
        if let Some(path) = &path {
            assert!(is_mounted(disk.target(), filesystem.name()));
            assert_eq!(fs::read_to_string(path).unwrap(), "contents");
        }
        disk.remove().unwrap();
        stage.assert_nothing_left();
    }
}

#[test]
fn host_a_server_that_does_not_start_leaves_nothing() {
    let test = "host_a_server_that_does_not_start_leaves_nothing";
    let Some(stage) = Stage::set(test, Filesystem::Raw) else { return };
    let config = || stage.config("never", ZERO, "fs=raw,size=64M");
    let silent = ServerCommand { program: "/bin/false".into(), args: Vec::new() };
    let error = VirtualDisk::create(&stage.dirs, config(), &silent, Lifetime::Kept).unwrap_err();
    assert!(matches!(error, VdiskError::Server { .. }), "{error}");
    stage.assert_nothing_left();
    let verbose = ServerCommand { program: HELPER.into(), args: vec!["no-verb".into()] };
    let error = VirtualDisk::create(&stage.dirs, config(), &verbose, Lifetime::Kept).unwrap_err();
    assert!(error.to_string().contains("no such verb"), "{error}");
    stage.assert_nothing_left();
    let missing = ServerCommand { program: "/no/such/program".into(), args: Vec::new() };
    let error = VirtualDisk::create(&stage.dirs, config(), &missing, Lifetime::Kept).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    stage.assert_nothing_left();
}

#[test]
fn host_discarded_space_gives_its_memory_back() {
    let test = "host_discarded_space_gives_its_memory_back";
    let Some(stage) = Stage::set(test, Filesystem::Ext4) else { return };
    let disk = stage.create("trim", ZERO, "fs=ext4,size=512M");
    let path = disk.target().join("file");
    let mut file = File::create(&path).unwrap();
    file.write_all(&noise(7, 32 << 20)).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let full = disk.counters().unwrap().stored;
    assert!(full >= Bytes::from_mib(32));
    fs::remove_file(&path).unwrap();
    // The file system only knows that the space is free after its journal is committed.
    rustix::fs::syncfs(File::open(disk.target()).unwrap()).unwrap();
    let trimmed = Command::new("fstrim").arg(disk.target()).status();
    if trimmed.is_ok_and(|status| status.success()) {
        let left = disk.counters().unwrap().stored;
        assert!(left <= full.saturating_sub(Bytes::from_mib(30)), "{left} of {full} left");
    } else {
        println!("SKIP {test}: no fstrim here");
    }
    disk.remove().unwrap();
    stage.assert_nothing_left();
}
