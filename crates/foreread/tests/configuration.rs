//! Configuration files and the environment.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use program::{Scratch, run};
use serde_json::Value;

/// Runs the program with this configuration.
#[track_caller]
fn with(scratch: &Scratch, text: &str, words: &str) -> (i32, String, String) {
    scratch.file("c.toml", text);
    run(scratch.foreread(words).env("FOREREAD_CONFIG", "c.toml"))
}

const DRY: &str = "tune -n sim:hdd-2008";

#[test]
fn a_key_is_the_default_of_its_option() {
    let scratch = Scratch::new();
    let minutes = |text: &str, words: &str| {
        let (code, out, said) = with(&scratch, text, words);
        assert_eq!(code, 0, "{text}: {said}");
        out.split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(minutes("", DRY), 10.0);
    assert_eq!(minutes("[tune]\nbudget = 7", DRY), 7.0);
    assert_eq!(minutes("[tune]\nbudget = 6.0", DRY), 6.0);
    assert_eq!(minutes("[tune]\nbudget = \"3\"\n[sweep]\nbudget = 4", DRY), 3.0);
    assert_eq!(minutes("[tune]\nbudget = 7", "tune -n sim:hdd-2008 --budget 5"), 5.0);
    let listed = |text: &str| with(&scratch, text, DRY).1;
    let list = listed("[tune]\nworkload = [\"seq-1\", \"rand-pread\"]\nrepeats = 4");
    assert!(list.contains("seq-1") && !list.contains("seq-8"), "{list}");
    assert!(list.contains("4 repeats"), "{list}");
    let (code, out, _) = with(&scratch, "[models.show]\njson = true", "models show hdd-2008");
    assert!(code == 0 && out.starts_with('{'), "{out}");
}

#[test]
fn command_line_environment_user_and_system_come_in_this_order() {
    let scratch = Scratch::new();
    let store = |text: &str, words: &str, variable: Option<&str>| -> String {
        scratch.file("c.toml", text);
        let mut command = scratch.foreread(words);
        command.env("FOREREAD_CONFIG", "c.toml");
        variable.map(|value| command.env("FOREREAD_STORE", value));
        let info: Value = serde_json::from_str(&run(&mut command).1).unwrap();
        info["directories"]["store"].as_str().unwrap().to_owned()
    };
    assert_eq!(store("store = \"file\"", "info --json", None), "file");
    assert_eq!(store("store = \"file\"", "info --json", Some("variable")), "variable");
    assert_eq!(store("store = \"file\"", "info --json --store x", Some("variable")), "x");
    // The user's own file, if no file is named.
    let user = scratch.path().join("xdg/foreread");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("config.toml"), "store = \"mine\"").unwrap();
    let mut command = scratch.foreread("info --json");
    command.env_remove("FOREREAD_CONFIG").env("XDG_CONFIG_HOME", scratch.path().join("xdg"));
    let info: Value = serde_json::from_str(&run(&mut command).1).unwrap();
    assert_eq!(info["directories"]["store"], "mine");
    let files = info["configuration"].as_array().unwrap();
    assert_eq!(files[0]["path"], "/etc/foreread.toml");
    assert_eq!((&files[1]["whose"], &files[1]["read"]), (&"user".into(), &true.into()));
}

#[test]
fn an_option_typed_displaces_what_does_not_go_with_it() {
    let scratch = Scratch::new();
    let (code, out, said) = with(&scratch, "[models]\njson = true", "models");
    assert!(code == 0 && out.starts_with('{'), "{said}");
    let text = "[sweep]\njson = true";
    let sweep = "sweep sim:nvme --vary read_ahead=4K --workload seq-1 --repeats 1 --duration 50ms";
    assert!(with(&scratch, text, sweep).1.starts_with('{'));
    let (_, out, said) = with(&scratch, text, &format!("{sweep} --csv"));
    assert!(out.starts_with("run,"), "{out}{said}");
    assert_eq!(with(&scratch, "quiet = true", "runs -v").0, 0);
    assert!(with(&scratch, "color = \"always\"", "tune -n nosuch").2.contains('\u{1b}'));
    let mut command = scratch.foreread("tune -n nosuch");
    command.env("FOREREAD_CONFIG", "c.toml").env("NO_COLOR", "1");
    assert!(!run(&mut command).2.contains('\u{1b}'));
}

#[test]
fn what_is_wrong_is_named_with_file_line_and_a_suggestion() {
    let scratch = Scratch::new();
    for (text, line, said) in [
        ("stroe = \"x\"", 1, "did you mean \"store\"?"),
        ("# a\n\n[tune]\nbudgt = 10", 4, "did you mean \"budget\"?"),
        ("[tnue]\nbudget = 1", 1, "did you mean \"tune\"?"),
        ("budget = 10", 1, "[tune]"),
        ("[tune]\nstore = \"x\"", 2, "before the first table"),
        ("[tune]\nbudget = \"ten\"", 2, "budget = \"ten\": "),
        ("[tune]\nbudget = -1", 2, "budget"),
        ("[tune]\nbudget = true", 2, "must be a text or a number"),
        ("[tune]\nbudget = [1, 2]", 2, "must be a text or a number"),
        ("[tune]\nfresh = 1", 2, "true or false"),
        ("[tune]\ntarget = \"/srv\"", 2, "no option \"target\""),
        ("[tune.nosuch]\nx = 1", 1, "no verbs below it"),
        ("[experiment.readers]\nstreams = 1", 2, "no option"),
        ("[sweep]\nsize = \"100\"", 2, "no unit"),
        ("[sweep]\ndesign = \"ful\"", 2, "one-at-a-time"),
        ("color = \"sometimes\"", 1, "auto, always, never"),
        ("config = \"x\"", 1, "command line"),
        ("store = 2020-01-01", 1, "must be a text or a number"),
        ("store = \"a\"\nstore = \"b\"", 2, "duplicate key"),
        ("[tune", 1, ""),
        ("verbose = 1000", 1, "how often"),
        ("[guard]\nx = 1", 1, "there is no verb"),
    ] {
        let (code, out, stderr) = with(&scratch, text, DRY);
        assert_eq!((code, out.as_str()), (2, ""), "{text}: {stderr}");
        assert!(stderr.starts_with(&format!("error: c.toml:{line}: ")), "{text}: {stderr}");
        assert!(stderr.contains(said), "{text}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{text}: {stderr}");
    }
    for place in ["nowhere.toml", ".", "/dev/zero", "/proc/self/mem"] {
        let (code, _, said) = scratch.run(&format!("runs --config {place}"));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(place), "{said}");
    }
    // An invalid file does not prevent `info`, which reports it, or `--help`.
    let (code, out, _) = with(&scratch, "stroe = 1", "info");
    assert!(code == 0 && out.contains("c.toml:1: "), "{out}");
    assert_eq!(with(&scratch, "stroe = 1", "tune --help").0, 0);
    assert_eq!(with(&scratch, "stroe = 1", "--version").0, 0);
}

/// Variables that only tests and the build read.
const OF_TESTS: [&str; 26] = [
    "FOREREAD_AGREE",
    "FOREREAD_AGREEMENT",
    "FOREREAD_COMMIT",
    "FOREREAD_FUZZ_SEED",
    "FOREREAD_FIO_EXAMPLES",
    "FOREREAD_FUZZ_SECONDS",
    "FOREREAD_GENERIC_CALLS",
    "FOREREAD_GUEST_CACHE",
    "FOREREAD_GUEST_MIRROR",
    "FOREREAD_GUEST_STATIC",
    "FOREREAD_KERNEL_H",
    "FOREREAD_KILLS",
    "FOREREAD_LARGE",
    "FOREREAD_PICTURES",
    "FOREREAD_PROFILE_H",
    "FOREREAD_RECORDS_H",
    "FOREREAD_REPRODUCE",
    "FOREREAD_SCENES",
    "FOREREAD_SEED",
    "FOREREAD_SIMULATOR_VERSION",
    "FOREREAD_SOAK_SECONDS",
    "FOREREAD_SPEED",
    "FOREREAD_TRACES",
    "FOREREAD_UPDATE",
    "FOREREAD_WITHOUT_PROBES",
    "FOREREAD_X86_64",
];

fn sources(dir: &Path, found: &mut String) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && !["tests", "benches", "examples", "fuzz"].iter().any(|it| *it == name) {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "c" || end == "h") {
            found.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_variable_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut text = String::new();
    sources(&root.join("crates"), &mut text);
    let word = |rest: &str| -> String {
        let word = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_';
        rest.chars().take_while(word).collect()
    };
    let names: BTreeSet<String> =
        text.match_indices("FOREREAD_").map(|(at, _)| word(&text[at..])).collect();
    assert!(names.len() >= 6, "{names:?}");
    let chapter = fs::read_to_string(root.join("docs/book/configuration.md")).unwrap();
    for name in names.iter().filter(|name| !OF_TESTS.contains(&name.as_str())) {
        assert!(chapter.contains(&format!("`{name}`")), "{name} is not in configuration.md");
    }
}
