//! The command line as users see it. Nothing here needs root or changes anything.
#![allow(clippy::unwrap_used)] // a test may panic
#![allow(clippy::print_stdout)] // a test prints skips

mod program;

use program::{Scratch, run};
use serde_json::Value;

/// Checks that a command exits with `code`, prints each of `said` on stderr and nothing on stdout.
#[track_caller]
fn refuses(words: &str, code: i32, said: &[&str]) {
    let scratch = Scratch::new();
    let (found, stdout, stderr) = run(&mut scratch.foreread(words));
    assert_eq!(found, code, "{words}: {stderr}");
    assert_eq!(stdout, "", "{words}");
    for word in said {
        assert!(stderr.contains(word), "{words}: {word:?} is not in:\n{stderr}");
    }
    let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{words}: one clear line, not\n{stderr}");
}

#[test]
fn unitless_and_senseless_sizes_are_refused_with_a_hint() {
    refuses("sweep -n / --vary read_ahead=128", 2, &["no unit", "128K", "256s"]);
    refuses("sweep -n / --vary read_ahead=-4K", 2, &["-4K"]);
    refuses("sweep -n / --vary read_ahead=3K", 2, &["less than a memory page"]);
    refuses("sweep -n / --vary read_ahead=1MB", 2, &["MB", "write K, M or G"]);
    refuses("sweep -n / --vary read_ahead=", 2, &["read_ahead"]);
    refuses("sweep -n / --vary readahed=4K", 2, &["readahed", "did you mean"]);
    refuses("sweep -n / --size 100", 2, &["no unit"]);
    refuses("sweep -n / --duration 2", 2, &["no unit"]);
    refuses("sweep -n / --duration 0s", 2, &["--duration"]);
    refuses("sweep -n / --repeats 0", 2, &["--repeats"]);
    refuses("tune -n / --budget 0", 2, &["--budget"]);
    refuses("tune -n / --budget nan", 2, &["--budget"]);
    refuses("tune -n / --budget 4m", 2, &["--budget", "minutes"]);
    refuses("sweep -n / --budget -1", 2, &["--budget"]);
}

#[test]
fn mistyped_names_get_the_nearest_one() {
    refuses("tune -n virtual:raid10-208", 2, &["raid10-2008"]);
    refuses("tune virtual:raid10-208", 2, &["raid10-2008"]);
    refuses("tune -n virtual:raid10-2008,chnk=1M", 2, &["chunk"]);
    refuses("tune -n virtual:raid10-2008,fs=zfs", 2, &["xfs"]);
    refuses("sweep -n / --workload seq8", 2, &["seq-8"]);
    refuses("workloads show rand-pred", 2, &["rand-pread"]);
    refuses("models show raid10", 2, &["raid10-2008"]);
    refuses("swep /", 2, &["sweep"]);
}

#[test]
fn settings_that_make_no_sense_are_refused_with_what_would() {
    refuses("apply read_ahed=1M --on /", 2, &["read_ahed", "did you mean read_ahead?"]);
    refuses("apply stripe_cach_size=256 --on /", 2, &["did you mean stripe_cache_size?"]);
    refuses("apply read_ahead=1M", 2, &["needs a target", "--on TARGET"]);
    refuses("apply read_ahead=1024 --on /", 2, &["no unit"]);
    refuses("apply ra=1M read_ahead_kb=2M --on /", 2, &["set twice"]);
    refuses("apply -n vm.dirty_ratio=101", 2, &["101", "0", "100"]);
    refuses("apply -n vm.dirty_bytes=64M vm.dirty_ratio=5", 2, &["same in another way"]);
    refuses("apply -n vfs.read_max=128", 6, &["FreeBSD", "--emit freebsd"]);
    refuses("apply", 2, &["no setting"]);
    refuses("apply --preset greenplum --from 7", 2, &["--preset", "--from"]);
    refuses("apply ra=1M --on / --only user:root", 2, &["--open-files"]);
    refuses("apply ra=1M --on / --open-files --only postgres", 2, &["postgres"]);
    refuses("persist read_ahead=1M --on /no/such", 2, &["/no/such"]);
    refuses("persist vm.swappiness=10 --with nowhere", 2, &["nowhere", "systemd"]);
    refuses("persist read_ahead=1M --on / --emit freebsd", 2, &["not a sysctl of FreeBSD"]);
    refuses("verify /no/such", 2, &["/no/such"]);
}

#[test]
fn targets_that_are_none_are_refused_before_anything_is_done() {
    refuses("tune -n no/such/directory", 2, &["no/such/directory"]);
    refuses("tune -n sim:raid10-2009", 2, &["raid10-2008"]);
    refuses("tune -n /proc", 6, &["/proc"]);
    refuses("tune -n /dev/null", 2, &["/dev/null"]);
    refuses("tune", 2, &["TARGET"]);
}

#[test]
fn one_format_at_a_time() {
    refuses("runs --json --csv", 2, &["--json", "--csv"]);
    refuses("sweep -n / --markdown --json", 2, &["--markdown"]);
    refuses("runs -q -v", 2, &["--quiet"]);
}

#[test]
fn inputs_that_are_not_what_they_should_be_are_usage_errors() {
    refuses("doctor --root /etc/passwd", 2, &["--root", "is not a captured host"]);
    refuses("presets --root nosuch", 2, &["--root", "cannot open nosuch"]);
    refuses("check --emit-policy --root nosuch", 2, &["--root", "cannot open nosuch"]);
    let scratch = Scratch::new();
    scratch.run("sweep sim:nvme --vary read_ahead=4K --workload seq-1 --repeats 1 --duration 50ms");
    let (code, _, stderr) = scratch.run("rollback last");
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("changed no device"), "{stderr}");
}

#[test]
fn asking_for_an_auto_that_is_not_there_is_an_error() {
    refuses("auto status -q", 1, &["error: foreread auto is not running"]);
}

#[test]
fn a_run_that_is_not_there_is_a_usage_error() {
    refuses("runs show 7", 2, &["no run"]);
    refuses("runs show seven", 2, &["no run"]);
    refuses("rollback 7", 2, &["no run 7"]);
    refuses("rollback nosuch", 2, &["nosuch"]);
    refuses("vdisk show nosuch", 2, &["nosuch"]);
    refuses("vdisk remove nosuch", 2, &["nosuch"]);
    refuses("vdisk remove", 2, &["NAMES"]);
}

#[test]
fn last_names_the_latest_run_wherever_a_run_is_named() {
    let scratch = Scratch::new();
    scratch.file("table.csv", "read_ahead_kib,seq-1\n4,10\n128,20\n1024,30\n");
    for words in ["runs show last", "runs delete last", "apply --from last", "rollback last"] {
        let (code, _, stderr) = scratch.run(words);
        assert_eq!(code, 2, "{words}: {stderr}");
        assert!(stderr.contains("no run"), "{words}: {stderr}");
    }
    for _ in 0..2 {
        let (code, _, stderr) = scratch.run("import table.csv");
        assert_eq!(code, 0, "{stderr}");
    }
    let says = |words: &str, said: &str| {
        let (_, stdout, stderr) = scratch.run(words);
        assert!(format!("{stdout}{stderr}").contains(said), "{words}: {stdout}{stderr}");
    };
    says("runs show last --json", "\"run\": 2");
    says("runs delete -n last", "would delete run 2");
    says("apply -n --from last", "run 2");
    says("persist -n --from last", "run 2");
    says("rollback last", "run 2");
    says("report last -o -", "<html");
    says("compare 1 last", "seq-1");
    says("runs delete last 2", "deleted run 2");
    says("runs show last --json", "\"run\": 1");
}

#[test]
fn a_file_of_another_program_is_no_record() {
    let scratch = Scratch::new();
    scratch.file("notes.txt", "not a database\n");
    let other = scratch.path().join("other.sqlite");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    drop(connection);
    let before = std::fs::read(&other).unwrap();
    for file in ["notes.txt", "other.sqlite"] {
        for verb in ["runs", "runs show 1", "sweep sim:zero", "rollback", "report -o x.html"] {
            let (code, _, stderr) = scratch.run(&format!("{verb} --store {file}"));
            assert_eq!(code, 4, "{verb} {file}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{verb} {file}: one clear line, not {stderr}");
            assert!(stderr.contains("is not a record of foreread"), "{stderr}");
        }
    }
    assert_eq!(std::fs::read(&other).unwrap(), before, "it is as it was");
    scratch.file("empty.sqlite", "");
    assert_eq!(scratch.run("runs --store empty.sqlite").0, 0);
}

#[test]
fn a_path_that_leads_nowhere_is_a_usage_error() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink("loop", scratch.path().join("loop")).unwrap();
    let long = "x".repeat(300);
    for words in [
        "verify loop".to_owned(),
        "doctor loop".to_owned(),
        "apply read_ahead=1M --on loop".to_owned(),
        "auto loop".to_owned(),
        "tune -n loop".to_owned(),
        "tune -n loop/below".to_owned(),
        "runs --store loop".to_owned(),
        format!("verify {long}"),
        "verify /etc/passwd/below".to_owned(),
    ] {
        let (code, _, stderr) = scratch.run(&words);
        assert_eq!(code, 2, "{words}: {stderr}");
    }
}

#[test]
fn a_command_line_that_is_wrong_gets_one_line_and_a_hint() {
    let scratch = Scratch::new();
    for words in [
        "sweep -n / --repeats -1",
        "sweep -n / --repeats -4K",
        "sweep -n / --size -1",
        "sweep -n / --seed -1",
        "tune -n / --budget -1",
        "blocks / --processes -1",
        "vdisk list -1",
        "runs -1",
        "runs --nosuch",
        "tune",
        "sweep",
        "report 1",
        "tune -n / --color sometimes",
        "watch --interval -1s",
        "nosuch",
    ] {
        let (code, stdout, stderr) = scratch.run(words);
        assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
        assert!(!stderr.contains("-- -"), "{words}: {stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert!(lines[0].starts_with("error: "), "{words}: {stderr}");
        let below = |line: &&str| line.starts_with("hint: ") || line.starts_with("  caused by: ");
        assert!(lines[1..].iter().all(below), "{words}: {stderr}");
        let help = lines.iter().any(|line| line.contains("--help"));
        let verb = words.split(' ').next().unwrap();
        let named = stderr.contains(&format!("'foreread {verb} "));
        assert!(!help || named || verb == "nosuch", "{words}: {stderr}");
    }
}

#[test]
fn verify_fails_where_a_journal_cannot_be_relied_on() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("verify").0, 0, "nothing was applied");
    let journals = scratch.path().join("state/journal");
    std::fs::create_dir_all(&journals).unwrap();
    for text in ["garbage\n", "garbage", "{\"begin\":{}}\n", "\u{0}\u{0}x"] {
        std::fs::write(journals.join("1-1-8:0.jsonl"), text).unwrap();
        let (code, stdout, stderr) = scratch.run("verify");
        assert_eq!(code, 1, "{text:?}: {stderr}");
        assert!(stderr.contains("error: journal") && stdout.is_empty(), "{text:?}: {stderr}");
        assert!(!stderr.contains("nothing was applied"), "{text:?}: {stderr}");
        let (code, stdout, _) = scratch.run("verify --json");
        let json: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((code, json["unreadable_journals"].as_array().unwrap().len()), (1, 1));
    }
}

#[test]
fn a_unit_for_auto_touches_nothing_that_was_applied_or_persisted() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path().join("my data")).unwrap();
    let mut command = scratch.foreread("auto --emit=systemd --max 4M");
    command.args(["my data", "--only", "exe:/opt/100%/$x"]);
    let (code, unit, stderr) = run(&mut command);
    assert_eq!(code, 0, "{stderr}");
    let rollbacks: Vec<_> = unit.lines().filter(|line| line.contains("rollback")).collect();
    assert!(matches!(rollbacks[..], [line] if line.ends_with(" rollback left")), "{unit}");
    let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let data = scratch.path().join("my data");
    assert!(start.contains(&format!("\"{}\"", data.display())), "services run in /: {start}");
    assert!(start.ends_with("\"--only\" \"exe:/opt/100%%/$$x\""), "{start}");
}

#[test]
fn a_host_without_readers_is_told_that_files_take_no_effect() {
    let scratch = Scratch::new();
    let (code, stdout, stderr) = scratch.run("persist -n vm.dirty_bytes=256M --json");
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    for file in json["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        match file["no_effect_because"].as_str() {
            Some(why) => {
                let note = format!("note: {path} would take no effect: {why}");
                assert!(stderr.contains(&note), "{note} is not in {stderr}");
            }
            None => assert!(!stderr.contains(path), "{stderr}"),
        }
    }
    if !std::path::Path::new("/run/systemd/system").exists() {
        assert!(stderr.contains("foreread-verify.service would take no effect"), "{stderr}");
    }
}

#[test]
fn options_that_no_workload_uses_are_refused() {
    let simulated = "sweep -n sim:nvme --workload seq-1";
    refuses(&format!("{simulated} --metric (["), 2, &["--metric", "cmd:"]);
    refuses(&format!("{simulated} --prepare true"), 2, &["--prepare", "cmd:"]);
    refuses(&format!("{simulated} --timeout 5s"), 2, &["--timeout", "cmd:"]);
    refuses("sweep -n / --metric ([ --workload cmd:true", 2, &["--metric", "(["]);
    refuses("sweep -n / --metric [0-9]+ --workload cmd:true", 2, &["--metric", "first group"]);
    refuses("sweep -n / --metric json: --workload cmd:true", 2, &["--metric"]);
    refuses("tune -n / --prepare true --workload dd", 2, &["--prepare", "cmd:"]);
}

#[test]
fn a_read_ahead_of_twenty_digits_is_no_figure() {
    let scratch = Scratch::new();
    scratch.file("table.csv", "read_ahead_kib,seq-1\n99999999999999999999,5\n128,4\n");
    let (code, _, said) = scratch.run("import -n table.csv");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("99999999999999999999"), "{said}");
    refuses("apply ra=99999999999999999999K --on /", 2, &["99999999999999999999K"]);
    refuses("sweep -n / --vary ra=99999999999999999999K", 2, &["99999999999999999999K"]);
    refuses("import -n x --current 99999999999999999999K", 2, &["99999999999999999999K"]);
}

#[test]
fn a_command_that_does_not_start_has_the_code_of_the_shell() {
    let scratch = Scratch::new();
    scratch.file("data", "no program\n");
    for (words, code) in [
        ("run -- /nonexistent", 127),
        ("run -- no-such-program", 127),
        ("run -- ./data", 126),
        ("run -- .", 126),
        ("run -- false", 1),
        ("run -- true", 0),
    ] {
        let (found, _, said) = scratch.run(words);
        if found == 6 && code < 100 {
            println!("SKIP a_command_that_does_not_start_has_the_code_of_the_shell: {said}");
            return;
        }
        assert_eq!(found, code, "{words}: {said}");
        let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
        assert_eq!(errors, usize::from(code > 100), "{words}: {said}");
    }
    let mut killed = scratch.foreread("run -- sh -c");
    assert_eq!(run(killed.arg("kill -9 $$")).0, 128 + 9);
}

#[test]
fn an_empty_record_is_no_error() {
    let scratch = Scratch::new();
    for words in ["runs", "runs list", "vdisk list", "rollback", "vdisk remove --all"] {
        let (code, stdout, stderr) = run(&mut scratch.foreread(words));
        assert_eq!((code, stdout.as_str()), (0, ""), "{words}: {stderr}");
        assert!(!stderr.is_empty(), "{words} says that there is nothing");
    }
    let (_, _, stderr) = run(&mut scratch.foreread("runs --quiet"));
    assert_eq!(stderr, "");
}

#[test]
fn every_verb_has_help_with_what_it_is_for() {
    let scratch = Scratch::new();
    for verb in [
        "",
        "sweep",
        "tune",
        "runs",
        "runs show",
        "models",
        "models show",
        "workloads",
        "vdisk",
        "vdisk create",
        "rollback",
        "completions",
    ] {
        let (code, stdout, stderr) = run(&mut scratch.foreread(&format!("{verb} --help")));
        assert_eq!((code, stderr.as_str()), (0, ""), "{verb}");
        assert!(stdout.contains("Usage: foreread"), "{verb}");
        let widest = stdout.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 100, "{verb}: a line of {widest} columns");
    }
    let (_, help, _) = run(&mut scratch.foreread("--help"));
    assert!(help.contains("Examples:") && help.contains("Exit codes:"));
    assert!(!help.contains("guard"), "the guard is not a verb for users");
}

#[test]
fn every_model_is_listed_explained_and_read_back() {
    let scratch = Scratch::new();
    let (_, list, _) = run(&mut scratch.foreread("models list --json"));
    let list: Value = serde_json::from_str(&list).unwrap();
    let models = list["models"].as_array().unwrap();
    assert!(models.len() >= 12, "{}", models.len());
    for model in models {
        let name = model["name"].as_str().unwrap();
        let (code, toml, stderr) = run(&mut scratch.foreread(&format!("models show {name}")));
        assert_eq!(code, 0, "{name}: {stderr}");
        scratch.file("own.toml", &toml);
        let (code, again, stderr) = run(&mut scratch.foreread("models show ./own.toml --json"));
        assert_eq!(code, 0, "{name}: {stderr}");
        let again: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again["name"], name, "what is shown can be loaded");
    }
}

#[test]
fn every_workload_is_listed_and_its_declaration_can_be_used() {
    let scratch = Scratch::new();
    let (_, list, _) = run(&mut scratch.foreread("workloads --json"));
    let list: Value = serde_json::from_str(&list).unwrap();
    let names: Vec<&str> =
        list["workloads"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    let reading = ["seq-1", "seq-8", "rand-pread", "rand-mmap", "mixed", "stride"];
    assert_eq!(names, [&reading[..], &["seq-write", "rewrite"]].concat());
    for name in names {
        let (_, toml, _) = run(&mut scratch.foreread(&format!("workloads show {name}")));
        scratch.file("own.toml", &toml);
        let (code, again, _) = run(&mut scratch.foreread("workloads show own.toml"));
        assert_eq!((code, again), (0, toml), "{name}");
    }
}

/// Both kinds of export: patterns that fio has, and requests in logs.
#[test]
fn what_is_exported_runs_under_fio() {
    if std::process::Command::new("fio").arg("--version").output().is_err() {
        println!("SKIP what_is_exported_runs_under_fio: no fio (package fio)");
        return;
    }
    let scratch = Scratch::new();
    for name in ["seq-8", "rand-mmap", "stride", "mixed", "rewrite"] {
        let dir = scratch.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        let words = format!("export --fio {name} --size 1M -o {name}/job.fio");
        let (code, _, stderr) = run(&mut scratch.foreread(&words));
        assert_eq!(code, 0, "{name}: {stderr}");
        let mut fio = std::process::Command::new("fio");
        fio.args(["--output-format=json", "job.fio"]).current_dir(&dir);
        let output = fio.output().unwrap();
        let message = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {message}");
        let message: Value = serde_json::from_str(&message[message.find('{').unwrap()..]).unwrap();
        let read = |job: &Value| job["read"]["io_bytes"].as_u64().unwrap();
        let read: u64 = message["jobs"].as_array().unwrap().iter().map(read).sum();
        assert!(read >= 256 << 10, "{name}: {read} bytes");
        let written = |job: &Value| job["write"]["io_bytes"].as_u64().unwrap();
        let written: u64 = message["jobs"].as_array().unwrap().iter().map(written).sum();
        assert_eq!(written, if name == "rewrite" { read } else { 0 }, "{name}");
    }
}

#[test]
fn a_broken_workload_file_is_named() {
    let scratch = Scratch::new();
    scratch.file("broken.toml", "name = 1\n");
    let (code, _, stderr) = run(&mut scratch.foreread("sweep -n / --workload broken.toml"));
    assert_eq!(code, 2);
    assert!(stderr.contains("broken.toml"), "{stderr}");
    let (code, _, stderr) = run(&mut scratch.foreread("sweep -n / --workload gone.toml"));
    assert_eq!(code, 2);
    assert!(stderr.contains("gone.toml"), "{stderr}");
}

#[test]
fn a_dry_run_prints_the_plan_for_a_disk_that_need_not_exist() {
    let scratch = Scratch::new();
    let words = "sweep -n virtual:hdd-2008,fs=ext4,dilation=1 --workload seq-1 --repeats 3 --vary \
                 read_ahead=4K,128K,256s";
    let (code, stdout, stderr) = run(&mut scratch.foreread(words));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("hdd-2008") && stdout.contains("nothing to undo"), "{stdout}");
    assert!(stdout.contains("2 values of read-ahead × 1 workload, 3 repeats"), "{stdout}");
    assert!(!scratch.path().join("state").exists(), "nothing is made, not even the record");
}

#[test]
fn a_dry_run_dilates_the_trial_and_not_what_is_beside_it() {
    let scratch = Scratch::new();
    let time = |disk: &str| {
        let words = format!(
            "sweep -n virtual:{disk} --workload seq-1 --repeats 3 --duration 1s --vary \
             read_ahead=4K,128K"
        );
        let (code, stdout, stderr) = run(&mut scratch.foreread(&words));
        assert_eq!(code, 0, "{stderr}");
        stdout.lines().find(|line| line.starts_with("Time:")).unwrap_or_default().to_owned()
    };
    // Six trials of 100 s, plus half a second each.
    let fixed = time("hdd-2008,dilation=100");
    assert!(fixed.starts_with("Time: about 10 minutes"), "{fixed}");
    let automatic = time("nvme");
    assert!(automatic.contains("times slower than its model"), "{automatic}");
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let scratch = Scratch::new();
    let mut child = scratch
        .foreread("completions zsh")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn no_colour_where_nobody_sees_it() {
    let scratch = Scratch::new();
    let (_, _, stderr) = run(&mut scratch.foreread("tune -n nosuch"));
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
    let (_, _, stderr) = run(scratch.foreread("swep").env("NO_COLOR", "1"));
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
}

#[test]
fn a_hostile_name_reaches_no_terminal() {
    let scratch = Scratch::new();
    let mut command = scratch.foreread("tune -n");
    command.arg("no\u{1b}[2Jsuch\nthing");
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 2);
    assert!(!stderr.contains('\u{1b}') && stderr.lines().count() == 1, "{stderr:?}");
}

#[test]
fn completions_know_the_verbs() {
    let scratch = Scratch::new();
    for shell in ["elvish", "powershell"] {
        let (code, script, _) = run(&mut scratch.foreread(&format!("completions {shell}")));
        assert_eq!(code, 0);
        assert!(script.contains("sweep") && script.contains("rollback"), "{shell}");
    }
}

#[test]
fn scoring_needs_files_that_can_be_read() {
    refuses("models score no.trace no.seek no.toml --json", 2, &["no.trace"]);
    let scratch = Scratch::new();
    for name in ["a.trace", "a.seek", "a.toml"] {
        scratch.file(name, "nothing of use\n");
    }
    let (code, stdout, stderr) = run(&mut scratch.foreread("models score a.trace a.seek a.toml"));
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("a.trace"), "{stderr}");
}

#[test]
fn metrics_replace_nothing_but_a_file() {
    let scratch = Scratch::new();
    scratch.file("mine.prom", "somebody's\n");
    for (place, why) in [
        (".", "is a directory"),
        ("/dev/null", "is a device"),
        ("-", "name a file"),
        ("mine.prom", "--force"),
        ("/no/such/place", "there is no directory /no/such"),
    ] {
        let (code, _, said) = run(&mut scratch.foreread(&format!("auto . --metrics {place}")));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(&format!("--metrics {place}: ")) && said.contains(why), "{said}");
    }
}

#[test]
fn watch_refuses_what_it_cannot_show() {
    let scratch = Scratch::new();
    for (words, says) in [
        ("watch pid:99999999", "there is no process"),
        ("watch pid:x", "number of a process"),
        ("watch 99999999", "pid:99999999"),
        ("watch 1 0", "whole number"),
        ("watch 1 2 3", "unexpected argument"),
        ("watch . / 1", "one target"),
        ("watch 0", "must be between"),
        ("watch nowhere", "no such file"),
        ("watch cgroup:/no/such", "there is no cgroup"),
        ("watch cgroup:up", "write cgroup:/PATH"),
        ("watch --interval 1ms", "must be between"),
        ("watch --interval 5", "unit"),
        ("watch --replay nowhere", "cannot read the recording nowhere"),
    ] {
        let (code, _, said) = run(&mut scratch.foreread(words));
        assert_eq!(code, 2, "{words}: {said}");
        assert!(said.contains(says), "{words}: {said}");
    }
    scratch.file("torn", "{\"snapshot\":\n{}\n");
    let (code, _, said) = run(&mut scratch.foreread("watch --once --replay torn"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("torn is not a recording") && said.contains("line 1"), "{said}");
}

#[test]
fn watch_takes_seconds_and_a_count_as_iostat_does() {
    let scratch = Scratch::new();
    scratch.file("7", "a file whose name is a number\n");
    for words in [
        "watch 0.2 3 --json",
        "watch / 0.2 3 --json",
        "watch 200ms 3 --json",
        "watch 0.2 3 --json --interval 1h",
    ] {
        let (code, out, said) = scratch.run(words);
        assert_eq!(code, 0, "{words}: {said}");
        assert_eq!(out.lines().count(), 3, "{words}: {out}");
    }
    let (code, out, said) = scratch.run("watch 0.1 2");
    assert_eq!(code, 0, "{said}");
    assert_eq!(out.matches("queue").count(), 2, "{out}");
    let own = format!("watch pid:{} 0.1 1 --json", std::process::id());
    assert_eq!(scratch.run(&own).0, 0);
}
