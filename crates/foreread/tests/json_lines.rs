//! Lines of JSON while a study runs.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;
#[path = "../../report/tests/validate/mod.rs"]
mod validate;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use program::Scratch;
use serde_json::Value;

const SWEEP: &str = "sweep sim:hdd-2008 --vary read_ahead=4K,128K --workload seq-1 --repeats 2 \
                     --duration 100ms --seed 1";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_study_is_a_line_for_each_trial_and_its_document() {
    let scratch = Scratch::new();
    for words in [SWEEP, "tune sim:hdd-2008 --workload seq-1 --budget 0.2 --seed 1 --repeats 2"] {
        let (code, out, said) = scratch.run(&format!("{words} --json-lines"));
        assert!(code == 0 || code == 5, "{said}");
        let mut lines = lines(&out);
        let document = lines.pop().unwrap();
        assert_eq!(document["trials"].as_u64().unwrap() as usize, lines.len(), "{words}");
        for line in &lines {
            assert_eq!(line["event"], "trial");
            validate::assert_valid_as("trial_line", line);
        }
        assert!(document.get("event").is_none() && document["cells"].is_array());
        let (_, shown, _) = scratch.run("runs show last --json");
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(document["cells"], shown["cells"], "{words}");
    }
    let experiment = "experiment readers sim:hdd-2008 --readers 1,2 --repeats 1 --duration 100ms \
                      --read-ahead 4K,128K --seed 1 --json-lines";
    let (_, out, said) = scratch.run(experiment);
    let lines = lines(&out);
    assert_eq!(lines.len(), 5, "{said}");
    assert!(lines[4].get("event").is_none() && lines[4]["schema_version"].is_number());
    let (code, _, said) = scratch.run(&format!("{SWEEP} --json-lines --json"));
    assert!(code == 2 && said.contains("--json"), "{said}");
}

#[test]
fn lines_can_be_kept_in_a_file() {
    let scratch = Scratch::new();
    let (_, out, said) = scratch.run(&format!("{SWEEP} --json-lines -o lines.json"));
    assert_eq!(out, "", "{said}");
    let text = std::fs::read_to_string(scratch.path().join("lines.json")).unwrap();
    assert_eq!(lines(&text).len(), 5);
}

#[test]
fn a_study_whose_reader_leaves_ends() {
    let scratch = Scratch::new();
    let words = "sweep sim:hdd-2008 --workload seq-1,seq-8 --repeats 900 --seed 1 --json-lines -q";
    let mut child = scratch.foreread(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"trial\""), "while it runs: {first}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}
