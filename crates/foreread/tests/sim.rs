//! Simulated targets, and the recorded decisions, as a person meets them.
#![allow(clippy::unwrap_used)] // a test may panic

use assert_cmd::Command;
use serde_json::Value;

/// A scratch directory and the program at work in it.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Exit code, stdout and stderr.
    fn run(&self, words: &str) -> (i32, String, String) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("foreread"));
        let output = command
            .env("FOREREAD_STATE_DIR", self.0.path().join("state"))
            .env("FOREREAD_RUNTIME_DIR", self.0.path().join("runtime"))
            .env_remove("FOREREAD_STORE")
            .env_remove("FOREREAD_LOG")
            .current_dir(self.0.path())
            .args(words.split(' '))
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

const SWEEP: &str = "sweep sim:hdd-2008,cache=64M --workload seq-1,seq-8 --repeats 2 --seed 7 \
    --duration 200ms --size 16M --vary read_ahead=4K,128K,1M --fresh";

/// The words of a constant that was broken into lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_same_seed_gives_the_same_json_byte_for_byte() {
    let scratch = Scratch::new();
    let json = || scratch.run(&format!("{} --json", words(SWEEP)));
    let (code, first, stderr) = json();
    assert!(code == 0 || code == 5, "{code}: {stderr}");
    assert_eq!(json().1, first);
    let document: Value = serde_json::from_str(&first).unwrap();
    assert!(document["run"].is_null() && document["created_unix_s"].is_null());
    assert_eq!(document["cells"].as_array().unwrap().len(), 6);
    let other = words(SWEEP).replace("--seed 7", "--seed 8");
    assert_ne!(scratch.run(&format!("{other} --json")).1, first);
}

#[test]
fn a_simulation_has_tables_verdicts_and_a_record() {
    let scratch = Scratch::new();
    let (code, stdout, stderr) = scratch.run(&words(SWEEP));
    assert!(code == 0 || code == 5, "{code}: {stderr}");
    assert!(stdout.contains("128 KiB") && stdout.contains("seq-8"), "{stdout}");
    let (_, listed, _) = scratch.run("runs");
    assert!(listed.contains("sim:hdd-2008,cache=64M"), "{listed}");
    let (code, shown, _) = scratch.run("runs show 1");
    assert!(code == 0 || code == 5);
    assert!(shown.contains("128 KiB"), "{shown}");
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_line() {
    let cases = [
        ("sweep sim:hdd-2008,kernel=linux-6.19", "did you mean \"linux-6.18\""),
        ("sweep sim:raid10-2009", "raid10-2008"),
        ("sweep sim:hdd-2008,rpm=0", "rpm"),
        ("sweep sim:hdd-2008,colour=red", "colour"),
        ("sweep sim:hdd-2008,cache=64K,read_ahead=1M", "smaller than a read-ahead window"),
        ("sweep sim:hdd-2008,cache=1M --vary read_ahead=2M", "smaller than a read-ahead window"),
        ("sweep sim:./no-such.toml", "no-such.toml"),
        ("sweep sim:", "no"),
        ("sim golden no-such-file.json", "no-such-file.json"),
    ];
    for (words, said) in cases {
        let (code, stdout, stderr) = Scratch::new().run(words);
        assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
        let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, 1, "{words}: one clear line, not\n{stderr}");
    }
}

const RECORDING: &str = include_str!("../../policy/tests/data/linux-6.18-readahead-golden.json");

#[test]
fn recorded_decisions_are_made_again_or_the_difference_is_told() {
    let scratch = Scratch::new();
    let file = scratch.0.path().join("golden.json");
    std::fs::write(&file, RECORDING).unwrap();
    let (code, stdout, stderr) = scratch.run("sim golden golden.json");
    assert_eq!((code, stdout.lines().count()), (0, 204), "{stderr}");
    assert!(stdout.lines().all(|line| line.starts_with("same ")));

    let mut document: Value = serde_json::from_str(RECORDING).unwrap();
    let config = document["results"].as_object_mut().unwrap().values_mut().next().unwrap();
    let result = config.as_object_mut().unwrap().values_mut().next().unwrap();
    result["cached_pages_after"] = Value::from(1);
    std::fs::write(&file, document.to_string()).unwrap();
    let (code, stdout, stderr) = scratch.run("sim golden golden.json");
    assert_eq!(code, 3, "{stderr}");
    assert_eq!(stdout.lines().filter(|line| line.starts_with("DIFFERS ")).count(), 1);
    assert!(stderr.contains("1 of 204"), "{stderr}");

    std::fs::write(&file, "{\"patterns\": 3").unwrap();
    let (code, _, stderr) = scratch.run("sim golden golden.json");
    assert_eq!(code, 2);
    assert!(stderr.contains("golden.json") && stderr.contains("line 1"), "{stderr}");
}

#[test]
fn policies_and_keys_are_listed() {
    let scratch = Scratch::new();
    let (code, stdout, _) = scratch.run("sim policies");
    assert_eq!(code, 0);
    assert!(stdout.contains("linux-6.18") && stdout.contains("hit_rate"), "{stdout}");
    assert!(scratch.run("sim keys").1.contains("cache"));
}

#[test]
fn a_dry_run_says_that_nothing_happens() {
    let (code, stdout, _) = Scratch::new().run("tune -n sim:nvme,kernel=none");
    assert_eq!(code, 0);
    assert!(stdout.contains("nothing is read or changed") && stdout.contains("none"), "{stdout}");
}
