//! Situations of stacks, owners and values: each must have exactly the expected origin and
//! findings.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

#[path = "../hosts/mod.rs"]
mod hosts;
mod kernel;
mod own;
mod owners;

use foreread_doctor::{OpenWindow, Windows};
use host::BdiId;
use hosts::{FLASH, Machine, Queue};
use kernel::{kernel_on_block_devices, kernel_on_file_systems, kernel_on_stacks};
use own::{foreread_itself, open_files};
use owners::{other_owners, udev_rules};
use units::{Bytes, Kib};

/// One row of the table: a machine, with the expected origin and findings of a path.
struct Situation {
    name: &'static str,
    machine: Machine,
    path: &'static str,
    origin: &'static str,
    confidence: &'static str,
    findings: &'static [&'static str],
    windows: Windows,
}

fn case(
    name: &'static str,
    machine: Machine,
    path: &'static str,
    origin: &'static str,
    confidence: &'static str,
    findings: &'static [&'static str],
) -> Situation {
    let windows = Windows::not_asked();
    Situation { name, machine, path, origin, confidence, findings, windows }
}

/// A file open on the disk of [`one`], with this window; newly opened files get `fresh` KiB.
fn open_file(window: u64, fresh: u64) -> OpenWindow {
    OpenWindow {
        bdi: BdiId::new("8:0").unwrap(),
        window: Kib::new(window),
        fresh: Kib::new(fresh),
        random: false,
        cached: true,
        size: Bytes::from_mib(64),
        holders: vec![(300, "mongod".to_owned())],
    }
}

const UDEV: &str = "etc/udev/rules.d/60-ra.rules";

fn flash(kib: u64) -> Queue {
    Queue { read_ahead_kb: kib, ..FLASH }
}

/// A machine with one flash disk that has this queue, mounted on /data with xfs.
fn one(kernel: &str, queue: Queue) -> Machine {
    Machine::new(kernel).device("sda", "8:0", queue).mount("8:0", "/data", "xfs", "/dev/sda")
}

/// Diagnoses each situation and reports all failures together.
#[track_caller]
fn hold(all: &[Situation]) {
    let wrong: Vec<String> = all.iter().filter_map(problem).collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

fn problem(situation: &Situation) -> Option<String> {
    let found = situation.machine.diagnosis_with(situation.path, situation.windows.clone());
    let mut findings: Vec<&str> = found.findings.iter().map(|found| found.id).collect();
    findings.sort_unstable();
    let mut expected = situation.findings.to_vec();
    expected.sort_unstable();
    let origin = (found.origin.kind.word(), found.origin.confidence.word());
    let message = found
        .findings
        .iter()
        .all(|finding| !finding.evidence.is_empty() && !finding.why.is_empty());
    let right =
        origin == (situation.origin, situation.confidence) && findings == expected && message;
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
        foreread_itself(),
        open_files(),
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
fn what_foreread_set_is_explained() {
    hold(&foreread_itself());
}

#[test]
fn open_files_are_explained() {
    hold(&open_files());
}

#[test]
fn the_table_notices_what_is_wrong() {
    let wrong = case("wrong", one("6.1.0", FLASH), "/data", "udev", "high", &[]);
    assert!(problem(&wrong).is_some());
    let wrong = case("wrong", one("6.1.0", FLASH), "/data", "kernel", "high", &["zero"]);
    assert!(problem(&wrong).is_some());
}
