//! Each host has one consistent plan: random hosts check the properties, and named tests check
//! defects of earlier versions.
#![allow(clippy::unwrap_used, clippy::panic)] // a test may panic

mod generated;
mod hosts;

use std::path::Path;

use foreread_doctor::check::emit;
use foreread_doctor::plan::{Action, DevicePlan, plan};
use foreread_doctor::{HostSnapshot, Windows, diagnose};
use hosts::{FLASH, Machine, Queue, TURNING};
use units::Kib;

const UDEV: &str = "etc/udev/rules.d/60-ra.rules";

fn flash(kib: u64) -> Queue {
    Queue { read_ahead_kb: kib, ..FLASH }
}

fn plans(machine: &Machine) -> (HostSnapshot, Vec<DevicePlan>) {
    let snapshot = machine.snapshot(Windows::not_asked());
    let plans = plan(&snapshot, &diagnose(&snapshot));
    (snapshot, plans)
}

fn only(machine: &Machine) -> DevicePlan {
    let (_, mut plans) = plans(machine);
    assert_eq!(plans.len(), 1, "{plans:#?}");
    plans.remove(0)
}

fn commands(plan: &DevicePlan) -> Vec<&str> {
    let changing = plan.steps.iter().filter(|step| step.action != Action::Measure);
    changing.map(|step| step.command.as_str()).collect()
}

fn one(queue: Queue) -> Machine {
    Machine::new("6.1.0").device("sda", "8:0", queue).mount("8:0", "/data", "xfs", "/dev/sda")
}

/// Defect 10: array members keep their default of 128 KiB; the array uses its stripes.
#[test]
fn a_smaller_value_of_a_member_is_no_advice() {
    let array = |member: u64| {
        Machine::new("6.1.0")
            .device("sda", "8:0", flash(member))
            .device("sdb", "8:16", flash(128))
            .md("md0", "9:0", "raid5", 4, Queue { optimal_io_size: 1_572_864, ..flash(3072) })
            .member("md0", "sda")
            .member("md0", "sdb")
            .mount("9:0", "/srv", "ext4", "/dev/md0")
    };
    for member in [64, 128, 1024, 3072] {
        assert_eq!(plans(&array(member)).1, [], "{member}");
    }
    let plan = only(&array(8192));
    assert_eq!(plan.target_kib, Kib::new(8192));
    assert_eq!(commands(&plan)[0], "foreread apply read_ahead=8192K --on /srv");
}

/// Defect 11: the plan has one value, and it fits into memory.
#[test]
fn a_large_window_in_little_memory_gets_one_value() {
    let machine = Machine::new("6.18.0")
        .device("sda", "8:0", flash(65536))
        .mount("8:0", "/data", "xfs", "/dev/sda")
        .memory_available(1 << 20)
        .with("run/udev/data/b8:0", "E:ID_SERIAL=S123\n");
    let plan = only(&machine);
    assert_eq!(plan.target_kib, Kib::new(16384), "{plan:#?}");
    assert_eq!(
        commands(&plan),
        [
            "foreread apply read_ahead=16384K --on /data",
            "foreread persist read_ahead=16384K --on /data"
        ]
    );
    assert!(plan.reasons.iter().any(|reason| reason.finding == "memory"), "{plan:#?}");
}

/// A virtual disk of foreread, mounted, with this read-ahead.
fn virtual_disk(read_ahead_kb: u64) -> Machine {
    let queue = Queue { read_ahead_kb, max_sectors_kb: 512, ..TURNING };
    Machine::new("6.18.0")
        .bdi("0:50", 128)
        .mount("0:50", "/run/foreread/vdisk/a/fuse", "fuse.foreread", "foreread")
        .loop_device("loop0", "7:0", Some("/run/foreread/vdisk/a/fuse/disk"), queue)
        .mount("7:0", "/run/foreread/vdisk/a/mnt", "xfs", "/dev/loop0")
}

#[test]
fn nothing_is_kept_for_a_virtual_disk() {
    // A value that a user set is only reported.
    assert_eq!(plans(&virtual_disk(1088)).1, []);
    let plan = only(&virtual_disk(65536).memory_available(1 << 20));
    let typed = commands(&plan);
    assert!(typed.iter().all(|command| command.starts_with("foreread apply")), "{plan:#?}");
    assert!(plan.notes.iter().any(|note| note.contains("virtual disk")), "{plan:#?}");
    let snapshot = virtual_disk(1024).snapshot(Windows::not_asked());
    let policy = emit(&snapshot, &diagnose(&snapshot));
    assert!(!policy.contains("[[rule]]") && policy.contains("# Virtual disks"), "{policy}");
}

/// Defect 12: the plan proposes neither 0 nor less than a page.
#[test]
fn a_rule_below_a_page_is_to_be_changed() {
    let rule = "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"3\"\n";
    let plan = only(&one(flash(0)).with(UDEV, rule));
    assert_eq!(plan.target_kib, Kib::new(128));
    let typed = commands(&plan);
    assert_eq!(typed[0], "${EDITOR:-vi} /etc/udev/rules.d/60-ra.rules", "{plan:#?}");
    assert_eq!(typed[1..], ["foreread apply read_ahead=128K --on /data"], "{plan:#?}");
    let written = format!("{plan:?}");
    assert!(!written.contains("=3K") && !written.contains("=0K"), "{written}");
    // A package update restores its rule, so the plan edits a copy in /etc.
    let packaged = one(flash(0)).with("usr/lib/udev/rules.d/60-ra.rules", rule);
    let first = commands(&only(&packaged))[0].to_owned();
    assert!(first.starts_with("cp -n /usr/lib/udev/rules.d/60-ra.rules /etc/"), "{first}");
}

#[test]
fn zero_without_an_owner_gets_the_usual_value() {
    let plan = only(&one(flash(0)).with("run/udev/data/b8:0", "E:ID_SERIAL=S123\n"));
    // The kernel chooses the same value after a reboot, so there is nothing to persist.
    assert_eq!(commands(&plan), ["foreread apply read_ahead=128K --on /data"]);
}

/// The owner that acts last is effective; the plan removes the other owner's setting.
#[test]
fn of_two_owners_one_decides() {
    let machine = one(flash(4096))
        .with(UDEV, "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"64\"\n")
        .tuned("throughput-performance", "[disk]\nreadahead=>4096\n");
    let plan = only(&machine);
    assert_eq!((plan.present_kib, plan.target_kib), (Kib::new(4096), Kib::new(4096)));
    assert_eq!(commands(&plan), ["${EDITOR:-vi} /etc/udev/rules.d/60-ra.rules"]);
}

/// TuneD requests a minimum, so the kernel's usual value is too small.
#[test]
fn the_least_that_an_owner_asks_for_is_kept() {
    let queue = Queue { optimal_io_size: 4 << 20, ..flash(8192) };
    let plan = only(&one(queue).tuned("mine", "[disk]\nreadahead=>512\n"));
    assert_eq!(plan.target_kib, Kib::new(512), "{plan:#?}");
}

/// One line sets both disks, so they get one value although only one has a proposal.
#[test]
fn devices_of_one_rule_get_one_value() {
    let rule = "# 8192 sectors, as the vendor says\nKERNEL==\"sd*\", \
                ATTR{queue/read_ahead_kb}=\"8192\"\n";
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", flash(8192))
        .device("sdb", "8:16", flash(128))
        .mount("8:0", "/a", "xfs", "/dev/sda")
        .mount("8:16", "/b", "xfs", "/dev/sdb")
        .with(UDEV, rule);
    let (_, plans) = plans(&machine);
    assert_eq!(plans.len(), 2);
    assert!(plans.iter().all(|plan| plan.target_kib == Kib::new(4096)), "{plans:#?}");
}

#[test]
fn a_disk_that_turns_is_measured_and_not_changed() {
    let machine = Machine::new("6.18.0")
        .device("sda", "8:0", TURNING)
        .mount("8:0", "/data", "ext4", "/dev/sda");
    let plan = only(&machine);
    assert!(commands(&plan).is_empty(), "{plan:#?}");
    assert_eq!(plan.steps[0].command, "foreread tune /data");
}

#[test]
fn a_path_that_a_shell_would_split_is_quoted() {
    let machine = Machine::new("6.1.0").device("sda", "8:0", flash(0)).mount(
        "8:0",
        "/srv/it\u{27}s",
        "xfs",
        "/dev/sda",
    );
    let plan = only(&machine);
    assert!(plan.steps[0].command.ends_with("--on '/srv/it'\\''s'"), "{plan:#?}");
    assert_eq!(plan.device, "/srv/it's");
}

/// A mount point that another mount hides does not select this device.
#[test]
fn a_hidden_mount_point_is_not_named() {
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", flash(0))
        .device("sdb", "8:16", FLASH)
        .mount("8:0", "/data", "xfs", "/dev/sda")
        .mount("8:16", "/data", "xfs", "/dev/sdb");
    let plan = only(&machine);
    let on = foreread_doctor_on(&plan);
    let storage = host::resolve(&machine.root(), Path::new(&on)).unwrap();
    assert_eq!(storage.bdi, plan.bdi, "{plan:#?}");
}

fn foreread_doctor_on(plan: &DevicePlan) -> String {
    plan.steps[0].command.rsplit_once("--on ").unwrap().1.to_owned()
}
