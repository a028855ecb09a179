//! Colours, characters and version in the output of all verbs, as on a terminal.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;
#[path = "../../report/tests/validate/mod.rs"]
mod validate;

use std::process::Command;

use program::{Scratch, run};

const SWEEP: &str = "sweep sim:hdd-2008 --vary read_ahead=4K,128K,1M --workload seq-1,rand-mmap \
                     --repeats 3 --duration 200ms --seed 1";

fn with(scratch: &Scratch, words: &str, environment: &[(&str, &str)]) -> (i32, String, String) {
    run(scratch.foreread(words).envs(environment.iter().copied()))
}

fn coloured(words: &str, environment: &[(&str, &str)]) -> bool {
    let scratch = Scratch::new();
    let (_, stdout, stderr) = with(&scratch, words, environment);
    format!("{stdout}{stderr}").contains('\u{1b}')
}

#[test]
fn colour_follows_the_option_before_the_variables() {
    // An error from clap, an error from a verb, and help.
    for words in ["swep", "tune -n nosuch", "--help"] {
        let always = format!("--color=always {words}");
        let never = format!("--color never {words}");
        assert!(!coloured(words, &[]), "{words}: stderr is no terminal");
        assert!(coloured(&always, &[]), "{words}");
        assert!(coloured(&always, &[("NO_COLOR", "1")]), "{words}");
        assert!(coloured(&format!("--colour=always {words}"), &[]), "{words}");
        assert!(coloured(words, &[("CLICOLOR_FORCE", "1")]), "{words}");
        assert!(!coloured(words, &[("CLICOLOR_FORCE", "0")]), "{words}");
        assert!(!coloured(words, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), "{words}");
        assert!(coloured(words, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]), "{words}");
        assert!(!coloured(&never, &[("CLICOLOR_FORCE", "1")]), "{words}");
    }
    assert!(coloured("tune -n nosuch --color always", &[]), "the option may follow the verb");
    assert!(!coloured("models --json --color always", &[]), "documents have no colour");
    let (code, _, said) = with(&Scratch::new(), "runs --color sometimes", &[]);
    assert!(code == 2 && said.contains("auto") && said.contains("never"), "{said}");
}

#[test]
fn a_terminal_has_colours_unless_clicolor_forbids() {
    let scratch = Scratch::new();
    let seen = |words: &str, variable: (&str, &str)| {
        let program = assert_cmd::cargo::cargo_bin!("foreread");
        let line = format!("{} {words}", program.display());
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env(variable.0, variable.1);
        script.env("TERM", "xterm").env("FOREREAD_STATE_DIR", scratch.path());
        script.env_remove("CI").env_remove("NO_COLOR").env_remove("CLICOLOR");
        script.env(variable.0, variable.1);
        script.output().ok().map(|output| output.stdout.contains(&0x1b))
    };
    let Some(plain) = seen("tune -n nosuch", ("A", "1")) else {
        return eprintln!("SKIP a_terminal_has_colours_unless_clicolor_forbids: no script(1)");
    };
    assert!(plain, "a terminal has colours");
    assert_eq!(seen("tune -n nosuch", ("CLICOLOR", "0")), Some(false));
    assert_eq!(seen("tune -n nosuch", ("NO_COLOR", "1")), Some(false));
    assert_eq!(seen("tune -n nosuch --color=never", ("A", "1")), Some(false));
    assert_eq!(seen("tune -n nosuch --color=always", ("CLICOLOR", "0")), Some(true));
    assert_eq!(seen("tune -n nosuch", ("TERM", "dumb")), Some(false));
}

/// Texts for people, from all verbs that run quickly and without privileges.
const TEXTS: [&str; 22] = [
    SWEEP,
    "info",
    "runs",
    "runs show 1",
    "runs show 1 --plots",
    "compare 1 2",
    "models",
    "workloads",
    "sim policies",
    "sim keys",
    "presets --all",
    "doctor",
    "reproduce",
    "reproduce xfs-2008 --seeds 1",
    "sweep -n sim:hdd-2008",
    "tune -n virtual:hdd-2008",
    "sweep sim:hdd-2008 --vary policy=linux-6.18,zfs --repeats 1 --duration 100ms --seed 1",
    "experiment readers sim:hdd-2008 --readers 1,2 --repeats 1 --duration 100ms --seed 1",
    "trace formats",
    "apply -n vm.swappiness=10",
    "verify",
    "nosuch",
];

#[test]
fn a_locale_without_utf8_gets_ascii() {
    let scratch = Scratch::new();
    for _ in 0..2 {
        let (code, _, said) = scratch.run(SWEEP);
        assert!(code == 0 || code == 5, "{said}");
    }
    let mut signs = 0;
    for words in TEXTS {
        let (code, stdout, stderr) = scratch.run(words);
        signs += stdout.chars().filter(|c| !c.is_ascii()).count();
        let locales = match words {
            "models" => ["C", "POSIX", "de_DE.ISO-8859-1"].as_slice(),
            _ => &["C"],
        };
        for locale in locales {
            let (found, out, said) = with(&scratch, words, &[("LC_ALL", locale)]);
            assert_eq!(found, code, "{words}: {said}");
            let foreign = out.chars().chain(said.chars()).find(|c| !c.is_ascii());
            assert_eq!(foreign, None, "{words}: {out}{said}");
            assert!(!out.contains("\\u{") && !said.contains("\\u{"), "{words}: {out}{said}");
        }
        let _ = stderr;
    }
    assert!(signs > 100, "in UTF-8 there are plots and signs");
    let (_, out, _) = with(&scratch, "runs show 1 --ascii", &[]);
    assert!(out.is_ascii(), "{out}");
    // LANG alone, then LC_CTYPE, which overrides it.
    let mut command = scratch.foreread("runs show 1");
    command.env_remove("LC_ALL").env("LANG", "C").env("LC_CTYPE", "C.UTF-8");
    assert!(!run(&mut command).1.is_ascii());
    command.env("LANG", "C.UTF-8").env("LC_CTYPE", "C");
    assert!(run(&mut command).1.is_ascii());
}

#[test]
fn the_help_of_every_verb_is_ascii_where_it_must_be() {
    let scratch = Scratch::new();
    let (_, help, _) = scratch.run("--help");
    let verbs = help.lines().skip_while(|line| *line != "Look:").skip(1);
    let verbs: Vec<&str> = verbs
        .take_while(|line| !line.starts_with("Options"))
        .filter_map(|line| {
            line.strip_prefix("  ")?.split(' ').next().filter(|w| !matches!(*w, "" | "help"))
        })
        .collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in verbs {
        let (code, out, _) = with(&scratch, &format!("{verb} --help"), &[("LC_ALL", "C")]);
        assert!(code == 0 && out.is_ascii(), "{verb}: {out}");
        assert!(!out.contains("\\u{"), "{verb}: {out}");
    }
}

#[test]
fn columns_stay_below_one_another_in_ascii() {
    let scratch = Scratch::new();
    scratch.run(SWEEP);
    let rows = |options: &str| -> Vec<usize> {
        let (_, out, _) = scratch.run(&format!("runs show 1 {options}"));
        let row = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let rows = out.lines().filter(row).filter(|line| line.contains("KiB"));
        rows.map(|line| line.chars().count()).collect()
    };
    assert!(rows("").len() >= 3);
    assert_eq!(rows(""), rows("--ascii"));
}

#[test]
fn documents_are_utf8_everywhere() {
    let scratch = Scratch::new();
    scratch.run(SWEEP);
    for words in [
        "runs show 1 --json",
        "runs show 1 --csv",
        "runs show 1 --markdown",
        "report 1 -o -",
        "models show hdd-2008",
        "presets --all --json",
        "completions zsh",
    ] {
        let (code, out, _) = scratch.run(words);
        let (found, plain, _) = with(&scratch, &format!("{words} --ascii"), &[("LC_ALL", "C")]);
        assert_eq!((found, plain), (code, out), "{words}");
    }
}

#[test]
fn the_version_is_short_or_says_of_what_it_was_built() {
    let scratch = Scratch::new();
    let version = env!("CARGO_PKG_VERSION");
    let (code, short, _) = scratch.run("-V");
    assert_eq!((code, short), (0, format!("foreread {version}\n")));
    let (code, long, _) = scratch.run("--version");
    assert_eq!(code, 0);
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], format!("foreread {version}"));
    for what in ["commit: ", "target: ", "kernel probes: "] {
        assert!(lines.iter().any(|line| line.starts_with(what)), "{long}");
    }
}

#[test]
fn info_says_what_works_here_and_why_not() {
    let scratch = Scratch::new();
    let (code, text, said) = scratch.run("info --json");
    assert_eq!(code, 0, "{said}");
    let info: serde_json::Value = serde_json::from_str(&text).unwrap();
    validate::assert_valid_as("info_document", &info);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["target"].as_str().unwrap().contains("linux"), "{info}");
    assert!(info["kernel_probes"].is_boolean() && info["kernel"]["btf"].is_boolean(), "{info}");
    let features = info["features"].as_array().unwrap();
    assert!(features.len() >= 9, "{info}");
    for feature in features {
        let reason = feature["reason"].as_str();
        assert!(feature["works"] == true || reason.is_some_and(|why| !why.is_empty()), "{feature}");
    }
    assert!(info["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "fio"), "{info}");
    let state = scratch.path().join("state");
    assert_eq!(info["directories"]["state"], state.to_str().unwrap());
    assert!(!state.exists(), "nothing is made");
    let (code, text, _) = scratch.run("info");
    assert_eq!(code, 0);
    for what in ["foreread ", "commit ", "kernel ", "What works here", "External programs"] {
        assert!(text.contains(what), "{what}: {text}");
    }
}
