//! Persisted files, as the programs parse them that read them at boot.

#[allow(dead_code)] // these tests use only a part of it
mod stage;

use std::fs;
use std::path::Path;

use foreread_tunables::persist::{
    Draft, PersistBackend, PersistError, ansible, boot_check, cloud_init, drafts, freebsd,
    kubernetes, tuned_parent,
};
use foreread_tunables::{TunableScope, TunableValues};
use host::owners::{Certainty, Owners, Target, Wanted};
use host::resolve;
use stage::{Stage, machine};
use tempfile::TempDir;
use units::Kib;

fn put(dir: &TempDir, path: &str, text: &str) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
    fs::write(path, text).expect("a file");
}

fn settings(text: &str) -> TunableValues {
    text.parse().expect("settings")
}

fn drawn(stage: &Stage, wanted: &str, with: PersistBackend) -> Result<Vec<Draft>, PersistError> {
    let (root, site) = (stage.root(), stage.site());
    let storage = resolve(&root, stage.target.as_ref()).expect("storage");
    drafts(&root, Some(&storage), &site, &settings(wanted), Some(with), "/usr/bin/foreread")
}

/// A machine with its disk in udev's database, and a running TuneD whose own profile requests 4
/// MiB.
fn tuned() -> (TempDir, Stage) {
    let (dir, stage) = machine();
    put(&dir, "run/udev/data/b8:0", "E:ID_SERIAL=SN-0815.x\n");
    put(&dir, "sys/devices/sda/queue/scheduler", "[none] mq-deadline\n");
    put(&dir, "sys/devices/sda/removable", "0\n");
    std::os::unix::fs::symlink("../../devices/sda", {
        let path = dir.path().join("sys/class/block/sda");
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        path
    })
    .expect("a link");
    put(&dir, "etc/tuned/active_profile", "throughput-performance\n");
    let vendor = "usr/lib/tuned/throughput-performance/tuned.conf";
    put(&dir, vendor, "[main]\nsummary=x\n[disk]\nreadahead=>4096\n");
    put(&dir, "run/tuned/tuned.pid", "77\n");
    put(&dir, "proc/77/stat", "77 (tuned)\n");
    (dir, stage)
}

#[test]
fn a_child_profile_knows_the_disk_by_its_serial_number_and_comes_before_its_parent() {
    let (dir, stage) = tuned();
    let files =
        drawn(&stage, "read_ahead=896K scheduler=none vm.dirty_ratio=10", PersistBackend::Tuned);
    let files = files.expect("a profile");
    let [profile] = files.as_slice() else { panic!("{files:?}") };
    assert!(cloud_init(&files).ends_with("\n  - tuned-adm profile foreread\n"), "{files:?}");
    assert!(ansible(&files).contains("command: tuned-adm profile foreread\n"), "{files:?}");
    let text = profile.text();
    let body = "[main]\ninclude=throughput-performance\n\n[foreread_sn-0815-x]\ntype=disk\n\
                priority=-10\ndevices_udev_regex=^ID_SERIAL=SN\\-0815\\.x$\nelevator=none\n\
                readahead=896\n\n[sysctl]\nvm.dirty_ratio=10\n";
    let sections = |text: &str| -> Vec<String> {
        let mut all: Vec<String> = text.split("\n\n").map(|part| part.trim().to_owned()).collect();
        all.sort();
        all
    };
    let found = text.split_once("[main]").map(|(_, rest)| format!("[main]{rest}"));
    assert_eq!(sections(&found.expect("a profile")), sections(body), "{text}");
    // `doctor` derives its claims from the same files.
    put(&dir, "etc/tuned/foreread/tuned.conf", &text);
    put(&dir, "etc/tuned/active_profile", "foreread\n");
    assert_eq!(tuned_parent(&stage.root()).as_deref(), Some("throughput-performance"));
    let target = Target {
        bdi: stage.bdi.clone(),
        name: Some("sda".to_owned()),
        dm: None,
        fstype: None,
        points: Vec::new(),
    };
    let claims = Owners::read(&stage.root()).claims(&stage.root(), &target);
    let last = claims.last().expect("claims");
    assert_eq!(last.wanted, Wanted::Exactly(Kib::new(896)));
    assert!(last.by_foreread && last.certainty == Certainty::Sure, "{last:?}");
    // The profile does not match another disk.
    put(&dir, "run/udev/data/b8:0", "E:ID_SERIAL=SN-0815yx\n");
    let claims = Owners::read(&stage.root()).claims(&stage.root(), &target);
    assert!(claims.iter().all(|claim| !claim.by_foreread), "{claims:?}");
}

#[test]
fn the_unit_that_verifies_is_skipped_once_its_program_is_gone() {
    let unit = boot_check("/opt/100%/foreread").text();
    assert!(unit.contains("\nConditionFileIsExecutable=/opt/100%%/foreread\n\n"), "{unit}");
    assert!(unit.contains("\nExecStart=\"/opt/100%%/foreread\" verify\n"), "{unit}");
}

#[test]
fn what_tuned_cannot_choose_by_property_it_does_not_get() {
    let (dir, stage) = tuned();
    let unfit = drawn(&stage, "nr_requests=256", PersistBackend::Tuned);
    assert!(matches!(unfit, Err(PersistError::Unfit { .. })), "{unfit:?}");
    put(&dir, "run/udev/data/b8:0", "");
    let nameless = drawn(&stage, "read_ahead=896K", PersistBackend::Tuned);
    assert!(matches!(nameless, Err(PersistError::NoIdentity { .. })), "{nameless:?}");
    fs::remove_dir_all(dir.path().join("run/udev/data")).expect("a directory");
    let without_udev = drawn(&stage, "read_ahead=896K", PersistBackend::Tuned);
    assert!(matches!(without_udev, Err(PersistError::NoUdevDatabase { .. })), "{without_udev:?}");
    put(&dir, "etc/tuned/active_profile", "");
    let none = drawn(&stage, "read_ahead=896K", PersistBackend::Tuned);
    assert!(matches!(none, Err(PersistError::NoTuned)), "{none:?}");
    let no_volume = drawn(&stage, "read_ahead=896K", PersistBackend::Lvm);
    assert!(matches!(no_volume, Err(PersistError::Unfit { .. })), "{no_volume:?}");
}

#[test]
fn nfs_mounts_are_left_to_nfs_conf() {
    let (dir, mut stage) = machine();
    put(&dir, "proc/self/mountinfo", "1 0 0:46 / /net rw - nfs4 server:/x rw,rsize=65536\n");
    put(&dir, "sys/class/bdi/0:46/read_ahead_kb", "128\n");
    stage.target = "/net".to_owned();
    let storage = resolve(&stage.root(), Path::new("/net")).expect("storage");
    let site = TunableScope::with_layers(&stage.root(), &storage);
    let wanted = settings("read_ahead=1M");
    let files = drafts(&stage.root(), Some(&storage), &site, &wanted, None, "/usr/bin/foreread");
    let files = files.expect("a file");
    let [conf] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(conf.path, Path::new("/etc/nfs.conf.d/foreread.conf"));
    let mut read = host::owners::nfs_conf::NfsConf::default();
    read.add(&conf.path, &conf.text());
    for fstype in ["nfs", "nfs4"] {
        assert_eq!(read.of(fstype).map(|(kib, _)| kib), Some(Kib::new(1024)), "{}", conf.text());
    }
}

#[test]
fn other_systems_get_the_same_files_in_their_own_words() {
    let (_dir, stage) = machine();
    let files = drawn(&stage, "read_ahead=1M", PersistBackend::Udev).expect("a rule");
    let rule = "ATTR{serial}==\"SN-0815\", ATTR{queue/read_ahead_kb}=\"1024\"";
    let play = ansible(&files);
    assert!(play.contains("dest: /etc/udev/rules.d/99-foreread-sn-0815.rules"), "{play}");
    assert!(play.contains(rule) && play.contains("notify: \"foreread: reload\""), "{play}");
    let cloud = cloud_init(&files);
    assert!(cloud.starts_with("#cloud-config\n") && cloud.contains(rule), "{cloud}");
    assert!(cloud.contains("runcmd:\n  - udevadm control --reload\n"), "{cloud}");
    let unit = drawn(&stage, "nr_requests=256", PersistBackend::Systemd).expect("a unit");
    assert!(ansible(&unit).contains("    enabled: true\n"), "{}", ansible(&unit));
    let enable = "  - systemctl enable --now foreread-apply-data.service\n";
    assert!(cloud_init(&unit).contains(enable), "{}", cloud_init(&unit));
    // The other machine has no record of these files, which `rollback` would need.
    assert!(files[0].text().contains("foreread rollback all"), "{files:?}");
    for text in [play, cloud] {
        assert!(text.contains("to undo, remove this file") && !text.contains("rollback"), "{text}");
    }
    let cluster = kubernetes(&settings("read_ahead=1M scheduler=none")).expect("objects");
    assert_eq!(cluster.split("---\n").count(), 3, "{cluster}");
    for words in ["read_ahead_kb=1024", "device-setting/queue/read_ahead_kb: \"1024\"", "DaemonSet"]
    {
        assert!(cluster.contains(words), "{words}: {cluster}");
    }
    let bsd = freebsd(&settings("vfs.read_max=128")).expect("lines");
    assert!(bsd.ends_with("\nvfs.read_max=128\n"), "{bsd}");
    assert!(freebsd(&settings("read_ahead=1M")).is_err(), "that is Linux's");
}
