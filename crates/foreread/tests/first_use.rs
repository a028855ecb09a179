//! First use: the demonstration, a brief result, a system without mounts.
#![allow(clippy::unwrap_used)] // a test may panic
#![allow(clippy::print_stdout)] // a test prints skips

mod program;

use program::{Scratch, run};

#[test]
fn the_demo_explains_measures_decides_profiles_and_adapts() {
    let scratch = Scratch::new();
    let (code, out, said) = scratch.run("demo --disk sim:nvme,cache=256M --budget 0.5");
    assert!(code == 0 || code == 5, "{said}");
    for (step, evidence) in [
        ("1. Explain", "KiB"),
        ("2. Measure and decide", "rand-mmap"),
        ("3. Profile and adapt", "backward (4)"),
        ("3. Profile and adapt", "times as fast"),
        ("4. Your storage", "rollback"),
    ] {
        let shown = out.split(step).nth(1).unwrap_or_default();
        assert!(shown.contains(evidence), "{step}: {evidence} is not in\n{out}");
    }
    let report = scratch.path().join("state/demo.html");
    assert!(std::fs::read_to_string(&report).unwrap().contains("<html"), "{said}");
    assert!(said.contains("demo.html"), "{said}");
    let (code, _, said) = scratch.run("demo --disk sim:nvme,cache=256M --budget 0.5");
    assert!(code == 0 || code == 5, "its own report is replaced: {said}");
}

#[test]
fn a_brief_study_has_no_plots() {
    let study = "sweep sim:nvme --vary read_ahead=4K,64K,128K,1M --workload seq-1 --repeats 1 \
                 --duration 100ms --seed 1";
    let scratch = Scratch::new();
    let (whole, brief) = (scratch.run(study).1, scratch.run(&format!("{study} --brief")).1);
    let is_plot = |text: &str| text.contains("against read-ahead");
    assert!(is_plot(&whole) && !is_plot(&brief), "{brief}");
    assert!(brief.contains("1024 KiB") && brief.lines().count() < whole.lines().count(), "{brief}");
    let (code, _, said) = scratch.run(&format!("{study} --brief --json"));
    assert_eq!(code, 2, "{said}");
}

#[test]
fn a_chroot_without_proc_or_sys_is_named() {
    for (missing, verbs) in
        [("/sys", &["doctor", "tune ."][..]), ("/proc", &["doctor", "check --emit-policy"][..])]
    {
        for verb in verbs {
            let scratch = Scratch::new();
            let script = format!("mount -t tmpfs none {missing}; exec \"$0\" {verb}");
            let mut command = std::process::Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script]);
            command.arg(env!("CARGO_BIN_EXE_foreread")).current_dir(scratch.path());
            command.env("FOREREAD_STATE_DIR", scratch.path().join("state"));
            command.env("FOREREAD_RUNTIME_DIR", scratch.path().join("runtime"));
            let (code, _, said) = run(&mut command);
            if said.contains("unshare") || said.contains("mount:") {
                println!("SKIP a_chroot_without_proc_or_sys_is_named: {said}");
                return;
            }
            assert_eq!(code, 6, "{verb}: {said}");
            assert!(said.contains(&format!("error: {missing} is not mounted here")), "{said}");
        }
    }
}

#[test]
fn an_error_is_one_line_without_escaped_line_breaks() {
    let scratch = Scratch::new();
    let (code, _, said) = scratch.run("profile --explain foo");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there is no diagnosis \"foo\": there are "), "{said}");
    let (code, _, said) = scratch.run("profile --list-rules --json");
    assert!(code == 2 && said.contains("cannot be used with"), "{said}");
    let lines = [
        concat!(
            r#"{"begin":{"session_version":1,"foreread":"0.2.0","dry_run":false,"#,
            r#""new_files":true,"leave":false,"ab_test":null,"page_bytes":4096}}"#
        ),
        r#"{"poll":{"now":1000,"read":false}}"#,
        concat!(
            r#"{"sample":{"now":1000,"bdis":{},"memory":{"caches":{},"prefetched":null,"#,
            r#""limited":[],"under_pressure":false}}}"#
        ),
        r#"{"decision":{"note":{"text":"a\nb"}}}"#,
        r#"{"poll":{"now":2000,"read":false}}"#,
    ];
    let file = scratch.path().join("recording");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let (code, _, said) = scratch.run(&format!("auto replay {}", file.display()));
    assert_eq!(code, 1, "{said}");
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("differs: recorded {") && error.ends_with("decided none"), "{said}");
    assert!(!said.contains("\\u{a}"), "{said}");
}

#[test]
fn a_dry_run_says_that_a_file_is_empty() {
    let scratch = Scratch::new();
    scratch.file("empty", "");
    let file = scratch.path().join("empty");
    let (code, out, said) = scratch.run(&format!("sweep -n {}", file.display()));
    if code != 0 {
        return println!("SKIP a_dry_run_says_that_a_file_is_empty: {said}");
    }
    assert!(out.contains("Not possible now: the file is empty"), "{out}");
}

#[test]
fn a_proof_that_is_interrupted_exits_with_the_code_of_the_signal() {
    let scratch = Scratch::new();
    scratch.file("data", [1; 4096]);
    let ceiling = scratch.path().join("data");
    let words = format!("profile --ceiling {} --pairs 50 -- sleep 0.3", ceiling.display());
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child =
            scratch.foreread(&words).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(3));
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status();
        let status = child.wait().unwrap();
        if status.code() == Some(6) {
            println!("skipped: programs cannot be profiled here");
            return;
        }
        assert!(sent.unwrap().success());
        assert_eq!(status.code(), Some(code), "SIG{name}");
    }
}

#[test]
fn a_signal_ends_an_import_from_a_pipe_without_data() {
    let scratch = Scratch::new();
    let pipe = scratch.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let words = format!("profile --import {}", pipe.display());
    let mut child = scratch.foreread(&words).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    for _ in 0..500 {
        if child.try_wait().unwrap().is_some() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("it still waits for the pipe");
}
