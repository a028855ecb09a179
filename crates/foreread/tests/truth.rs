//! doctor, check and presets as users see them, on trees that represent machines.
#![allow(clippy::unwrap_used)] // a test may panic

extern crate doctor as foreread_doctor;

#[path = "../../doctor/tests/hosts/mod.rs"]
mod hosts;
mod program;

use std::path::Path;

use hosts::{FLASH, Machine, Queue};
use program::foreread_in;
use serde_json::Value;

fn machine() -> Machine {
    let queue = Queue { read_ahead_kb: 4096, ..FLASH };
    Machine::new("6.1.0")
        .device("sda", "8:0", queue)
        .mount("8:0", "/srv/my data", "xfs", "/dev/sda")
        .with("etc/udev/rules.d/60-ra.rules", "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"64\"\n")
        .tuned("throughput-performance", "[disk]\nreadahead=>4096\n")
        .process(300, "mongod", "")
        .with("var/lib/mongodb/x", "")
}

fn foreread(tree: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = foreread_in(&tree.join("own"));
    program::run(command.env("FOREREAD_ROOT", tree).current_dir(tree).args(words))
}

#[test]
fn doctor_names_the_owner_and_the_loser() {
    // The mount table escapes blanks in mount points; the tree writes names unchanged.
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", Queue { read_ahead_kb: 4096, ..FLASH })
        .mount("8:0", "/srv", "xfs", "/dev/sda")
        .with("etc/udev/rules.d/60-ra.rules", "KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"64\"\n")
        .tuned("throughput-performance", "[disk]\nreadahead=>4096\n");
    let (code, text, _) = foreread(machine.path(), &["doctor"]);
    assert_eq!(code, 0);
    assert!(text.contains("/srv · xfs on sda"), "{text}");
    assert!(text.contains("4096 KiB · 8192 sectors"), "{text}");
    assert!(
        text.contains("TuneD profile /usr/lib/tuned/profiles/throughput-performance"),
        "{text}"
    );
    assert!(text.contains("overwritten: /srv"), "{text}");
    // TuneD acts later and wins, so the plan removes the rule, which ends the conflict.
    assert!(text.contains("/srv: stays at 4096 KiB"), "{text}");
    assert!(text.contains("    ${EDITOR:-vi} /etc/udev/rules.d/60-ra.rules"), "{text}");
    assert!(!text.contains("foreread apply"), "{text}");
    assert!(text.contains("not this machine"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let (_, json, _) = foreread(machine.path(), &["doctor", "/srv", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema_version"], 2);
    assert_eq!(json["storage"][0]["origin"]["kind"], "tuned");
    assert_eq!(json["storage"][0]["findings"][0]["id"], "overwritten");
    assert_eq!(json["plan"][0]["device"], "/srv");
    assert_eq!(json["plan"][0]["steps"][0]["action"], "edit");
    assert_eq!(json["plan"][0]["overrides"][0]["read_ahead_kib"], 64);
    let (_, text, _) = foreread(machine.path(), &["doctor", "8:0"]);
    assert!(text.contains("◀ counts") && text.contains("60-ra.rules:1"), "{text}");
}

/// Devices of other tests may disappear during a run of doctor, so the test retries.
#[test]
fn the_plan_of_this_machine_is_accepted_by_dry_runs() {
    let own = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| program::run(foreread_in(&own.path().join("own")).args(words));
    let refused = || -> Option<String> {
        let (code, json, stderr) = run(&["doctor", "--json"]);
        assert_eq!(code, 0, "{stderr}");
        let json: Value = serde_json::from_str(&json).unwrap();
        let plans = json["plan"].as_array().unwrap().iter();
        let steps = plans.flat_map(|plan| plan["steps"].as_array().unwrap().iter());
        let changing =
            steps.filter(|step| step["action"] == "apply" || step["action"] == "persist");
        for step in changing {
            let command = step["command"].as_str().unwrap();
            // Commands that need a shell's quoting are left to other tests.
            if command.contains(['\'', '"']) {
                continue;
            }
            let mut words: Vec<&str> = command.split(' ').skip(1).collect();
            words.push("-n");
            let (code, _, stderr) = run(&words);
            if code != 0 {
                return Some(format!("{command}: {code} {stderr}"));
            }
        }
        None
    };
    let failed: Vec<String> = (0..3).map_while(|_| refused()).collect();
    assert!(failed.len() < 3, "{failed:#?}");
}

/// `--root` is the option for fleets and images: documented, checked, and named in the output.
#[test]
fn a_tree_is_named_and_checked() {
    let machine = machine();
    let tree = machine.path().to_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = foreread_in(&elsewhere.path().join("own"));
        program::run(command.current_dir(elsewhere.path()).args(words))
    };
    let (code, text, _) = run(&["doctor", "--root", tree]);
    assert!(code == 0 && text.contains("not this machine"), "{text}");
    let (_, json, _) = run(&["doctor", "--root", tree, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["root"].as_str().is_some_and(|root| tree.ends_with(root) || root == tree));
    std::fs::write(elsewhere.path().join("p.toml"), "version = 1\n[[rule]]\nmax = \"1M\"\n")
        .unwrap();
    let (code, text, _) = run(&["check", "--root", tree, "--policy", "p.toml"]);
    assert!(code == 3 && text.contains("not this machine"), "{text}");
    let (_, help, _) = run(&["doctor", "--help"]);
    assert!(help.contains("--root <DIR>") && help.contains("FOREREAD_ROOT"), "{help}");
    let mut command = foreread_in(&elsewhere.path().join("own"));
    let (code, ..) = program::run(command.env("FOREREAD_ROOT", "").args(["doctor"]));
    assert_eq!(code, 0, "an empty variable is none");
    for (root, said) in
        [("/nonexistent", "cannot open /nonexistent"), ("/usr", "is not a captured host")]
    {
        for verb in [&["doctor"][..], &["check", "--emit-policy"]] {
            let (code, _, stderr) = run(&[verb, &["--root", root]].concat());
            assert!(code == 2 && stderr.contains(said), "{stderr}");
        }
    }
}

/// A typing error in a pattern must not disable a check silently (defect 29).
#[test]
fn a_rule_that_is_about_nothing_is_reported() {
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", FLASH)
        .mount("8:0", "/srv/db", "xfs", "/dev/sda");
    let check = |rules: &str| {
        let file = machine.path().join("policy.toml");
        std::fs::write(&file, format!("version = 1\n{rules}")).unwrap();
        foreread(machine.path(), &["check", "--policy", "policy.toml"])
    };
    let rule =
        |mount: &str, more: &str| format!("[[rule]]\nmount = \"{mount}\"\nmax = \"1M\"\n{more}");
    let any = "[[rule]]\nmax = \"1M\"\n";
    for (rules, code, said) in [
        (rule("/srv/bd*", ""), 3, "did you mean \"/srv/db\"?"),
        (format!("{any}{}", rule("/svr/*", "")), 3, "did you mean \"/srv/db\"?"),
        (rule("/var/lib/mysql", ""), 3, "no rule of this policy matches anything here"),
        (format!("{any}{}", rule("/var/lib/mysql", "")), 0, "matches nothing here"),
        (rule("/srv/bd", "required = false\n"), 0, "matches nothing here"),
        (rule("/srv/db", ""), 0, "1 check passed"),
        (format!("{any}{}", rule("/srv/bd", "required = true\n")), 3, "1 of 2 checks failed"),
    ] {
        let (found, text, stderr) = check(&rules);
        assert_eq!(found, code, "{rules}\n{text}{stderr}");
        assert!(text.contains(said), "{rules}\n{text}");
    }
}

#[test]
fn an_emitted_policy_is_kept_and_a_stricter_one_is_not() {
    let machine = machine();
    let (code, policy, _) = foreread(machine.path(), &["check", "--emit-policy"]);
    assert_eq!(code, 0);
    let file = machine.path().join("policy.toml");
    std::fs::write(&file, &policy).unwrap();
    let (code, text, stderr) = foreread(machine.path(), &["check", "--policy", "policy.toml"]);
    assert_eq!(code, 0, "{policy}\n{text}\n{stderr}");
    let stricter = format!("{policy}\n[[rule]]\nclass = \"ssd\"\nforbidden_owners = [\"tuned\"]\n");
    std::fs::write(&file, stricter).unwrap();
    let check = |words: &[&str]| {
        let mut all = vec!["check", "--policy", "policy.toml"];
        all.extend(words);
        foreread(machine.path(), &all)
    };
    let (code, text, _) = check(&[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("set by tuned, which is forbidden"), "{text}");
    let (code, xml, _) = check(&["--junit"]);
    assert!(code == 3 && xml.contains("failures=\"1\"") && xml.starts_with("<?xml"), "{xml}");
    let (code, json, _) = check(&["--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(code == 3 && json["kept"] == false && json["broken"] == 1, "{json}");
}

#[test]
fn presets_see_what_runs_and_where_advice_contradicts_itself() {
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", Queue { read_ahead_kb: 4096, ..FLASH })
        .mount("8:0", "/", "xfs", "/dev/sda")
        .tuned("throughput-performance", "[disk]\nreadahead=>4096\n")
        .process(300, "mongod", "")
        .with("var/lib/mongodb/x", "");
    let (code, text, _) = foreread(machine.path(), &["presets"]);
    assert_eq!(code, 0);
    assert!(text.contains("mongod runs (300)"), "{text}");
    assert!(text.contains("/ has 4096 KiB: has more"), "{text}");
    assert!(text.contains("Contradictory recommendations"), "{text}");
    assert!(text.contains("MongoDB (WiredTiger) says 4-16"), "{text}");
    let (_, json, _) = foreread(machine.path(), &["presets", "mongodb", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let cited = |preset: &Value| preset["source_ref"].as_str().is_some_and(|s| !s.is_empty());
    assert!(json["presets"].as_array().unwrap().iter().all(cited), "{json}");
}

#[test]
fn mistakes_get_one_clear_line() {
    let machine = machine();
    std::fs::write(machine.path().join("bad.toml"), "version = 1\n[[rule]]\nmuont = \"/\"\n")
        .unwrap();
    for (words, code, said) in [
        (&["check"][..], 2, "--policy"),
        (&["check", "--policy", "absent.toml"], 2, "absent.toml"),
        (&["check", "--policy", "bad.toml"], 2, "line 3: there is no key \"muont\": did you mean"),
        (&["check", "--policy", "bad.toml", "--json", "--junit"], 2, "cannot be used with"),
        (&["presets", "mongobd"], 2, "no recommendations"),
        (&["doctor", "/dev/absent"], 2, "/dev/absent"),
    ] {
        let (found, stdout, stderr) = foreread(machine.path(), words);
        assert_eq!((found, stdout.as_str()), (code, ""), "{words:?}: {stderr}");
        assert!(stderr.contains(said), "{words:?}: {stderr}");
    }
}
