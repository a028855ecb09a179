//! Programs with one fault each, and their clean twins, on a virtual hard disk: the diagnosis comes
//! first, on its line, and the twin does not have it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Stage, text};

/// The fault program of the crate that diagnoses.
const PROGRAM: &str = "../profile/tests/programs/fault.c";
const SIZE: usize = 64 << 20;
/// Each fault, and whether the line to change is that of the read: advice has a line of its own.
const FAULTS: [(&str, bool); 9] = [
    ("needless-random", false),
    ("backward", true),
    ("stride", true),
    ("mapped-sequential", true),
    ("mapped-random", true),
    ("self-eviction", true),
    ("direct-depth-1", true),
    ("ramp", true),
    ("random-depth-1", true),
];

#[test]
fn host_profile_finds_each_fault_on_a_virtual_hard_disk() {
    let name = "host_profile_finds_each_fault_on_a_virtual_hard_disk";
    let Some(stage) = Stage::of(name, "hdd-2008,fs=xfs,size=2G") else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
    let program = stage.dir.path().join("fault");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O1", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(&source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("SKIP {name}: there is no C compiler");
        return;
    }
    let data = stage.mount.join("data");
    fs::write(&data, vec![7; SIZE]).unwrap();
    let code = fs::read_to_string(source).unwrap();
    let line = |fault: &str| {
        let mark = format!("/* line of {fault} */");
        1 + code.lines().position(|line| line.contains(&mark)).unwrap() as u64
    };
    let profile = |words: &[&str]| -> Option<Value> {
        // Cold.
        let file = fs::File::open(&data).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut command = stage.foreread();
        command.args(["profile", "--json", "--device", "none", "--"]).arg(&program);
        command.arg(words[0]).arg(&data).args(&words[1..]);
        let output = command.output().unwrap();
        if output.status.code() == Some(6) {
            println!("SKIP {name}: {}", text(&output.stderr));
            return None;
        }
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(serde_json::from_slice(&output.stdout).unwrap())
    };
    for (fault, is_read) in FAULTS {
        let Some(found) = profile(&[fault]) else { return };
        let first = &found["diagnoses"][0];
        assert_eq!(first["rule"], fault, "{}", found["diagnoses"]);
        let source = &first["location"]["source"];
        assert!(source[0].as_str().unwrap().ends_with("fault.c"), "{fault}: {first}");
        assert!(!is_read || source[1] == line(fault), "{fault}: {source}");
        let Some(twin) = profile(&[fault, "--fixed"]) else { return };
        let rules = twin["diagnoses"].as_array().unwrap().iter().map(|one| &one["rule"]);
        assert!(rules.clone().all(|rule| rule != fault), "the twin of {fault} has it, too");
    }
}
