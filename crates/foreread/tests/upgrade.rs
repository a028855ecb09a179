//! Files of an earlier version still open. `data/upgrade-0.1.0` has a record of one run, which the
//! program of commit 27f0002da1a3 wrote, a configuration that this program accepted, and the
//! journal of its `apply` (with a device number that no host has in place of the real one).
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::fs;
use std::path::Path;

use program::{Scratch, run};
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/upgrade-0.1.0");

fn with_record() -> Scratch {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    fs::create_dir_all(&state).unwrap();
    fs::copy(Path::new(FIXTURES).join("runs.sqlite"), state.join("runs.sqlite")).unwrap();
    scratch
}

#[test]
fn a_record_of_an_earlier_version_opens_and_gives_its_recommendation() {
    let scratch = with_record();
    let (code, out, err) = run(&mut scratch.foreread("runs show 1 --json"));
    assert_eq!(code, 0, "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4, "two settings, two workloads");
    assert_eq!(document["recommendation"]["read_ahead_kib"], 1024, "{out}");
    let (code, _, err) = run(&mut scratch.foreread("report 1 -o -"));
    assert_eq!(code, 0, "{err}");
    // The next run is added to the same record.
    let words =
        "sweep -q sim:nvme,cache=64M --vary read_ahead=128K --workload seq-1 --duration 20ms";
    let (code, _, err) = run(&mut scratch.foreread(words));
    assert!(matches!(code, 0 | 5), "{err}");
    let (code, _, err) = run(&mut scratch.foreread("runs show 2"));
    assert!(matches!(code, 0 | 5), "{err}");
}

#[test]
fn a_record_of_a_later_version_is_refused_in_one_line_and_not_changed() {
    let scratch = with_record();
    let path = scratch.path().join("state/runs.sqlite");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    for words in ["runs", "runs show 1", "sweep sim:nvme --workload seq-1 --duration 20ms"] {
        let (code, out, err) = run(&mut scratch.foreread(words));
        assert_ne!(code, 0, "{words}");
        assert_eq!(out, "", "{words}");
        assert_eq!(err.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{err}");
        assert!(err.contains("later version") && err.contains("999"), "{words}: {err}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_configuration_of_an_earlier_version_is_read() {
    let scratch = with_record();
    let mut command = scratch.foreread("runs show 1");
    command.env("FOREREAD_CONFIG", Path::new(FIXTURES).join("config.toml"));
    let (code, out, err) = run(&mut command);
    assert_eq!(code, 0, "{err}");
    assert!(serde_json::from_str::<Value>(&out).is_ok(), "json = true is obeyed: {out}");
}

#[test]
fn a_journal_of_an_earlier_version_is_verified_and_rolled_back() {
    let scratch = with_record();
    let journals = scratch.path().join("state/journal");
    fs::create_dir_all(&journals).unwrap();
    let journal = journals.join("1795493377690-30590-4095:9.jsonl");
    fs::copy(Path::new(FIXTURES).join("journal.jsonl"), &journal).unwrap();
    let (code, out, err) = scratch.run("verify --no-probe");
    assert_eq!(code, 3, "{err}");
    assert!(out.contains("read_ahead was set to 256 KiB (4095:9)"), "{out}");
    let (code, out, err) = scratch.run("rollback all --dry-run");
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("4095:9: device is gone"), "{out}{err}");
    assert!(journal.exists(), "a dry run changes nothing");
    let (code, out, err) = scratch.run("rollback all");
    assert_eq!(code, 0, "{out}{err}");
    assert!(!journal.exists(), "{out}{err}");
}
