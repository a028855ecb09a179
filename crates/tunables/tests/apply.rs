//! Applies settings in a tree of files: checks recorded, kept and restored values.

#[allow(dead_code)] // these tests use only a part of it
mod stage;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use foreread_tunables::persist::{
    PersistBackend, PersistError, PersistedState, drafts, install, persisted, persisted_state,
    remove,
};
use foreread_tunables::{
    DeviceLock, DriftState, RestoreOutcome, RollbackSelection, TunableError, TunableValues, apply,
    plan_apply, published, remembered, rollback, rollback_preview, verify,
};
use host::resolve;
use stage::{Stage, kib, machine};

fn settings(text: &str) -> TunableValues {
    text.parse().expect("settings")
}

fn applied(stage: &Stage, text: &str) -> Result<(), TunableError> {
    let (root, site) = (stage.root(), stage.site());
    let plan = plan_apply(&root, &site, &settings(text), 8)?;
    apply(&stage.dirs(), &root, &site, &plan, &stage.guard()).map(drop)
}

#[test]
fn what_is_applied_stays_and_is_verified_and_goes_back_in_reverse_order() {
    let (_dir, stage) = machine();
    applied(&stage, "read_ahead=1M nr_requests=256").expect("applied");
    applied(&stage, "read_ahead=4M").expect("applied");
    stage.await_end();
    assert_eq!(stage.value(), kib(4096));
    let (kept, refused) = remembered(&stage.dirs()).expect("journals");
    assert!(refused.is_empty() && kept.len() == 2);
    let verified = verify(&stage.root(), &kept).expect("looked at");
    assert_eq!(verified.len(), 2, "the last value for a file counts");
    assert!(verified.iter().all(|one| one.state == DriftState::Holds), "{verified:?}");
    stage.set_by_hand(8);
    let verified = verify(&stage.root(), &kept).expect("looked at");
    assert!(verified.iter().any(|one| one.state == DriftState::Drifted { present: kib(8) }));
    stage.set_by_hand(4096);
    let left = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::Left).expect("looked at");
    assert!(left.undone.is_empty(), "what was applied stays");
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert!(all.undone.iter().all(|one| one.outcome == RestoreOutcome::Restored), "{all:?}");
    assert_eq!(stage.value(), kib(128));
    assert!(stage.journals().is_empty());
}

#[test]
fn a_preview_of_stacked_settings_is_what_happens() {
    let (_dir, stage) = machine();
    applied(&stage, "read_ahead=256K nr_requests=256").expect("applied");
    applied(&stage, "read_ahead=512K").expect("applied");
    applied(&stage, "read_ahead=1M").expect("applied");
    stage.await_end();
    let both = || {
        let (dirs, root) = (stage.dirs(), stage.root());
        let planned = rollback_preview(&dirs, &root, &RollbackSelection::All).expect("planned");
        let done = rollback(&dirs, &root, &RollbackSelection::All).expect("rolled back");
        assert_eq!(planned.undone, done.undone);
        assert_eq!(planned.journals, done.journals);
        done.undone
    };
    let undone = both();
    assert!(undone.iter().all(|one| one.outcome == RestoreOutcome::Restored), "{undone:?}");
    assert_eq!((undone.len(), stage.value()), (4, kib(128)));
    // Another process changes the value between two settings, and after them.
    applied(&stage, "read_ahead=256K").expect("applied");
    stage.set_by_hand(340);
    applied(&stage, "read_ahead=512K").expect("applied");
    stage.await_end();
    let outcomes: Vec<_> = both().into_iter().map(|one| one.outcome).collect();
    let other = RestoreOutcome::LeftAlone { present: kib(340) };
    assert_eq!(outcomes, [RestoreOutcome::Restored, other.clone()]);
    applied(&stage, "read_ahead=256K").expect("applied");
    applied(&stage, "read_ahead=512K").expect("applied");
    stage.await_end();
    stage.set_by_hand(340);
    let outcomes: Vec<_> = both().into_iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [other, RestoreOutcome::AlreadySo], "340 was there before");
}

/// Applies settings twice; returns the journal of the first ones.
fn stacked(stage: &Stage, older: &str, newer: &str) -> PathBuf {
    applied(stage, older).expect("applied");
    let journal = stage.journals().remove(0);
    applied(stage, newer).expect("applied");
    stage.await_end();
    journal
}

/// Undone alone, the older setting would be lost: its value is not there any more.
#[test]
fn a_setting_below_a_newer_one_is_not_undone_alone() {
    let (_dir, stage) = machine();
    let older = stacked(&stage, "read_ahead=256K nr_requests=256", "read_ahead=512K");
    let name = older.file_stem().expect("a name").to_string_lossy().into_owned();
    let alone = RollbackSelection::Journal(name);
    for undo in [rollback_preview, rollback] {
        let refused = undo(&stage.dirs(), &stage.root(), &alone).expect("looked at").refused;
        let newer = matches!(refused.as_slice(), [TunableError::NewerChange { .. }]);
        assert!(newer, "{refused:?}");
    }
    assert_eq!((stage.value(), stage.journals().len()), (kib(512), 2));
    let bdi = RollbackSelection::Bdi(stage.bdi.clone());
    rollback(&stage.dirs(), &stage.root(), &bdi).expect("rolled back");
    assert_eq!((stage.value(), stage.journals().len()), (kib(128), 0));
    // Other tunables do not hide it.
    let older = stacked(&stage, "read_ahead=256K", "nr_requests=256");
    let name = older.file_name().expect("a name").to_string_lossy().into_owned();
    let alone = RollbackSelection::Journal(name);
    let report = rollback(&stage.dirs(), &stage.root(), &alone).expect("rolled back");
    assert!(report.refused.is_empty(), "{report:?}");
    assert_eq!((stage.value(), stage.journals().len()), (kib(128), 1));
}

#[test]
fn the_lock_is_held_until_what_was_applied_is_let_go() {
    let (_dir, stage) = machine();
    let (root, site) = (stage.root(), stage.site());
    let plan = plan_apply(&root, &site, &settings("read_ahead=1M"), 8).expect("a plan");
    let applied = apply(&stage.dirs(), &root, &site, &plan, &stage.guard()).expect("applied");
    let busy = DeviceLock::acquire(&stage.dirs(), &stage.bdi).expect_err("open files are seen to");
    assert!(matches!(busy, TunableError::Busy { .. }), "{busy}");
    drop(applied);
    DeviceLock::acquire(&stage.dirs(), &stage.bdi).expect("free again");
}

#[test]
fn what_is_not_of_the_bdi_has_a_lock_of_its_own() {
    let (_dir, stage) = machine();
    let machine = foreread_tunables::TunableScope::machine().bdi;
    let lock = DeviceLock::acquire(&stage.dirs(), &machine).expect("free");
    // The machine's setting is written last, but is refused before any change.
    for words in ["nr_requests=256 vm.dirty_ratio=10 read_ahead=1M", "vm.dirty_ratio=10"] {
        let error = applied(&stage, words).expect_err("somebody works on the machine");
        assert!(matches!(&error, TunableError::Busy { bdi, .. } if *bdi == machine), "{error}");
        assert_eq!(stage.value(), kib(128));
        assert!(stage.journals().is_empty());
    }
    applied(&stage, "read_ahead=1M nr_requests=256").expect("none of the machine's");
    drop(lock);
    applied(&stage, "vm.dirty_ratio=10").expect("free again");
    let lock = DeviceLock::acquire(&stage.dirs(), &machine).expect("not kept");
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert!(matches!(all.refused.as_slice(), [TunableError::Busy { .. }]), "{all:?}");
    assert_eq!(stage.value(), kib(128), "the other journal is undone");
    drop(lock);
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert!(all.refused.is_empty() && stage.journals().is_empty(), "{all:?}");
}

#[test]
fn a_journal_that_cannot_be_relied_on_is_named() {
    let (_dir, stage) = machine();
    applied(&stage, "read_ahead=1M").expect("applied");
    let journal = stage.journals().pop().expect("a journal");
    let sound = fs::read_to_string(&journal).expect("a journal");
    let refused = |text: &[u8]| {
        fs::write(&journal, text).expect("written");
        let (kept, refused) = remembered(&stage.dirs()).expect("journals");
        assert!(kept.is_empty(), "{kept:?}");
        refused.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
    };
    // With and without a line end; only garbage; one changed word.
    assert_eq!(refused(b"garbage\n").len(), 1);
    assert_eq!(refused(b"garbage").len(), 1);
    assert_eq!(refused(b"\xff\xfe\0\0").len(), 1);
    assert_eq!(refused(sound.replacen("read_ahead", "read_behind", 1).as_bytes()).len(), 1);
    // A run that had just started at the power loss.
    assert!(refused(b"").is_empty());
    assert!(refused(b"\0\0\0\0").is_empty());
    assert!(refused(b"{\"begin\":{\"ver").is_empty());
    // Truncated before its last line, with a dead owner.
    let other_boot = sound.replace(&boot_id(), "another");
    let cut = &other_boot[..other_boot.len() - 20];
    let said = refused(cut.as_bytes());
    assert!(said.len() == 1 && said[0].contains("is incomplete"), "{said:?}");
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("proc");
    text.trim().to_owned()
}

#[test]
fn all_is_applied_or_nothing() {
    let (dir, stage) = machine();
    let broken = dir.path().join("sys/devices/sda/queue/rotational");
    fs::remove_file(&broken).expect("gone");
    // This file reads as 0 and cannot be written.
    symlink("/proc/sys/kernel/ngroups_max", &broken).expect("a link");
    let error = applied(&stage, "nr_requests=256 rotational=0 read_ahead=1M").expect_err("it");
    assert!(matches!(error, TunableError::NotPermitted { .. }), "{error}");
    assert_eq!(stage.value(), kib(128));
    let requests = dir.path().join("sys/devices/sda/queue/nr_requests");
    assert_eq!(fs::read_to_string(requests).expect("a file").lines().next(), Some("64"));
    assert!(stage.journals().is_empty());
}

#[test]
fn memory_is_billed_and_refused_beyond_a_quarter() {
    let (dir, stage) = machine();
    let md = dir.path().join("sys/devices/sda/md");
    fs::create_dir_all(&md).expect("a directory");
    fs::write(md.join("stripe_cache_size"), "256\n").expect("a file");
    fs::write(md.join("raid_disks"), "10\n").expect("a file");
    let plan = plan_apply(&stage.root(), &stage.site(), &settings("stripe_cache_size=2048"), 8);
    let plan = plan.expect("80 MiB of 512");
    assert_eq!(plan.costs[0].1.memory, units::Bytes::from_mib(80));
    let error = applied(&stage, "stripe_cache_size=32768").expect_err("1.25 GiB of 512 MiB");
    assert!(matches!(error, TunableError::Memory { .. }), "{error}");
    // Each stream can hold two windows: 8 × 2 × 16 MiB is 256 MiB of 512.
    let error = applied(&stage, "read_ahead=16M").expect_err("256 MiB with 8 streams");
    assert!(error.to_string().contains("more than a quarter"), "{error}");
    let plan = plan_apply(&stage.root(), &stage.site(), &settings("read_ahead=4M"), 8);
    let cost = &plan.expect("64 MiB of 512").costs[0].1;
    assert_eq!(cost.memory, units::Bytes::from_mib(64));
    assert_eq!(cost.explained, "2 windows × 4 MiB × 8 streams");
}

#[test]
fn rivals_are_not_set_together_and_come_back_together() {
    let (dir, stage) = machine();
    assert!(applied(&stage, "dirty_bytes=64M dirty_ratio=5").is_err());
    applied(&stage, "dirty_bytes=64M").expect("applied");
    // The kernel does this when dirty_bytes is written.
    fs::write(dir.path().join("proc/sys/vm/dirty_ratio"), "0\n").expect("written");
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert!(all.refused.is_empty(), "{all:?}");
    let ratio = fs::read_to_string(dir.path().join("proc/sys/vm/dirty_ratio")).expect("a file");
    assert_eq!(ratio.trim(), "20");
}

#[test]
fn a_rule_knows_the_disk_by_its_serial_and_is_taken_back_unless_edited() {
    let (dir, stage) = machine();
    let (root, site) = (stage.root(), stage.site());
    let storage = resolve(&root, "/data".as_ref()).expect("storage");
    let wanted = settings("read_ahead=1M nr_requests=256");
    let files = drafts(&root, Some(&storage), &site, &wanted, None, "/usr/bin/foreread");
    let files = files.expect("a rule");
    let [rule] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(rule.backend, PersistBackend::Udev);
    assert!(rule.path.ends_with("99-foreread-sn-0815.rules"), "{}", rule.path.display());
    let text = rule.text();
    assert!(text.starts_with("# managed by foreread"), "{text}");
    assert!(
        text.contains(r#"ATTR{serial}=="SN-0815", ATTR{queue/read_ahead_kb}="1024""#),
        "{text}"
    );
    assert!(!text.contains("sda"), "never by the kernel's name: {text}");
    let at = |needle: &str| text.find(needle).expect("a line");
    assert!(at("nr_requests}=") < at("read_ahead_kb}="), "what is upset comes last");

    let record = install(&stage.dirs(), &root, rule, None).expect("written");
    assert_eq!(persisted_state(&root, &record), PersistedState::Intact);
    install(&stage.dirs(), &root, rule, None).expect("written anew");
    let path = dir.path().join(rule.path.strip_prefix("/").expect("absolute"));
    fs::write(&path, format!("{text}# mine\n")).expect("edited");
    assert!(matches!(install(&stage.dirs(), &root, rule, None), Err(PersistError::Edited { .. })));
    let records = persisted(&stage.dirs()).expect("records");
    let [(record_path, record)] = records.as_slice() else { panic!("{records:?}") };
    assert!(matches!(remove(&root, record_path, record, false), Err(PersistError::Edited { .. })));
    fs::write(&path, &text).expect("as it was");
    remove(&root, record_path, record, false).expect("removed");
    assert!(!path.exists() && persisted(&stage.dirs()).expect("none").is_empty());
}

#[test]
fn a_record_cannot_have_others_files_removed() {
    let (dir, stage) = machine();
    let records = stage.dirs().state.join("persisted");
    fs::create_dir_all(&records).expect("a directory");
    let record = |path: &str| {
        format!(
            r#"{{"version":1,"path":"{path}","backend":"udev","settings":{{}},"target":null,
            "sha256":"","unix_ms":1}}"#
        )
    };
    for path in ["/etc/passwd", "/etc/udev/rules.d/../../foreread", "/etc/udev/rules.d/60-x.rules"]
    {
        fs::write(records.join("x.json"), record(path)).expect("written");
        assert!(persisted(&stage.dirs()).is_err(), "{path}");
    }
    drop(dir);
}

/// Installs the sysctl.d file for `vm.swappiness`.
fn install_swappiness(stage: &Stage) -> Result<(), PersistError> {
    let files = drafts(
        &stage.root(),
        None,
        &foreread_tunables::TunableScope::machine(),
        &settings("vm.swappiness=10"),
        None,
        "/usr/bin/foreread",
    );
    let files = files.expect("a file");
    install(&stage.dirs(), &stage.root(), &files[0], None).map(drop)
}

#[test]
fn a_foreign_file_in_the_place_of_ours_is_left_alone() {
    let (dir, stage) = machine();
    let conf = dir.path().join("etc/sysctl.d/99-foreread.conf");
    fs::create_dir_all(conf.parent().expect("a parent")).expect("directories");
    fs::write(&conf, "vm.swappiness = 1\n").expect("written");
    let result = install_swappiness(&stage);
    assert!(matches!(result, Err(PersistError::Foreign { .. })), "{result:?}");
    assert_eq!(fs::read_to_string(conf).expect("a file"), "vm.swappiness = 1\n");
}

#[test]
fn a_file_that_cannot_be_written_leaves_no_record() {
    let (dir, stage) = machine();
    // Even root cannot create a directory at the path of a file.
    let conf = dir.path().join("etc/sysctl.d");
    fs::create_dir_all(dir.path().join("etc")).expect("a directory");
    let _ = fs::remove_dir_all(&conf);
    fs::write(&conf, "").expect("written");
    let result = install_swappiness(&stage);
    assert!(matches!(result, Err(PersistError::Io { .. })), "{result:?}");
    assert!(persisted(&stage.dirs()).expect("records").is_empty());
}

#[test]
fn what_md_brings_along_is_set_when_md_is_loaded() {
    let (_dir, stage) = machine();
    let site = foreread_tunables::TunableScope::machine();
    let settings = settings("speed_limit_max=90M/s");
    let files = drafts(&stage.root(), None, &site, &settings, None, "/usr/bin/foreread");
    let texts: Vec<String> = files.expect("files").iter().map(|draft| draft.text()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("dev.raid.speed_limit_max = 92160"), "{}", texts[0]);
    assert!(texts[1].contains("KERNEL==\"md_mod\""), "{}", texts[1]);
}

/// Changes the journals as if the machine had rebooted: they name another boot.
fn booted(stage: &Stage) {
    for journal in stage.journals() {
        let text = fs::read_to_string(&journal).expect("a journal");
        let (before, rest) = text.split_once("\"boot_id\":\"").expect("a boot");
        let (_, after) = rest.split_once('"').expect("its end");
        let text = format!("{before}\"boot_id\":\"another\"{after}");
        fs::write(&journal, text).expect("written");
    }
}

#[test]
fn after_a_boot_the_same_disk_is_known_by_its_serial_number_and_another_is_not_touched() {
    let (dir, stage) = machine();
    applied(&stage, "read_ahead=1M").expect("applied");
    stage.await_end();
    booted(&stage);
    // Another disk has the device number now.
    let serial = dir.path().join("sys/devices/sda/serial");
    fs::write(&serial, "SN-0816\n").expect("written");
    let (kept, _) = remembered(&stage.dirs()).expect("journals");
    assert_eq!(verify(&stage.root(), &kept).expect("looked at")[0].state, DriftState::Gone);
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert_eq!(all.undone[0].outcome, RestoreOutcome::DeviceGone, "{all:?}");
    assert_eq!(stage.value(), kib(1024));
}

#[test]
fn disks_that_nothing_tells_apart_are_refused_aloud() {
    let (dir, stage) = machine();
    fs::remove_file(dir.path().join("sys/devices/sda/serial")).expect("no serial number");
    applied(&stage, "read_ahead=1M").expect("applied");
    stage.await_end();
    booted(&stage);
    // A disk that is the only one of its size can still be identified.
    let (kept, _) = remembered(&stage.dirs()).expect("journals");
    assert_eq!(verify(&stage.root(), &kept).expect("looked at")[0].state, DriftState::Holds);
    let twin = dir.path().join("sys/devices/sdb");
    fs::create_dir_all(&twin).expect("a directory");
    fs::write(twin.join("dev"), "8:16\n").expect("written");
    fs::write(twin.join("size"), "2048\n").expect("written");
    symlink("../../devices/sdb", dir.path().join("sys/dev/block/8:16")).expect("a link");
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert!(matches!(all.refused.as_slice(), [TunableError::Ambiguous { .. }]), "{all:?}");
    let said = all.refused[0].to_string();
    assert!(said.contains("set read_ahead to 128 KiB on the right disk"), "{said}");
    assert_eq!(stage.value(), kib(1024), "nothing is written");
    assert_eq!(stage.journals().len(), 1, "and nothing forgotten");
    // If the file already has the previous value, the disk need not be identified.
    stage.set_by_hand(128);
    let all = rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("looked at");
    assert!(all.refused.is_empty() && stage.journals().is_empty(), "{all:?}");
}

#[test]
fn everybody_may_read_what_is_set_and_nothing_else() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, stage) = machine();
    let state = stage.dirs().state;
    let mode = |path: &std::path::Path| {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    };
    applied(&stage, "read_ahead=1M nr_requests=256").expect("applied");
    let known = published(&state);
    assert_eq!(known.len(), 1);
    let message: Vec<&str> = known[0].settings.iter().map(|one| one.tunable.as_str()).collect();
    assert_eq!(message, ["nr_requests", "read_ahead"]);
    assert_eq!(known[0].settings[1].value, kib(1024));
    assert_eq!(known[0].settings[1].original, kib(128));
    assert_eq!(known[0].measured_by(), None);
    assert_eq!(mode(&state.join("settings.json")), 0o644);
    assert_eq!(mode(&state.join("journal")), 0o700);
    assert_eq!(mode(&state) & 0o005, 0o005, "others pass through");
    rollback(&stage.dirs(), &stage.root(), &RollbackSelection::All).expect("rolled back");
    assert!(published(&state).is_empty() && !state.join("settings.json").exists());
    let child = stage.flipping();
    let measuring = published(&state);
    assert_eq!(measuring[0].measured_by(), Some(child.id()));
    assert!(measuring[0].settings.is_empty(), "they change all the time");
    stage::kill_hard(child.id());
    let mut child = child;
    child.wait().expect("its end");
    stage.await_end();
    assert!(published(&state).is_empty(), "its guard has put everything back");
}
