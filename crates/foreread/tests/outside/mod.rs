//! Workloads that external programs run.

use super::*;

const READ: &str = include_str!("../data/seq-read.fio");
const READ8: &str = include_str!("../data/seq-read8.fio");

/// Returns whether a program is installed; if not, prints that the test is skipped.
fn is_here(name: &str, program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let here = here.map(|dir| dir.join(program)).any(|path| path.is_file());
    if !here {
        println!("SKIP {name}: {program} is not installed (make deps)");
    }
    here
}

fn json(output: &Output) -> Value {
    assert!(output.status.code().is_some_and(|code| code == 0 || code == 5), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the two job files of 2008, unchanged, with fio and with foreread's own engine on the array
/// of 2008. The test asserts agreement within 5 % only if `FOREREAD_AGREEMENT` is set, with the
/// repeats that this needs: on a busy machine, a single repeat may show any figure.
#[test]
fn host_the_job_files_of_2008_run_both_ways() {
    let name = "host_the_job_files_of_2008_run_both_ways";
    if !is_here(name, "fio") {
        return;
    }
    let Some(stage) = Stage::set(name) else { return };
    let asserted = std::env::var_os("FOREREAD_AGREEMENT").is_some();
    let (repeats, duration) = if asserted { ("5", "2s") } else { ("1", "200ms") };
    for (file, text) in [("seq-read8", READ8), ("seq-read", READ)] {
        let path = stage.dir.path().join(format!("{file}.fio"));
        fs::write(&path, text).unwrap();
        let mut command = stage.foreread();
        command.args(["sweep", "virtual:raid10-2008", "--engine", "both", "--json"]);
        command.args(["--vary", "read_ahead=128K,4M", "--size", "97M", "--seed", "3"]);
        command.args(["--repeats", repeats, "--duration", duration]);
        let command = command.args(["--workload", &format!("fio:{}", path.display())]);
        let found = json(&command.output().unwrap());
        let pairs = found["engines"].as_array().unwrap();
        assert_eq!(pairs.len(), 2, "{found}");
        for pair in pairs {
            println!("{pair}");
            let ratio = pair["ratio"].as_f64().unwrap();
            assert!(ratio > 0.0, "{pair}");
            assert!(!asserted || (ratio - 1.0).abs() <= 0.05, "{pair}");
        }
    }
}

#[test]
fn host_a_command_is_prepared_cold_counted_and_killed() {
    let Some(stage) = Stage::set("host_a_command_is_prepared_cold_counted_and_killed") else {
        return;
    };
    let run = |extra: &[&str], script: &str| {
        let mut command = stage.foreread();
        command.args(["sweep", "--vary", "read_ahead=128K", "--repeats", "1", "--json"]);
        command.args(extra).arg("--workload").arg(format!("cmd:{script}")).arg(&stage.mount);
        command.output().unwrap()
    };
    let prepare = "head -c 8388608 /dev/urandom > $FOREREAD_TARGET/file";
    let output = run(&["--prepare", prepare], "cat $FOREREAD_TARGET/file > /dev/null");
    let found = json(&output);
    let cell = &found["cells"][0];
    assert_eq!(cell["workload"], "cmd-cat");
    let amplification = cell["amplification"]["median"].as_f64().unwrap();
    assert!((0.9..1.3).contains(&amplification), "{cell}");
    // Data read again comes from the cache, unless the cache is too small.
    let twice = "cat $FOREREAD_TARGET/file $FOREREAD_TARGET/file > /dev/null";
    let from_device = |extra: &[&str]| {
        let found = json(&run(extra, twice));
        found["cells"][0]["amplification"]["median"].as_f64().unwrap()
    };
    if let Err(lack) = bench::check_memory_limit(units::Bytes::from_mib(8)) {
        println!("SKIP a command with little memory: {lack}");
    } else {
        let (much, little) = (from_device(&[]), from_device(&["--memory-limit", "8M"]));
        assert!(much < 0.7 && little > 0.9, "{much} {little}");
    }
    let figure = run(&["--metric", "rate ([0-9.]+)"], "echo rate 41.5");
    let found = json(&figure);
    assert_eq!(found["cells"][0]["throughput_mib_s"]["median"], 41.5);
    assert!(found["notes"].to_string().contains("rate, as the command"), "{}", found["notes"]);
    assert_eq!(found["workloads"][0]["figure"]["name"], "rate");
    for (format, said) in
        [("--plots", "rate; ×: amplification"), ("--markdown", "(rate)"), ("--csv", ",rate")]
    {
        let shown = stage.foreread().args(["runs", "show", "last", format]).output().unwrap();
        let shown = text(&shown.stdout);
        assert!(shown.contains(said) && !shown.contains("MiB/s"), "{format}: {shown}");
    }

    let begun = Instant::now();
    let hung = run(&["--timeout", "1s"], "sleep 600 & sleep 600");
    assert_eq!(hung.status.code(), Some(1));
    assert!(text(&hung.stderr).contains("did not exit within 1.00 s"), "{}", text(&hung.stderr));
    assert!(begun.elapsed() < Duration::from_secs(60));
    let failed = run(&[], "echo no such thing >&2; exit 7");
    assert_eq!(failed.status.code(), Some(1));
    let message = text(&failed.stderr);
    assert!(message.contains("failed with exit code 7: no such thing"), "{message}");
    let garbage = run(&["--metric", "json:a.b"], "echo hello");
    assert!(text(&garbage.stderr).contains("printed no JSON"), "{}", text(&garbage.stderr));
    fs::remove_file(stage.mount.join("file")).unwrap();
    stage.assert_as_before();
}

#[test]
fn host_bonnie_leaves_nothing() {
    let name = "host_bonnie_leaves_nothing";
    if !is_here(name, "bonnie++") {
        return;
    }
    let Some(stage) = Stage::set(name) else { return };
    let mut command = stage.foreread();
    command.args(["sweep", "--vary", "read_ahead=128K", "--repeats", "1", "--json"]);
    command.args(["--workload", "bonnie++", "--size", "32M"]).arg(&stage.mount);
    let output = command.output().unwrap();
    // On a disk without service times, bonnie++ may find its block input too fast to measure.
    let message = text(&output.stderr);
    assert!(output.status.success() || message.contains("too fast to measure"), "{message}");
    stage.assert_as_before();
}

/// Writing and rewriting use files of their own: all data reaches the device, rewritten data is
/// read first, and no file remains. Existing files are refused.
#[test]
fn host_writers_write_in_files_of_their_own() {
    let Some(stage) = Stage::set("host_writers_write_in_files_of_their_own") else { return };
    let dirty = || fs::read_to_string("/proc/sys/vm/dirty_bytes").unwrap();
    let before = dirty();
    let mut command = stage.foreread();
    command.args(["sweep", "--workload", "seq-write,rewrite", "--size", "16M", "--json"]);
    command.args(["--vary", "read_ahead=128K", "--vary", "dirty_bytes=8M,64M"]);
    command.args(["--repeats", "1", "--duration", "10s"]).arg(&stage.mount);
    let found = json(&command.output().unwrap());
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4, "{found}");
    for cell in cells {
        let amplification = cell["amplification"]["median"].as_f64().unwrap();
        assert!((1.0..1.2).contains(&amplification), "{cell}");
        assert_eq!(cell["disturbed"], 0, "{cell}");
    }
    assert_eq!(dirty(), before, "limits are put back");
    let file = stage.mount.join("mine");
    fs::write(&file, vec![7; 1 << 20]).unwrap();
    let refused = stage.foreread().args(["sweep", "--workload", "rewrite"]).arg(&file).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let message = text(&refused.stderr);
    assert!(message.contains("only read: use a directory"), "{message}");
    assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
    let mut full = stage.foreread();
    full.args(["sweep", "--vary", "read_ahead=128K", "--workload", "seq-write", "--size", "1T"]);
    let full = full.arg(&stage.mount).output().unwrap();
    assert_eq!(full.status.code(), Some(4), "{full:?}");
    assert!(text(&full.stderr).contains("is free: free some space"), "{}", text(&full.stderr));
    fs::remove_file(&file).unwrap();
    stage.assert_as_before();
}
