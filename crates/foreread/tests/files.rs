//! The files that verbs write for their users: the same rules for all of them.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::fs;
use std::os::unix::fs::symlink;

use program::Scratch;

const SWEEP: &str = "sweep sim:nvme --vary read_ahead=4K,128K --workload seq-1 --repeats 1 \
                     --duration 100ms --seed 1";

/// Each verb that writes a file, without the file's name.
const WRITERS: [&str; 21] = [
    "report 1 -o",
    "report 1 --output",
    "compare 1 1 -o",
    "compare 1 1 --json -o",
    "runs -o",
    "runs list --csv -o",
    "runs show 1 --json -o",
    "runs show 1 --markdown --output",
    "models show hdd-2008 -o",
    "workloads show seq-1 -o",
    "export --fio seq-1 -o",
    "trace import in.csv -o",
    "completions bash -o",
    "doctor --json -o",
    "check --emit-policy -o",
    "presets --all -o",
    "reproduce -o",
    "persist vm.swappiness=10 --emit files -o",
    "sweep sim:nvme --vary read_ahead=4K --workload seq-1 --repeats 1 --duration 50ms --csv -o",
    "tune -n sim:nvme -o",
    "models -o",
];

fn prepared() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("in.csv", "offset,length\n0,4096\n4096,4096\n");
    let (code, _, said) = scratch.run(SWEEP);
    assert!(code == 0 || code == 5, "{said}");
    scratch
}

#[test]
fn a_file_is_overwritten_by_force_only() {
    let scratch = prepared();
    for writer in WRITERS {
        let (code, printed, said) = scratch.run(&format!("{writer} out"));
        assert!(code == 0 || code == 5, "{writer}: {said}");
        assert_eq!(printed, "", "{writer}: the results are in the file");
        let first = fs::read(scratch.path().join("out")).unwrap();
        assert!(!first.is_empty(), "{writer}");
        scratch.file("out", "mine");
        let (code, _, said) = scratch.run(&format!("{writer} out"));
        assert_eq!(code, 2, "{writer}: {said}");
        assert!(said.contains("--output out: the file exists; --force"), "{writer}: {said}");
        assert_eq!(fs::read(scratch.path().join("out")).unwrap(), b"mine", "{writer}");
        let (code, _, said) = scratch.run(&format!("{writer} out --force"));
        assert!(code == 0 || code == 5, "{writer}: {said}");
        assert_ne!(fs::read(scratch.path().join("out")).unwrap(), b"mine", "{writer}");
        fs::remove_file(scratch.path().join("out")).unwrap();
    }
    let names = fs::read_dir(scratch.path()).unwrap().flatten().map(|one| one.file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["in.csv", "state"], "nothing is left beside them");
}

#[test]
fn what_is_no_regular_file_is_never_replaced() {
    let scratch = prepared();
    let at = |name: &str| scratch.path().join(name);
    scratch.file("file", "mine");
    fs::create_dir(at("dir")).unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    let more = ["calibrate sim:hdd-2008 -o", "trace record -o", "watch --record"];
    for writer in WRITERS.into_iter().chain(more) {
        let end = if writer.starts_with("trace record") { " -- true" } else { "" };
        for place in ["dir", "link", "dangling", "pipe", "/dev/null", "/dev/stdout", "no/such"] {
            let model = writer.starts_with("calibrate");
            if model && place.contains('/') {
                continue; // a model's file ends in .toml
            }
            let place = if model {
                let named = format!("{place}.toml");
                let _ = fs::rename(at(place), at(&named));
                named
            } else {
                place.to_owned()
            };
            let (code, printed, said) = scratch.run(&format!("{writer} {place} --force{end}"));
            assert_eq!((code, printed.as_str()), (2, ""), "{writer} {place}: {said}");
            assert_eq!(said.lines().count(), 1, "{writer} {place}: {said}");
            if model {
                let _ = fs::rename(at(&place), at(place.trim_end_matches(".toml")));
            }
        }
    }
    assert_eq!(fs::read(at("file")).unwrap(), b"mine");
}

#[test]
fn a_dash_is_standard_output() {
    let scratch = prepared();
    for writer in WRITERS {
        let (code, printed, said) = scratch.run(&format!("{writer} -"));
        assert!(code == 0 || code == 5, "{writer}: {said}");
        assert!(!printed.is_empty(), "{writer}");
    }
    assert!(!scratch.path().join("-").exists());
}

#[test]
fn what_fails_leaves_no_file() {
    let scratch = prepared();
    for words in [
        "report 1 --limits --seed x -o out",
        "report 7 -o out",
        "runs show 7 -o out",
        "compare 1 7 -o out",
        "trace import nowhere -o out",
        "models show nosuch -o out",
        "sweep sim:nosuch -o out",
    ] {
        let (code, _, said) = scratch.run(words);
        assert_eq!(code, 2, "{words}: {said}");
        assert!(!scratch.path().join("out").exists(), "{words}");
    }
}

#[test]
fn a_page_and_a_table_of_trials_are_told_by_the_name() {
    let scratch = prepared();
    for (words, start) in [
        ("report 1 -o page.html", b"<!DO".as_slice()),
        ("report 1 -o trials.parquet", b"PAR1"),
        ("compare 1 1 -o both.html", b"<!DO"),
        ("compare 1 1 --csv -o both.csv", b"firs"),
    ] {
        let (code, _, said) = scratch.run(words);
        assert_eq!(code, 0, "{words}: {said}");
        let bytes = fs::read(scratch.path().join(words.rsplit(' ').next().unwrap())).unwrap();
        let head = bytes[..4].to_ascii_lowercase();
        assert_eq!(head, start.to_ascii_lowercase(), "{words}: {:?}", &bytes[..20]);
    }
}

/// Returns the program as a user who is not root, if that is possible here.
fn as_user(scratch: &Scratch, words: &str) -> std::process::Command {
    let plain = scratch.foreread(words);
    if !rustix::process::geteuid().is_root() {
        return plain;
    }
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(scratch.path());
    command.env("FOREREAD_STATE_DIR", scratch.path().join("state")).env("FOREREAD_CONFIG", "");
    command
}

#[test]
fn a_record_that_cannot_be_written_can_be_read() {
    let scratch = prepared();
    let mode = |path: &std::path::Path, bits| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(bits)).unwrap();
    };
    mode(scratch.path(), 0o755);
    let copy = scratch.path().join("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(scratch.path().join("state/runs.sqlite"), copy.join("runs.sqlite")).unwrap();
    mode(&copy.join("runs.sqlite"), 0o444);
    mode(&copy, 0o555);
    for words in ["runs", "runs list", "runs show 1", "report 1 -o -", "compare 1 1"] {
        let words = format!("{words} --store copy/runs.sqlite");
        let (code, stdout, said) = program::run(&mut as_user(&scratch, &words));
        assert!(code == 0 && !stdout.is_empty(), "{words}: {code} {said}");
    }
    assert_eq!(fs::read_dir(&copy).unwrap().count(), 1, "nothing is created");
    mode(&copy, 0o755);
}

#[test]
fn a_named_record_must_exist() {
    let scratch = Scratch::new();
    let (code, _, said) = scratch.run("runs");
    assert!(code == 0 && said.contains("no runs recorded"), "{said}");
    for file in ["missing.sqlite", "missing/runs.sqlite"] {
        let (code, _, said) = scratch.run(&format!("runs --store {file}"));
        assert!(code == 2 && said.contains("does not exist"), "{said}");
    }
}
