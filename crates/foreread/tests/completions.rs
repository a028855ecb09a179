//! Completions, as the shells request them and as a real bash shows them.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::process::Command;

use program::{Scratch, foreread_in, text};

/// Returns the candidates for the last word.
fn offered(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let mut command = foreread_in(scratch.path());
    command.current_dir(scratch.path()).args(["complete", "--"]).args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let text = text(&output.stdout);
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

const SWEEP: &str = "sweep sim:nvme --vary read_ahead=4K --workload seq-1 --repeats 1 \
                     --duration 50ms --seed 1";

#[test]
fn each_place_is_offered_what_it_takes() {
    let scratch = Scratch::new();
    scratch.run(SWEEP);
    scratch.run(SWEEP);
    for (words, some) in [
        (&["sw"][..], &["sweep"][..]),
        (&["sweep", ""], &["virtual:", "sim:", ":files"]),
        (&["sweep", "virtual:raid"], &["virtual:raid10-2008", "virtual:raid5-2012"]),
        (&["tune", "sim:hdd-2008,pol"], &["sim:hdd-2008,policy="]),
        (&["tune", "sim:hdd-2008,policy=z"], &["sim:hdd-2008,policy=zfs"]),
        (&["tune", "virtual:hdd-2008,fs=x"], &["virtual:hdd-2008,fs=xfs"]),
        (&["sweep", "/srv", "--wor"], &["--workload"]),
        (&["sweep", "/srv", "--workload", "seq"], &["seq-1", "seq-8"]),
        (&["sweep", "/srv", "--workload", "seq-1,ra"], &["seq-1,rand-mmap", "seq-1,rand-pread"]),
        (&["sweep", "/srv", "--workload=rand-m"], &["--workload=rand-mmap"]),
        (&["sweep", "--vary", "read"], &["read_ahead="]),
        (&["sweep", "sim:nvme", "--vary", "policy=linux-6.18,z"], &["policy=linux-6.18,zfs"]),
        (&["sweep", "--design", ""], &["full", "fractional"]),
        (&["runs", "s"], &["show"]),
        (&["runs", "show", ""], &["last", "1", "2"]),
        (&["compare", "1", ""], &["last", "1", "2"]),
        (&["report", ""], &["last", "2"]),
        (&["apply", "--from", ""], &["last", "1"]),
        (&["apply", "read"], &["read_ahead="]),
        (&["models", "show", "hdd"], &["hdd-2008", "hdd-modern"]),
        (&["workloads", "show", "seq"], &["seq-1"]),
        (&["reproduce", "xfs"], &["xfs-2008"]),
        (&["presets", "green"], &["greenplum"]),
        (&["--color", "al"], &["always"]),
        (&["completions", "b"], &["bash"]),
        (&["report", "-o", ""], &[":files"]),
        (&["run", "--", "ls", ""], &[":files"]),
        (&["experiment", "read"], &["readers"]),
    ] {
        let found = offered(&scratch, words);
        for word in some {
            assert!(found.iter().any(|one| one == word), "{words:?}: {word} is not in {found:?}");
        }
        let typed = words.last().unwrap();
        let fits = |one: &&String| one.starts_with(typed) || *one == ":files";
        assert!(found.iter().all(|one| fits(&one)), "{words:?}: {found:?}");
    }
    assert!(offered(&scratch, &[""]).iter().all(|verb| verb != "guard" && verb != "complete"));
    assert!(offered(&scratch, &["nosuch", "--nosuch", "x"]).is_empty());
    assert!(!offered(&scratch, &[]).is_empty());
}

/// Returns what bash would put in place of the word before the cursor.
fn in_bash(scratch: &Scratch, line: &str) -> Option<Vec<String>> {
    let program = assert_cmd::cargo::cargo_bin!("foreread");
    let script = format!(
        "PATH={}:$PATH; source <(foreread completions bash)
         COMP_LINE={line:?}; COMP_POINT=${{#COMP_LINE}}
         complete -p foreread >/dev/null || exit 9
         _foreread foreread; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        program.parent().unwrap().display()
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &script]).current_dir(scratch.path());
    bash.env("FOREREAD_STATE_DIR", scratch.path().join("state")).env("FOREREAD_CONFIG", "");
    let output = bash.output().ok()?;
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn a_real_bash_completes_models_workloads_and_runs() {
    let scratch = Scratch::new();
    scratch.run(SWEEP);
    scratch.file("vista", "");
    if Command::new("bash").arg("-c").arg("true").status().is_err() {
        return eprintln!("SKIP a_real_bash_completes_models_workloads_and_runs: no bash");
    }
    for (line, some) in [
        ("foreread sw", "sweep"),
        // bash already has `virtual` and `:`, and expects the rest.
        ("foreread tune virtual:raid10", "raid10-2008"),
        ("foreread tune sim:hdd-2008,policy=z", "zfs"),
        ("foreread sweep / --workload seq-", "seq-8"),
        ("foreread sweep / --workload seq-1,rand-m", "seq-1,rand-mmap"),
        ("foreread runs show ", "last"),
        ("foreread report ", "1"),
        ("foreread sweep vi", "virtual:"),
        ("foreread sweep vi", "vista"),
        ("A=1 foreread models show hdd-20", "hdd-2008"),
        ("foreread --color=al", "always"),
    ] {
        let Some(found) = in_bash(&scratch, line) else { return };
        assert!(found.iter().any(|word| word == some), "{line:?}: {some} is not in {found:?}");
    }
}

#[test]
fn scripts_are_sound_where_their_shell_is_there() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = scratch.run(&format!("completions {shell}"));
        assert!(code == 0 && script.contains("complete --"), "{shell}");
        scratch.file("script", &script);
        let mut check = Command::new(shell);
        match check.arg("-n").arg(scratch.path().join("script")).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", text(&output.stderr)),
            Err(_) => eprintln!("SKIP scripts_are_sound_where_their_shell_is_there: no {shell}"),
        }
    }
}
