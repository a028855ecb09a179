//! Leases on the kernel's real read-ahead, with a loop device of the tests. These tests need root.

// A skipped test prints why.
#![allow(clippy::print_stdout)]

#[allow(dead_code)] // these tests use only a part of it
mod stage;

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use foreread_tunables::{
    BdiLease, RestoreOutcome, RestoreReport, RollbackSelection, Setting, TunableError,
    TunableValues, apply, find, plan_apply, rollback,
};
use host::resolve;
use rustix::process::{Pid, Signal, kill_process};
use stage::{Stage, fifty_moments, kib, survives_kills};
use sys::lock::Lock;
use sys::loopdev::{LoopDevice, find_free, release};
use tempfile::TempDir;
use testkit::HOST_LOCK;
use units::Bytes;

/// A loop device with a file of 256 MiB; detached on drop.
struct Loop {
    stage: Stage,
    node: PathBuf,
    original: u64,
    dir: TempDir,
    _turn: Lock,
}

impl Loop {
    /// Attaches a device, or prints why the test `name` is skipped. Host tests run one at a time.
    fn attach(name: &str) -> Option<Self> {
        let skip = |reason: String| {
            println!("SKIP {name}: {reason}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("needs root".to_owned());
        }
        let turn = match Lock::acquire(Path::new(HOST_LOCK)) {
            Ok(turn) => turn,
            Err(error) => return skip(format!("no lock ({error})")),
        };
        let dir = tempfile::tempdir().expect("a directory");
        let device = match attach(&dir.path().join("disk.img")) {
            Ok(device) => device,
            Err(error) => return skip(format!("no loop device ({error})")),
        };
        let (node, bdi) = (device.path(), format!("7:{}", device.number()));
        drop(device);
        let stage = Stage::new(None, node.to_str().expect("a name"), &bdi);
        let value = fs::read_to_string(stage.bdi.dir().join("read_ahead_kb")).expect("a value");
        let original = value.trim().parse().expect("a number");
        Some(Self { stage, node, original, dir, _turn: turn })
    }

    fn begin(&self) -> BdiLease {
        self.try_begin(&self.node).expect("a lease")
    }

    fn try_begin(&self, target: &Path) -> Result<BdiLease, TunableError> {
        let root = self.stage.root();
        let storage = resolve(&root, target).expect("storage");
        BdiLease::begin(&self.stage.dirs(), &root, &storage, &self.stage.guard())
    }

    fn assert_as_before(&self) {
        assert_eq!(self.stage.value(), kib(self.original));
        assert!(self.stage.journals().is_empty());
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let file = self.stage.bdi.dir().join("read_ahead_kb");
        let _ = fs::write(file, format!("{}\n", self.original));
        let _ = release(&self.node);
    }
}

fn attach(path: &Path) -> std::io::Result<LoopDevice> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    file.set_len(Bytes::from_mib(256).get())?;
    LoopDevice::set_up(find_free()?, file.as_fd(), Bytes::new(4096))
}

fn set(lease: &mut BdiLease, window_kib: u64) -> Result<(), TunableError> {
    lease.set(find("read_ahead").expect("it"), &kib(window_kib)).map(drop)
}

fn outcomes(undone: &[RestoreReport]) -> Vec<RestoreOutcome> {
    undone.iter().map(|one| one.outcome.clone()).collect()
}

/// Runs a program; returns false if it does not exist or fails.
fn run(program: &str, arguments: &[&str]) -> bool {
    let quiet = || Stdio::null();
    let status = Command::new(program).args(arguments).stdout(quiet()).stderr(quiet()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn host_the_kernel_keeps_what_is_set_and_gets_it_back() {
    let Some(device) = Loop::attach("host_the_kernel_keeps_what_is_set_and_gets_it_back") else {
        return;
    };
    let mut lease = device.begin();
    // Both families of the default grid, zero and the maximum.
    for window in [0, 4, 68, 128, 1088, 65536, 1 << 20] {
        set(&mut lease, window).expect("set");
        assert_eq!(device.stage.value(), kib(window));
    }
    // The block device's own file shows the same value.
    let queue = format!("/sys/block/{}/queue/read_ahead_kb", name(&device.node));
    assert_eq!(fs::read_to_string(queue).expect("a value").trim(), (1 << 20).to_string());
    assert_eq!(outcomes(&lease.restore().expect("put back")), [RestoreOutcome::Restored]);
    device.assert_as_before();
}

fn name(node: &Path) -> &str {
    node.file_name().and_then(|name| name.to_str()).expect("a name")
}

#[test]
fn host_fifty_kills_change_nothing() {
    let Some(device) = Loop::attach("host_fifty_kills_change_nothing") else { return };
    survives_kills(&device.stage, fifty_moments());
    device.assert_as_before();
}

#[test]
fn host_a_second_owner_is_refused() {
    let Some(device) = Loop::attach("host_a_second_owner_is_refused") else { return };
    let mut child = device.stage.flipping();
    let pid = child.id();
    let error = device.try_begin(&device.node).expect_err("taken");
    assert!(matches!(error, TunableError::Busy { pid: Some(owner), .. } if owner == pid));
    child.kill().expect("killed");
    child.wait().expect("its end");
    // Without a delay here: the lease waits for the guard.
    let lease = device.begin();
    assert_eq!(device.stage.value(), kib(device.original));
    lease.restore().expect("put back");
    device.assert_as_before();
}

#[test]
fn host_a_rollback_undoes_a_power_cut() {
    let Some(device) = Loop::attach("host_a_rollback_undoes_a_power_cut") else { return };
    let stage = &device.stage;
    stage.power_cut();
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert_eq!(outcomes(&result.undone), [RestoreOutcome::Restored], "{result:?}");
    device.assert_as_before();
}

#[test]
fn host_an_administrator_s_value_is_left_alone() {
    let Some(device) = Loop::attach("host_an_administrator_s_value_is_left_alone") else { return };
    let mut lease = device.begin();
    set(&mut lease, 64).expect("set");
    device.stage.set_by_hand(776);
    assert!(matches!(set(&mut lease, 32), Err(TunableError::ChangedByOther { .. })));
    let undone = lease.restore().expect("seen to");
    assert_eq!(outcomes(&undone), [RestoreOutcome::LeftAlone { present: kib(776) }]);
    assert_eq!(device.stage.value(), kib(776));
}

#[test]
fn host_a_loop_device_left_vacant_is_put_back_for_the_next_user() {
    let test = "host_a_loop_device_left_vacant_is_put_back_for_the_next_user";
    let Some(device) = Loop::attach(test) else { return };
    let mut lease = device.begin();
    set(&mut lease, 65536).expect("set");
    release(&device.node).expect("detached");
    assert_eq!(outcomes(&lease.restore().expect("put back")), [RestoreOutcome::Restored]);
    device.assert_as_before();
}

#[test]
fn host_a_loop_device_with_another_file_is_another_device() {
    let test = "host_a_loop_device_with_another_file_is_another_device";
    let Some(device) = Loop::attach(test) else { return };
    let mut lease = device.begin();
    set(&mut lease, 65536).expect("set");
    release(&device.node).expect("detached");
    let other = attach(&device.dir.path().join("other.img")).expect("a loop device");
    if other.path() != device.node {
        println!("SKIP {test}: the kernel gave another loop device");
        let node = other.path();
        drop(other);
        release(&node).expect("detached");
        return;
    }
    drop(other);
    assert_eq!(outcomes(&lease.restore().expect("seen to")), [RestoreOutcome::DeviceGone]);
    assert_eq!(device.stage.value(), kib(65536), "it is not ours any more");
}

#[test]
fn host_a_file_system_that_is_unmounted_takes_its_bdi_along() {
    let test = "host_a_file_system_that_is_unmounted_takes_its_bdi_along";
    let Some(device) = Loop::attach(test) else { return };
    let node = device.node.to_str().expect("a name");
    let point = device.dir.path().join("mnt");
    fs::create_dir(&point).expect("a directory");
    let point = point.to_str().expect("a name");
    if !run("mkfs.btrfs", &["-q", node]) || !run("mount", &["-t", "btrfs", node, point]) {
        println!("SKIP {test}: no btrfs here");
        return;
    }
    let begun = device.try_begin(Path::new(point));
    let changed = begun.and_then(|mut lease| set(&mut lease, 64).map(|()| lease));
    // Unmount before any assertion may fail, because the mount would outlive the test.
    assert!(run("umount", &[point]), "umount {point}");
    let undone = changed.expect("set").restore().expect("seen to");
    assert_eq!(outcomes(&undone), [RestoreOutcome::DeviceGone]);
    assert!(undone[0].bdi.as_str().starts_with("btrfs-"), "{undone:?}");
    device.assert_as_before();
}

/// Applies settings in the order of a command line, as `foreread apply` does.
fn apply_settings(stage: &Stage, words: &[&str]) -> Result<(), TunableError> {
    let (root, site) = (stage.root(), stage.site());
    let settings = words.iter().try_fold(TunableValues::default(), |settings, word| {
        word.parse::<Setting>().map(|setting| settings.with(setting))
    })?;
    let plan = plan_apply(&root, &site, &settings, 1)?;
    apply(&stage.dirs(), &root, &site, &plan, &stage.guard()).map(drop)
}

/// Returns all permutations of a list.
fn orders(words: &[&'static str]) -> Vec<Vec<&'static str>> {
    if words.len() < 2 {
        return vec![words.to_vec()];
    }
    let each = (0..words.len()).flat_map(|first| {
        let mut rest = words.to_vec();
        let word = rest.remove(first);
        orders(&rest).into_iter().map(move |tail| [vec![word], tail].concat())
    });
    each.collect()
}

/// Returns the queue's values that the tests change, from sysfs.
fn queue(node: &Path) -> Vec<String> {
    let files = ["scheduler", "nr_requests", "max_sectors_kb", "rotational", "read_ahead_kb"];
    let read = |file| fs::read_to_string(format!("/sys/block/{}/queue/{file}", name(node)));
    files.map(|file| read(file).expect("a value").trim().to_owned()).to_vec()
}

/// Reads 4 MiB of the device page by page; returns the mean size of the requests in KiB.
fn mean_request(node: &Path) -> u64 {
    use std::os::unix::fs::FileExt;
    let stat = || {
        let text = fs::read_to_string(format!("/sys/block/{}/stat", name(node))).expect("counters");
        let numbers: Vec<u64> =
            text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        (numbers[0], numbers[2])
    };
    let file = File::open(node).expect("the device");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("evicted");
    let before = stat();
    let mut page = [0; 4096];
    for at in 0..1024 {
        file.read_exact_at(&mut page, at * 4096).expect("read");
    }
    let after = stat();
    (after.1 - before.1) / 2 / (after.0 - before.0).max(1)
}

#[test]
fn host_order_trap_every_order_ends_with_every_value() {
    let test = "host_order_trap_every_order_ends_with_every_value";
    let Some(device) = Loop::attach(test) else { return };
    let before = queue(&device.node);
    let words = ["read_ahead=64K", "max_sectors_kb=512", "rotational=1", "scheduler=mq-deadline"];
    for order in orders(&words) {
        fs::write(format!("/sys/block/{}/queue/rotational", name(&device.node)), "0")
            .expect("written");
        apply_settings(&device.stage, &order).expect("applied");
        let now = queue(&device.node);
        assert!(now[0].contains("[mq-deadline]"), "{order:?}: {now:?}");
        assert_eq!(now[2..], ["512", "1", "64"], "{order:?}");
        // Checks the requests, not only sysfs: 64 KiB each when the windows have grown; with the
        // kernel's own calculation they would be 512 KiB.
        let mean = mean_request(&device.node);
        assert!((40..=80).contains(&mean), "{order:?}: requests of {mean} KiB");
        let back = rollback(&device.stage.dirs(), &device.stage.root(), &RollbackSelection::All);
        let back = back.expect("rolled back");
        assert!(back.refused.is_empty(), "{order:?}: {back:?}");
    }
    fs::write(format!("/sys/block/{}/queue/rotational", name(&device.node)), &before[3])
        .expect("written");
    fs::write(format!("/sys/block/{}/queue/read_ahead_kb", name(&device.node)), &before[4])
        .expect("written");
    assert_eq!(queue(&device.node), before);
}

/// An apply that was killed when its journal had some lines and a short time had passed.
struct Killed {
    /// True if the apply had started to write and had not reported completion.
    writing: bool,
}

/// Kills an apply while it writes; with its guard, as a power loss would, or alone.
fn kill_apply(device: &Loop, lines: usize, delay: Duration, with_guard: bool) -> Killed {
    let stage = &device.stage;
    let text = || {
        let journals = stage.journals();
        journals.first().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let mut child = stage.flip().arg("apply").stdout(Stdio::null()).spawn().expect("it");
    while text().lines().count() < lines && child.try_wait().expect("a child").is_none() {
        std::hint::spin_loop();
    }
    std::thread::sleep(delay);
    let pid = Pid::from_child(&child);
    // Stop it first, so that the journal is in the state in which the process dies.
    let lives = kill_process(pid, Signal::STOP).is_ok();
    let journal = text();
    if lives && with_guard && journal.contains("change") && !journal.contains("kept") {
        stage::kill_hard(stage.guard_pid());
    }
    child.kill().expect("killed");
    child.wait().expect("its end");
    stage.await_end();
    Killed { writing: journal.contains("change") && !journal.contains("kept") }
}

#[test]
fn host_kills_of_apply_leave_the_old_state_or_the_new() {
    let test = "host_kills_of_apply_leave_the_old_state_or_the_new";
    let Some(device) = Loop::attach(test) else { return };
    let rounds = std::env::var("FOREREAD_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let old = queue(&device.node);
    let (mut writing, mut whole_old, mut whole_new, mut between) = (0, 0, 0, 0);
    for (round, moment) in fifty_moments().enumerate().take(rounds) {
        // An apply of these settings writes twelve lines; the guard dies in every second round.
        let lines = 2 + round / 2 % 11;
        let with_guard = round % 2 == 1;
        let killed = kill_apply(&device, lines, moment.delay / 25, with_guard);
        writing += usize::from(killed.writing);
        let now = queue(&device.node);
        let new = now[0].contains("[mq-deadline]") && now[2..] == ["128", "0", "1088"];
        if new {
            whole_new += 1;
        } else if now == old {
            whole_old += 1;
        } else {
            // No guard was left to restore it; only rollback can.
            assert!(with_guard, "round {round}, {moment:?}: {now:?}, before {old:?}");
            between += 1;
        }
        rollback(&device.stage.dirs(), &device.stage.root(), &RollbackSelection::All)
            .expect("rolled back");
        assert_eq!(queue(&device.node), old, "round {round}, {moment:?}");
    }
    println!(
        "{rounds} kills, {writing} while it wrote: {whole_old} times the old state, {whole_new} \
         times the new, {between} times between, which rollback put back"
    );
    device.assert_as_before();
}
