//! Inputs that a user names: endless, of the wrong kind, and from standard input. Nothing here
//! needs root.
#![allow(clippy::unwrap_used)] // a test may panic

mod program;

use std::fs::File;
use std::io::Write;
use std::process::Stdio;

use program::{Scratch, run, text};

/// Each command that reads a file, with `FILE` in place of its name, and the limit in the message.
const PLACES: &[(&str, &str)] = &[
    ("models show ./FILE", "16 MiB, which is the limit for models"),
    ("sweep sim:./FILE", "16 MiB, which is the limit for models"),
    ("sweep virtual:./FILE", "16 MiB, which is the limit for models"),
    ("sweep sim:nvme --workload ./FILE", "16 MiB, which is the limit for workload files"),
    ("sweep sim:nvme --workload fio:FILE", "16 MiB, which is the limit for job files"),
    ("sweep sim:nvme --workload trace:FILE", "1 GiB, which is the limit for traces"),
    ("trace show FILE", "1 GiB, which is the limit for traces"),
    ("trace import FILE -o out", "1 GiB, which is the limit for traces"),
    ("trace import FILE -o out --format csv", "1 GiB, which is the limit for traces"),
    ("import FILE", "64 MiB, which is the limit for results"),
    ("check --policy FILE", "16 MiB, which is the limit for policies"),
    ("watch --once --replay FILE", "4 GiB, which is the limit for recordings"),
    ("sim golden FILE", "64 MiB, which is the limit for recorded decisions"),
    ("sim plan FILE --out out", "512 MiB, which is the limit for plans"),
    ("sim shard FILE --index 0 --out out", "512 MiB, which is the limit for plans"),
    ("models score FILE FILE FILE", "64 MiB, which is the limit for service times"),
    ("models score small FILE FILE", "64 MiB, which is the limit for service times"),
];

/// Runs the program in 1.5 GiB of address space, with this input on standard input.
fn limited(scratch: &Scratch, words: &str, feed: &str) -> (i32, String, String) {
    let program = scratch.foreread(words);
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(scratch.path()).arg("-c");
    shell.arg(format!("ulimit -v 1572864; {feed} exec \"$@\"")).arg("sh");
    shell.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    run(&mut shell)
}

/// Checks for exit code 2 and one line on stderr that starts with `error: `.
#[track_caller]
fn refused(words: &str, (code, stdout, stderr): (i32, String, String), said: &str) {
    assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
    assert!(stderr.starts_with("error: ") && stderr.contains(said), "{words}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{words}: {stderr}");
}

#[test]
fn a_file_larger_than_its_kind_may_be_is_refused_unread() {
    let scratch = Scratch::new();
    File::create(scratch.path().join("huge.toml")).unwrap().set_len(1 << 42).unwrap();
    scratch.file("small", "");
    for (words, said) in PLACES {
        let words = words.replace("FILE", "huge.toml");
        refused(&words, limited(&scratch, &words, ""), said);
    }
    let tunables = &mut scratch.foreread("models");
    tunables.env("FOREREAD_TUNABLES", "huge.toml");
    refused("FOREREAD_TUNABLES", run(tunables), "16 MiB, which is the limit for configuration");
    let configured = &mut scratch.foreread("models");
    configured.env("FOREREAD_CONFIG", "/dev/zero");
    refused("FOREREAD_CONFIG", run(configured), "/dev/zero: it is a device");
}

#[test]
fn devices_directories_and_circles_are_refused() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path().join("dir")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", scratch.path().join("zero")).unwrap();
    std::os::unix::fs::symlink("round", scratch.path().join("round")).unwrap();
    scratch.file("small", "");
    for (words, _) in PLACES {
        for (file, said) in
            [("zero", "it is a device"), ("dir", "it is a directory"), ("round", "symbolic links")]
        {
            let words = words.replace("FILE", file);
            refused(&words, limited(&scratch, &words, ""), said);
        }
    }
}

#[test]
fn a_pipe_without_end_stops_at_the_limit_in_little_memory() {
    let scratch = Scratch::new();
    scratch.file("small", "");
    for (words, said) in PLACES {
        let words =
            words.replacen("./FILE", "-", 1).replacen("FILE", "-", 1).replace("FILE", "small");
        // An unknown trace format is rejected after its first bytes.
        let said = match words.contains("trac") && !words.contains("--format") {
            true => "is no trace in a form",
            false => said,
        };
        let said = if words.contains("--replay") { "is larger than" } else { said };
        refused(&words, limited(&scratch, &words, "cat /dev/zero |"), said);
    }
    let endless = "{ echo offset,length; yes 0,4096; } |";
    let said = "1 GiB, which is the limit for traces";
    refused("trace show -", limited(&scratch, "trace show -", endless), said);
    // An included file, and a named pipe.
    scratch.file("job.fio", "include /dev/zero\n[a]\nrw=read\n");
    let words = "sweep sim:nvme --workload fio:job.fio";
    refused(words, limited(&scratch, words, ""), "/dev/zero: it is a device");
    let words = "check --policy fifo";
    refused(words, limited(&scratch, words, "mkfifo fifo; cat /dev/zero > fifo &"), "policies");
}

#[test]
fn what_unpacks_to_far_more_stops_at_the_limit() {
    let scratch = Scratch::new();
    let packed = std::process::Command::new("sh")
        .arg("-c")
        .arg("{ echo offset,length; yes 0,4096 | head -c 1100000000; } | gzip -1")
        .output()
        .unwrap();
    scratch.file("bomb.gz", packed.stdout);
    let said = "unpacks to more than 1 GiB, which is the limit for traces";
    refused("trace show", limited(&scratch, "trace show bomb.gz", ""), said);
    // Zeros alone are not a trace, whatever their unpacked size.
    let zeros = "head -c 1100000000 /dev/zero | gzip -1 |";
    refused("zeros", limited(&scratch, "trace show -", zeros), "is no trace in a form");
}

/// Returns exit code, stdout and stderr with this on standard input.
fn fed(scratch: &Scratch, words: &str, input: &[u8]) -> (i32, String, String) {
    let mut child = scratch
        .foreread(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_dash_is_standard_input_wherever_a_file_is_read() {
    let scratch = Scratch::new();
    let model = scratch.run("models show hdd-2008").1;
    let table = b"read_ahead_kib,seq-1\n128,100\n1024,200\n";
    let workload = scratch.run("workloads show seq-8").1.replace("seq-8", "mine");
    let sweep = "--vary read_ahead=128K --duration 100ms --repeats 1 --quiet";
    for (words, input, said) in [
        ("models show -".to_owned(), model.as_bytes(), "hdd-2008"),
        (format!("sweep sim:-,cache=1G {sweep} --workload seq-1"), model.as_bytes(), "seq-1"),
        (format!("sweep sim:nvme {sweep} --workload -"), workload.as_bytes(), "mine"),
        (format!("sweep sim:nvme {sweep} --workload fio:-"), b"[a]\nrw=read\nsize=1g\n", "stdin"),
        (
            format!("sweep sim:nvme {sweep} --workload trace:-"),
            b"offset,length\n0,4096\n",
            "trace-stdin",
        ),
        ("trace show -".to_owned(), b"offset,length\n0,4096\n", "csv"),
        ("trace import - -o out.trace".to_owned(), b"offset,length\n0,4096\n", ""),
        ("import -n -".to_owned(), table, ""),
        ("import --title mine -".to_owned(), table, ""),
    ] {
        let (code, stdout, stderr) = fed(&scratch, &words, input);
        assert!(matches!(code, 0 | 5), "{words}: {code}: {stderr}");
        assert!(stdout.contains(said), "{words}: {stdout}");
    }
    assert!(scratch.path().join("out.trace").is_file());
    let (code, _, stderr) = fed(&scratch, "check --policy -", b"nonsense");
    assert_eq!(code, 2, "{stderr}");
    // A record of another host: its last run, or a run by its number.
    scratch.run(&format!("sweep sim:nvme {sweep} --workload seq-1 --seed 3"));
    let record = std::fs::read(scratch.path().join("state/runs.sqlite")).unwrap();
    for words in ["compare - last", "compare --json - last", "compare last -- -:1"] {
        let (code, stdout, stderr) = fed(&scratch, words, &record);
        assert_eq!(code, 0, "{words}: {stderr}");
        assert!(stdout.contains("seq-1"), "{words}: {stdout}");
    }
    let (code, _, stderr) = fed(&scratch, "compare - last", b"no database");
    assert_ne!(code, 0);
    assert_eq!(stderr.lines().next().map(|line| line.starts_with("error: ")), Some(true));
    // Standard input cannot serve as two inputs.
    let (code, _, stderr) = fed(&scratch, "sweep sim:- --workload -", model.as_bytes());
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("cannot be the workload file as well: it is already the model"),
        "{stderr}"
    );
    assert_eq!(fed(&scratch, "import - -", table).0, 2);
}

#[test]
fn job_files_include_others_at_the_top_and_beside_themselves() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().join("jobs/common")).unwrap();
    scratch.file("jobs/main.fio", "include common/defaults.fio\n[one]\nsize=1g\n");
    scratch.file("jobs/common/defaults.fio", "include more.fio\n[global]\nrw=read\n");
    scratch.file("jobs/common/more.fio", "[global]\nbs=128k\n");
    let sweep = "--vary read_ahead=128K --duration 100ms --repeats 1";
    let words = format!("sweep sim:nvme {sweep} --workload fio:jobs/main.fio");
    let (code, stdout, stderr) = scratch.run(&words);
    assert!(matches!(code, 0 | 5) && stdout.contains("main"), "{code}: {stderr}");
    scratch.file("round.fio", "include ./round.fio\n[a]\nrw=read\n");
    let (code, _, stderr) = scratch.run("sweep sim:nvme --workload fio:round.fio");
    assert_eq!(code, 2);
    assert!(stderr.contains("the file includes itself"), "{stderr}");
}
