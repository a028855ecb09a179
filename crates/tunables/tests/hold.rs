//! Sets tunables for a short time, in a tree of files.

#[allow(dead_code)] // these tests use only a part of it
mod stage;

use std::fs;
use std::path::Path;

use foreread_tunables::{BdiLease, RestoreOutcome, TunableError, find};
use host::resolve;
use stage::{Stage, kib};
use tempfile::TempDir;

/// A machine with one disk, `8:0`, at 128 KiB, and a lease on it.
fn machine() -> (TempDir, Stage, BdiLease) {
    let (dir, stage) = stage::machine();
    let storage = resolve(&stage.root(), Path::new(&stage.target)).expect("storage");
    let lease = BdiLease::begin(&stage.dirs(), &stage.root(), &storage, &stage.guard());
    (dir, stage, lease.expect("a lease"))
}

#[test]
fn a_value_is_held_as_long_as_the_act_and_not_longer() {
    let (_dir, stage, mut lease) = machine();
    let tunable = find("read_ahead").expect("it");
    let short = fs::metadata(lease.journal()).expect("a journal").len();
    for window in [4, 1088, 4096] {
        let seen = lease.with_value(tunable, &kib(window), || stage.value()).expect("held");
        assert_eq!(seen, kib(window));
        assert_eq!(stage.value(), kib(128));
    }
    let long = fs::metadata(lease.journal()).expect("a journal").len();
    assert_eq!(long, short, "a journal does not grow for ever");
    assert!(lease.restore().expect("nothing to put back").is_empty());
    assert!(stage.journals().is_empty());
}

#[test]
fn a_value_is_held_on_top_of_another() {
    let (_dir, stage, mut lease) = machine();
    let tunable = find("read_ahead").expect("it");
    lease.set(tunable, &kib(64)).expect("set");
    lease.with_value(tunable, &kib(1088), || assert_eq!(stage.value(), kib(1088))).expect("held");
    assert_eq!(stage.value(), kib(64));
    // The value that the lease has set still counts as its own, and the original is still known.
    lease.set(tunable, &kib(32)).expect("set");
    let undone = lease.restore().expect("put back");
    assert_eq!(undone[0].outcome, RestoreOutcome::Restored);
    assert_eq!(stage.value(), kib(128));
}

#[test]
fn what_is_withdrawn_is_forgotten() {
    let (_dir, stage, mut lease) = machine();
    let tunable = find("read_ahead").expect("it");
    let short = fs::metadata(lease.journal()).expect("a journal").len();
    lease.set(tunable, &kib(1088)).expect("set");
    lease.with_value(tunable, &kib(64), || assert_eq!(stage.value(), kib(64))).expect("held");
    lease.release_value(tunable, &kib(128)).expect("withdrawn");
    assert_eq!(stage.value(), kib(128));
    let long = fs::metadata(lease.journal()).expect("a journal").len();
    assert_eq!(long, short, "the journal begins anew");
    // From here on, another process may set the value.
    stage.set_by_hand(776);
    lease.set(tunable, &kib(32)).expect("nobody's reason is overruled");
    stage.set_by_hand(512);
    let error = lease.release_value(tunable, &kib(776)).expect_err("his");
    assert!(matches!(error, TunableError::ChangedByOther { .. }), "{error}");
    drop(lease);
    assert_eq!(stage.value(), kib(512));
}

#[test]
fn what_somebody_sets_in_the_instant_is_left_as_he_has_it() {
    let (_dir, stage, mut lease) = machine();
    let tunable = find("read_ahead").expect("it");
    let error = lease.with_value(tunable, &kib(1088), || stage.set_by_hand(776)).expect_err("his");
    assert!(matches!(error, TunableError::ChangedByOther { .. }), "{error}");
    drop(lease);
    assert_eq!(stage.value(), kib(776));
}

#[test]
fn a_panic_in_the_instant_changes_nothing() {
    let (_dir, stage, mut lease) = machine();
    let tunable = find("read_ahead").expect("it");
    let act =
        std::panic::AssertUnwindSafe(|| lease.with_value(tunable, &kib(1088), || panic!("no")));
    assert!(std::panic::catch_unwind(act).is_err());
    drop(lease);
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
}
