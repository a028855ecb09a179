//! Simulated targets and recorded decisions, as users see them.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test may panic, and prints skips

mod program;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use program::Scratch;
use serde_json::Value;

const SWEEP: &str = "sweep sim:hdd-2008,cache=64M --workload seq-1,seq-8 --repeats 2 --seed 7 \
    --duration 200ms --size 16M --vary read_ahead=4K,128K,1M --fresh";

/// Joins the words of a constant that spans several lines.
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
fn what_the_simulated_kernel_has_is_what_others_are_compared_with() {
    let scratch = Scratch::new();
    let words = "sweep sim:hdd-2008,cache=64M --workload seq-1 --repeats 2 --seed 7 --size 16M \
                 --duration 100ms --json --vary policy=ara-2006,linux-6.18";
    let (_, stdout, stderr) = scratch.run(words);
    let document: Value = serde_json::from_str(&stdout).expect(&stderr);
    assert_eq!(document["device_before"]["tunables"]["policy"], "linux-6.18", "{document:#}");
    let (_, shown, _) = scratch.run("runs show 1");
    assert!(shown.contains("policy: compared with linux-6.18, ara-2006"), "{shown}");
}

/// Checks that a command is refused as a usage error, in one line, before anything is recorded.
fn refused(scratch: &Scratch, words: &str, said: &str) {
    let (code, stdout, stderr) = scratch.run(words);
    assert_eq!((code, stdout.as_str()), (2, ""), "{words}: {stderr}");
    assert!(stderr.contains(said), "{words}: {stderr}");
    let errors = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(errors, 1, "{words}: one clear line, not\n{stderr}");
    let jargon = ["expected f64", "usize", "unknown variant", "\\u{a}"];
    assert!(!jargon.iter().any(|word| stderr.contains(word)), "{words}: {stderr}");
    let record = scratch.path().join("state/runs.sqlite");
    assert!(!record.exists(), "{words}: nothing is recorded");
}

#[test]
fn targets_that_make_no_sense_are_refused_in_one_line() {
    let scratch = Scratch::new();
    for (target, said) in [
        ("sim:", "`foreread models` lists"),
        ("sim:,cache=1G", "`foreread models` lists"),
        ("sim:xyzzy", "`foreread models` lists"),
        ("sim:raid10-2009", "did you mean \"raid10-2008\""),
        ("sim:hdd-2008,cach=1G", "did you mean \"cache\""),
        ("sim:hdd-2008,rmp=5400", "did you mean \"rpm\""),
        ("sim:hdd-2008,colour=red", "there are kernel, policy, cache"),
        ("sim:hdd-2008,,cache=1G", "after \"hdd-2008,\""),
        ("sim:hdd-2008,cache=1G,", "after \"cache=1G,\""),
        ("sim:hdd-2008,cache", "write key=value"),
        ("sim:hdd-2008,=1G", "write key=value"),
        ("sim:hdd-2008,cache=1G,cache=2G", "cache is given twice"),
        ("sim:hdd-2008,kernel=linux-6.19", "did you mean \"linux-6.18\""),
        ("sim:hdd-2008,kernel=linux", "did you mean \"linux-"),
        ("sim:hdd-2008,kernel=zfs:max_distanse=8M", "did you mean \"max_distance\""),
        ("sim:hdd-2008,rpm=0", "must be 60 to"),
        ("sim:hdd-2008,rpm=fast", "should be a number"),
        (
            "sim:hdd-2008,capacity=1M",
            "the device to 1 MiB: have smaller files (--size; of a trace trace:FILE,compact), have \
             them begin earlier (files_at=), or a larger device (capacity=)",
        ),
        ("sim:hdd-2008,cache=64K,read_ahead=1M", "give cache=1MiB or more"),
        ("sim:hdd-2008,cache=1M", "smaller windows with --vary"),
        ("sim:hdd-2008,cache=1M,policy=zfs", "a window of its policy, 4 MiB: give cache=4MiB"),
        ("sim:hdd-2008 --memory-limit 64K", "give --memory-limit 64MiB or more"),
        ("sim:hdd-2008 --size 0", "--size 0 B is too small"),
        ("sim:hdd-2008 --size 900T", "have smaller files"),
        ("sim:./no-such.toml", "cannot read the model ./no-such.toml"),
        ("virtual:", "`foreread models` lists"),
        ("virtual:hdd-2008,sise=1G", "did you mean \"size\""),
        ("virtual:hdd-2008,,fs=xfs", "after \"hdd-2008,\""),
        ("virtual:hdd-2008,fs=xfs,fs=ext4", "fs is given twice"),
        ("simm:nvme", "did you mean sim:nvme?"),
        ("nvme,cache=1G", "did you mean sim:nvme,cache=1G or virtual:nvme,cache=1G?"),
    ] {
        refused(&scratch, &format!("sweep {target} --workload seq-1"), said);
        refused(&scratch, &format!("sweep -n {target} --workload seq-1"), said);
    }
}

#[test]
fn what_is_varied_or_run_is_refused_in_one_line() {
    let scratch = Scratch::new();
    scratch.file("requests.csv", "offset,length\n0,4096\n");
    scratch.file("table.toml", "name = \"x\"\n[workload]\n");
    for (words, said) in [
        ("--vary policy=linux", "did you mean \"linux-"),
        ("--vary scheduler=cfg", "there is no cfg: use none or mq-deadline"),
        ("--vary rotational=1", "a simulation has no tunable rotational"),
        ("--vary read_ahead=2M", "smaller than a read-ahead window"),
        ("--workload seq-1,,seq-8", "a name is missing"),
        ("--workload=", "a name is missing"),
        ("--workload seq1", "did you mean \"seq-1\""),
        ("--workload bonnie", "did you mean bonnie++?"),
        ("--workload trase:requests.csv", "did you mean trace:requests.csv?"),
        ("--workload requests.csv", "did you mean trace:requests.csv, or fio:requests.csv"),
        ("--workload trace:requests.csv,compakt", "did you mean compact?"),
        ("--workload fio:", "write fio:FILE"),
        ("--workload trace:", "write trace:FILE"),
        ("--repeats 0", "must be a whole number from 1 to 1000"),
        ("--seed x", "must be a whole number of 0 or more"),
        ("--workload table.toml", "line 2, column 2: there is no key \"workload\": there are name"),
    ] {
        refused(&scratch, &format!("sweep sim:hdd-2008,cache=1M {words}"), said);
    }
}

#[test]
fn files_that_describe_no_device_are_named_with_the_place() {
    let scratch = Scratch::new();
    let (code, model, _) = scratch.run("models show hdd-2008");
    assert_eq!(code, 0);
    let changed = |line: &str, other: &str| {
        let lines = model.lines().map(|own| if own.starts_with(line) { other } else { own });
        lines.collect::<Vec<_>>().join("\n")
    };
    for (text, said) in [
        (String::new(), "[device] is missing"),
        ("x = 1\n".to_owned(), "there is no key \"x\": there are name"),
        (changed("rpm", ""), "[device] rpm is missing"),
        (changed("rpm", "rpm = 0"), "device.rpm = 0 is invalid: must be 60 to 1000000"),
        (changed("rpm", "rpm = \"fast\""), "[device] rpm: should be a number"),
        (changed("rpm", "rpm ="), "line "),
        (changed("rpm", "rmp = 7200"), "\"device.rmp\": did you mean \"rpm\"?"),
        (changed("kind", "kind = \"tape\""), "use one of hdd, flash"),
        (changed("capacity", "capacity = 5"), "[device] capacity: should be text in quotes"),
        (changed("name", "name = 3"), "name: should be text in quotes"),
    ] {
        scratch.file("mine.toml", text);
        for words in ["sweep sim:mine.toml", "sweep virtual:mine.toml", "models show mine.toml"] {
            refused(&scratch, words, said);
            refused(&scratch, words, "mine.toml");
        }
    }
    scratch.file("mine.toml", [0xff, 0xfe, 0]);
    refused(&scratch, "sweep sim:mine.toml", "it is not text");
    refused(&scratch, "models show nosuch.toml", "nosuch.toml");
    refused(&scratch, "models show ./", "cannot read the model ./");
}

#[test]
fn a_calibration_that_cannot_be_checked_writes_nothing() {
    let scratch = Scratch::new();
    for (words, said) in [
        ("calibrate sim:hdd-2008 -o x.toml --duration 0s", "too short"),
        ("calibrate sim:hdd-2008,cache=1M -o x.toml", "smaller than a read-ahead"),
        ("calibrate sim: -o x.toml", "no model is named"),
        ("calibrate sim:hdd-2008 -o x", "must end in .toml"),
        ("calibrate nosuch -o x.toml", "no such file"),
        ("reproduce xfs2008", "xfs-2008"),
        ("sim golden no-such-file.json", "no-such-file.json"),
    ] {
        refused(&scratch, words, said);
        assert!(!scratch.path().join("x.toml").exists(), "{words}");
    }
}

const RECORDING: &str = include_str!("../../policy/tests/data/linux-6.18-readahead-golden.json");

#[test]
fn recorded_decisions_are_made_again_or_the_difference_is_told() {
    let scratch = Scratch::new();
    let file = scratch.path().join("golden.json");
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
    assert!(
        stdout.contains("nothing is read, written or changed") && stdout.contains("none"),
        "{stdout}"
    );
}

#[test]
fn a_dry_run_says_what_is_written_and_how_long_a_simulation_really_takes() {
    let scratch = Scratch::new();
    let words = "--vary read_ahead=128K,1M --workload seq-1,seq-8 --repeats 1 --duration 200ms";
    let (code, plan, stderr) = scratch.run(&format!("sweep -n sim:hdd-2008 {words}"));
    assert_eq!(code, 0, "{stderr}");
    assert!(plan.contains("Written: nothing; the files are simulated as well"), "{plan}");
    assert!(plan.contains("seq-8  8 files of") && plan.contains("in total"), "{plan}");
    assert!(plan.contains("Time: less than a second"), "{plan}");
    assert!(plan.contains("1 repeat of 200 ms each"), "{plan}");
    // A real directory: the sizes of the files, and the space on disk.
    let words = format!("sweep -n . {words} --size 64M");
    let (code, plan, stderr) = scratch.run(&words);
    if code == 6 {
        println!("SKIP the directory's part: {stderr}");
        return;
    }
    assert_eq!(code, 0, "{stderr}");
    assert!(plan.contains("seq-1  1 file of 64 MiB"), "{plan}");
    assert!(plan.contains("8 files of 64 MiB, 512 MiB in total"), "{plan}");
    assert!(plan.contains("Written: 512 MiB in a directory of its own"), "{plan}");
    assert!(plan.contains("about 3 seconds, and the time to write 512 MiB"), "{plan}");
    // An existing file is only read.
    scratch.file("data", vec![0; 1 << 20]);
    let (_, plan, _) = scratch.run("tune -n data");
    assert!(plan.contains("Written: nothing; existing data is only read"), "{plan}");
}

/// A long computation does not check for signals, yet a signal stops it.
/// Waits until a process handles SIGTERM or has ended: on a busy machine, its start takes longer.
fn wait_until_it_handles_sigterm(child: &Child) {
    let begun = Instant::now();
    let bit = 1_u64 << (rustix::process::Signal::TERM.as_raw() - 1);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        let caught = u64::from_str_radix(field("SigCgt:"), 16).unwrap();
        if caught & bit != 0 || field("State:").starts_with('Z') {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not handle SIGTERM");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_ends_a_long_simulation_and_the_limits_of_one() {
    let scratch = Scratch::new();
    let limits = "sweep sim:nvme,cache=64M --workload seq-1 --repeats 1 --vary read_ahead=128K \
                  --duration 20s --limits";
    let blocks = "blocks sim:nvme --duration 1000000s --seed 1";
    for words in [limits, blocks] {
        let mut command = scratch.foreread(words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until_it_handles_sigterm(&child);
        std::thread::sleep(Duration::from_millis(1500));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.code();
            }
            if begun.elapsed() > Duration::from_secs(15) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        // A fast machine may have computed the limits by then.
        let done = words.ends_with("--limits") && matches!(code, Some(0 | 5));
        assert!(done || code == Some(143), "{words}: {code:?}");
    }
}
