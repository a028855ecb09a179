//! Leases in a tree of files, as far as a tree can replace a kernel; these tests do not need root.

mod stage;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use foreread_tunables::{
    BdiLease, GuardCommand, RestoreOutcome, RestoreReport, RollbackSelection, TunableError,
    TunableValues, Value, find, rollback, rollback_preview,
};
use host::{HostError, Storage, resolve};
use rustix::process::{Pid, Signal, kill_process};
use stage::{Stage, fifty_moments, kib, kill_hard, machine, survives_kills, wait_until};
use tempfile::TempDir;
use units::Bytes;

fn storage(stage: &Stage) -> Storage {
    resolve(&stage.root(), Path::new(&stage.target)).expect("storage")
}

fn begin(stage: &Stage) -> Result<BdiLease, TunableError> {
    BdiLease::begin(&stage.dirs(), &stage.root(), &storage(stage), &stage.guard())
}

fn set(lease: &mut BdiLease, window_kib: u64) -> Result<Value, TunableError> {
    lease.set(find("read_ahead").expect("it"), &kib(window_kib))
}

fn outcomes(undone: &[RestoreReport]) -> Vec<RestoreOutcome> {
    undone.iter().map(|one| one.outcome.clone()).collect()
}

#[test]
fn what_was_set_is_put_back_and_the_journal_goes() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    assert_eq!(set(&mut lease, 1024).expect("set"), kib(1024));
    assert_eq!(set(&mut lease, 6).expect("set"), kib(4), "floored to a page");
    assert_eq!(stage.value(), kib(4));
    assert_eq!(stage.journals(), [lease.journal()]);
    let undone = lease.restore().expect("put back");
    assert_eq!(outcomes(&undone), [RestoreOutcome::Restored]);
    assert_eq!(undone[0].to_string(), "read_ahead of bdi 8:0 restored to 128 KiB");
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
}

#[test]
fn being_dropped_puts_back_too() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    drop(lease);
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
}

/// Replaces `read_ahead_kb` by a link to another file of the kernel.
fn replace_value(dir: &TempDir, other: &str) {
    let value = dir.path().join("sys/class/bdi/8:0/read_ahead_kb");
    fs::remove_file(&value).expect("gone");
    symlink(other, value).expect("a link");
}

#[test]
fn a_change_is_in_the_journal_before_it_is_made() {
    let (dir, stage) = machine();
    // Even root can read but not write this file.
    replace_value(&dir, "/proc/sys/kernel/random/poolsize");
    let mut lease = begin(&stage).expect("a lease");
    assert_eq!(set(&mut lease, 256).expect("it is 256 already"), kib(256));
    let refused = set(&mut lease, 64).expect_err("read-only");
    assert!(matches!(refused, TunableError::NotPermitted { .. }), "{refused}");
    let text = fs::read_to_string(lease.journal()).expect("the journal");
    assert!(text.contains(r#""new":{"bytes":65536}"#), "{text}");
    let mode = fs::metadata(lease.journal()).expect("the journal").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(outcomes(&lease.restore().expect("seen to")), [RestoreOutcome::AlreadySo]);
}

#[test]
fn a_value_that_does_not_stick_is_not_left_behind() {
    let (dir, stage) = machine();
    // This file returns the written number in hexadecimal.
    replace_value(&dir, "/proc/self/coredump_filter");
    stage.set_by_hand(7);
    let mut lease = begin(&stage).expect("a lease");
    let refused = set(&mut lease, 16).expect_err("another value");
    assert!(matches!(refused, TunableError::DidNotStick { .. }), "{refused}");
    assert_eq!(stage.value(), kib(7));
    assert_eq!(outcomes(&lease.restore().expect("seen to")), [RestoreOutcome::AlreadySo]);
}

#[test]
fn fifty_kills_change_nothing() {
    let (_dir, stage) = machine();
    survives_kills(&stage, fifty_moments());
}

/// Returns field 6 of proc_pid_stat(5). Not `getsid(2)`: in a PID namespace that was entered
/// without a new session, the leader has no ID, and rustix's `Pid` cannot be zero.
fn session(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    fields.split_whitespace().nth(3).and_then(|field| field.parse().ok()).expect("a number")
}

#[test]
fn signals_that_reach_the_guard_do_not_end_it() {
    let (_dir, stage) = machine();
    let mut child = stage.flipping();
    let guard = stage.guard_pid();
    let pid = Pid::from_raw(guard.cast_signed()).expect("a process");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        kill_process(pid, signal).expect("sent");
    }
    assert_eq!(session(guard), guard, "it leads a session of its own");
    assert_ne!(session(child.id()), guard);
    child.kill().expect("killed");
    child.wait().expect("its end");
    stage.await_end();
    assert_eq!(stage.value(), kib(128));
}

#[test]
fn a_second_owner_is_refused_and_told_by_whom() {
    let (_dir, stage) = machine();
    let lease = begin(&stage).expect("a lease");
    let own = std::process::id();
    let error = begin(&stage).expect_err("taken");
    assert!(matches!(error, TunableError::Busy { pid: Some(pid), .. } if pid == own), "{error}");
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert!(result.refused.is_empty(), "a living run is no reason to fail: {result:?}");
    assert!(matches!(result.living.as_slice(), [run] if run.pid == own), "{result:?}");
    let bdi = RollbackSelection::Bdi(stage.bdi.clone());
    let named = rollback(&stage.dirs(), &stage.root(), &bdi).expect("looked at");
    assert!(matches!(named.refused.as_slice(), [TunableError::OwnerAlive { .. }]), "{named:?}");
    lease.restore().expect("put back");
    begin(&stage).expect("free again").restore().expect("put back");
}

#[test]
fn a_run_that_cannot_be_guarded_does_not_begin() {
    let (_dir, stage) = machine();
    for program in ["/no/such/program", "/bin/true", "/bin/cat"] {
        let guard = GuardCommand { program: program.into(), args: Vec::new() };
        let error = BdiLease::begin(&stage.dirs(), &stage.root(), &storage(&stage), &guard);
        assert!(matches!(error, Err(TunableError::Guard { .. })), "{program}: {error:?}");
        assert!(stage.journals().is_empty());
    }
    begin(&stage).expect("the lock is free").restore().expect("put back");
}

#[test]
fn without_its_guard_a_tenure_changes_nothing_more() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    kill_hard(stage.guard_pid());
    wait_until("the guard is missed", || {
        let window = if stage.value() == kib(64) { 32 } else { 64 };
        matches!(set(&mut lease, window), Err(TunableError::Guard { .. }))
    });
    assert_eq!(outcomes(&lease.restore().expect("put back")), [RestoreOutcome::Restored]);
    assert_eq!(stage.value(), kib(128));
}

#[test]
fn a_rollback_puts_back_what_the_guard_could_not() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let would =
        rollback_preview(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert_eq!(outcomes(&would.undone), [RestoreOutcome::Restored]);
    assert_eq!(would.undone[0].file, Path::new("/sys/class/bdi/8:0/read_ahead_kb"));
    assert_eq!(stage.value(), kib(4), "only looked at");
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert_eq!(outcomes(&result.undone), [RestoreOutcome::Restored], "{result:?}");
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
    let again =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert!(again.undone.is_empty() && again.refused.is_empty(), "{again:?}");
}

#[test]
fn a_rollback_after_a_reboot_finds_things_as_the_boot_made_them() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let journal = stage.journals().pop().expect("a journal");
    let text = fs::read_to_string(&journal).expect("the journal");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the boot");
    fs::write(&journal, text.replace(boot.trim(), "of-yesterday")).expect("written");
    stage.set_by_hand(128);
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert_eq!(outcomes(&result.undone), [RestoreOutcome::AlreadySo], "{result:?}");
    assert!(stage.journals().is_empty());
}

#[test]
fn a_rollback_can_be_of_one_bdi_or_journal() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let of = |which| rollback(&stage.dirs(), &stage.root(), &which);
    let other = host::BdiId::new("8:16").expect("a bdi");
    assert!(of(RollbackSelection::Bdi(other)).expect("none").undone.is_empty());
    let unknown = of(RollbackSelection::Journal("17".to_owned())).expect_err("none");
    assert!(matches!(unknown, TunableError::NoSuchJournal { .. }), "{unknown}");
    let journal = stage.journals().pop().expect("a journal");
    let name = journal.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    assert_eq!(
        outcomes(&of(RollbackSelection::Journal(name)).expect("it").undone),
        [RestoreOutcome::Restored]
    );
}

#[test]
fn the_next_run_puts_back_first_what_the_last_one_left() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let mut lease = begin(&stage).expect("a lease");
    assert_eq!(outcomes(lease.inherited()), [RestoreOutcome::Restored]);
    set(&mut lease, 1024).expect("set");
    lease.restore().expect("put back");
    assert_eq!(stage.value(), kib(128));
}

#[test]
fn a_torn_line_is_forgotten_and_written_over() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let journal = stage.journals().pop().expect("a journal");
    let mut text = fs::read_to_string(&journal).expect("the journal");
    text += "{\"change\":{\"number\":";
    fs::write(&journal, text).expect("written");
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert_eq!(outcomes(&result.undone), [RestoreOutcome::Restored], "{result:?}");
}

#[test]
fn what_somebody_else_has_set_is_left_alone() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    stage.set_by_hand(777);
    let error = set(&mut lease, 32).expect_err("not ours any more");
    assert!(
        matches!(&error, TunableError::ChangedByOther { expected, found, .. }
            if *expected == kib(64) && *found == kib(777)),
        "{error}"
    );
    let undone = lease.restore().expect("seen to");
    assert_eq!(outcomes(&undone), [RestoreOutcome::LeftAlone { present: kib(777) }]);
    assert_eq!(stage.value(), kib(777));
    assert!(stage.journals().is_empty());
}

#[test]
fn what_somebody_else_has_set_is_left_alone_by_the_guard() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    stage.set_by_hand(777);
    // The guard acts when its owner's end of the socket is closed.
    drop(lease);
    assert_eq!(stage.value(), kib(777));
}

#[test]
fn what_somebody_else_has_set_is_left_alone_though_the_run_had_it_too() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    for window in [512, 64, 1024] {
        set(&mut lease, window).expect("set");
    }
    stage.set_by_hand(512);
    let undone = lease.restore().expect("seen to");
    assert_eq!(outcomes(&undone), [RestoreOutcome::LeftAlone { present: kib(512) }]);
    assert_eq!(stage.value(), kib(512));
}

#[test]
fn a_change_that_was_only_journalled_is_undone() {
    let (_dir, stage) = machine();
    stage.power_cut();
    // As if the power had failed between the journal's line and the write.
    stage.set_by_hand(64);
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert_eq!(outcomes(&result.undone), [RestoreOutcome::Restored], "{result:?}");
    assert_eq!(stage.value(), kib(128));
}

#[test]
fn a_device_that_went_is_no_error() {
    let (dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    fs::remove_dir_all(dir.path().join("sys/class/bdi/8:0")).expect("gone");
    let error = set(&mut lease, 32).expect_err("gone");
    assert!(matches!(error, TunableError::Absent { .. }), "{error}");
    assert_eq!(outcomes(&lease.restore().expect("seen to")), [RestoreOutcome::DeviceGone]);
}

#[test]
fn another_device_on_the_same_number_is_not_touched() {
    let (dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    set(&mut lease, 64).expect("set");
    fs::write(dir.path().join("sys/devices/sda/diskseq"), "4\n").expect("another disk");
    assert_eq!(outcomes(&lease.restore().expect("seen to")), [RestoreOutcome::DeviceGone]);
    assert_eq!(stage.value(), kib(64));
}

#[test]
fn a_journal_that_was_edited_undoes_nothing_and_says_where() {
    let (dir, stage) = machine();
    stage.power_cut();
    let journal = stage.journals().pop().expect("a journal");
    let text = fs::read_to_string(&journal).expect("the journal");
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").expect("a file");
    let hostile =
        text.replace("/sys/class/bdi/8:0/read_ahead_kb", victim.to_str().expect("a name"));
    fs::write(&journal, hostile).expect("written");
    let result =
        rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    let [error] = result.refused.as_slice() else { panic!("{result:?}") };
    let said = error.to_string();
    assert!(said.contains("line 2") && said.contains(journal.to_str().expect("a name")), "{said}");
    assert_eq!(fs::read_to_string(&victim).expect("the file"), "precious");
    assert_eq!(stage.value(), kib(4));
    assert!(begin(&stage).is_err(), "the original value is not known");
    fs::write(&journal, text).expect("mended");
    assert!(begin(&stage).is_ok());
}

#[test]
fn a_journal_of_others_is_not_believed() {
    let (_dir, stage) = machine();
    stage.power_cut();
    let journal = stage.journals().pop().expect("a journal");
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).expect("opened to all");
    let refused = |words: &str| {
        let result =
            rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
        let said: Vec<String> = result.refused.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains(words), "{said:?}");
    };
    refused("can be written by other users");
    let aside = journal.with_extension("aside");
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).expect("closed");
    fs::rename(&journal, &aside).expect("moved");
    symlink(&aside, &journal).expect("a link");
    refused("cannot read journal");
    fs::remove_file(&journal).expect("the link gone");
    fs::create_dir(&journal).expect("a directory");
    refused("is not a regular file");
}

#[test]
fn values_that_make_no_sense_are_refused_before_anything_happens() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    let tunable = find("read_ahead").expect("it");
    for bytes in [1, 4095, u64::MAX] {
        assert!(lease.set(tunable, &Bytes::new(bytes).into()).is_err(), "{bytes}");
    }
    assert_eq!(stage.value(), kib(128));
    assert!(lease.restore().expect("nothing to do").is_empty());
}

#[test]
fn setting_what_is_there_changes_nothing() {
    let (_dir, stage) = machine();
    let mut lease = begin(&stage).expect("a lease");
    for setting in TunableValues::read_ahead(Bytes::from_kib(128)).iter() {
        lease.set(setting.tunable, &setting.value).expect("as it is");
    }
    let text = fs::read_to_string(lease.journal()).expect("the journal");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(lease.restore().expect("nothing to do").is_empty());
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let (dir, stage) = machine();
    let file = dir.path().join("occupied");
    fs::write(&file, "").expect("a file");
    let dirs = host::Dirs::under(&file);
    let error = BdiLease::begin(&dirs, &stage.root(), &storage(&stage), &stage.guard());
    let said = error.expect_err("no directory").to_string();
    assert!(said.contains("occupied"), "{said}");
    assert!(!matches!(resolve(&stage.root(), Path::new("/dev/x")), Err(HostError::Read { .. })));
}

#[test]
fn a_run_that_ends_by_itself_takes_its_guard_along() {
    let (_dir, stage) = machine();
    let mut command = stage.flip();
    let status = command.arg("3").stdout(Stdio::null()).status().expect("the helper");
    assert!(status.success());
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
    stage.await_end();
}
