//! Experiments on virtual disks under the real kernel. They need root, FUSE and loop devices, and
//! undo all their changes at the end.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test prints skips, and may panic

mod program;

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use program::{foreread_in, run};
use serde_json::Value;
use sys::lock::Lock;
use testkit::HOST_LOCK;
use units::Bytes;
use vdisk::Filesystem;

/// Directories for foreread's own state, and the lock that serialises the tests of the host.
struct Stage {
    dir: tempfile::TempDir,
    _turn: Lock,
}

impl Stage {
    /// Returns `None`, after printing why, if the test called `name` is skipped.
    fn set(name: &str) -> Option<Self> {
        if let Err(lack) = vdisk::availability(Filesystem::Ext4) {
            println!("SKIP {name}: {lack}");
            return None;
        }
        let turn = Lock::acquire(Path::new(HOST_LOCK)).unwrap();
        Some(Self { dir: tempfile::tempdir().unwrap(), _turn: turn })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = foreread_in(self.dir.path());
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Gives the user of a server access to the directory.
    fn open_to_all(&self) {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.dir.path(), open).unwrap();
    }

    /// Runs a command that must succeed and leave no virtual disk behind; returns its JSON.
    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // The code is 5 if there were too few requests for an answer.
        assert!(matches!(output.status.code(), Some(0 | 5)), "{:?}: {said}", output.status.code());
        let disks = self.run(&["vdisk", "list", "--json"]);
        let disks: Value = serde_json::from_slice(&disks.stdout).unwrap();
        assert_eq!(disks["virtual_disks"].as_array().map(Vec::len), Some(0), "{disks}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn rows(answer: &Value) -> &[Value] {
    answer["tables"][0]["rows"].as_array().unwrap()
}

/// The shape of the table of 2002: two blocks cost hardly more than one, sixteen less than five
/// times as much; with four processes, larger requests are cheaper still.
#[test]
fn host_blocks_have_the_published_shape() {
    let Some(stage) = Stage::set("host_blocks_have_the_published_shape") else { return };
    // Slower than its model, so that a busy machine affects the figures little.
    let disk = "virtual:hdd-15k-2000,dilation=4";
    let words = ["blocks", disk, "--span", "2G", "--blocks", "1,2,8,16", "--processes", "1,4"];
    // In half of this time, four processes complete too few requests while other tests run.
    let more = ["--duration", "600ms", "--seed", "3", "--json"];
    let answer = stage.json(&[words.as_slice(), &more].concat());
    let ratio = |processes: u64, blocks: u64| {
        let row = rows(&answer)
            .iter()
            .find(|row| row["processes"] == processes && row["blocks"] == blocks)
            .unwrap();
        row["ratio_to_smallest"].as_f64().unwrap()
    };
    for processes in [1, 4] {
        assert!(ratio(processes, 2) <= 1.35, "two blocks, {processes} processes");
        assert!(ratio(processes, 16) < 5.0, "sixteen blocks, {processes} processes");
    }
    // Not at sixteen blocks: Linux sends them as two concurrent requests; the system of 2002 sent
    // one request after the other.
    assert!(ratio(4, 2) * ratio(4, 8) < ratio(1, 2) * ratio(1, 8), "{answer:#}");
}

/// Requests in parts, as in the system of 2002; the ratios lie within their intervals.
#[test]
fn host_blocks_are_read_in_parts() {
    let Some(stage) = Stage::set("host_blocks_are_read_in_parts") else { return };
    let disk = "virtual:hdd-15k-2000,dilation=4";
    let words = ["blocks", disk, "--span", "2G", "--blocks", "1,16", "--processes", "1,4"];
    let more = ["--part", "64K", "--duration", "300ms", "--seed", "3", "--json"];
    let answer = stage.json(&[words.as_slice(), &more].concat());
    let ratio = |row: usize| rows(&answer)[row]["ratio_to_smallest"].as_f64().unwrap();
    assert!(ratio(1) < 5.0 && ratio(3) < 5.0, "{answer:#}");
    for row in [1, 3] {
        let end = |key: &str| rows(&answer)[row][key].as_f64().unwrap();
        assert!(end("ratio_to_smallest_low") < ratio(row), "{answer:#}");
        assert!(end("ratio_to_smallest_high") > ratio(row), "{answer:#}");
    }
    let notes = answer["notes"].to_string();
    assert!(notes.contains("into parts, one after another"), "{notes}");
}

/// In a quarter of the memory that the windows of sixteen streams need, pages are evicted and read
/// again; with two streams, they are not.
#[test]
fn host_scarce_memory_makes_read_ahead_thrash() {
    let name = "host_scarce_memory_makes_read_ahead_thrash";
    let Some(stage) = Stage::set(name) else { return };
    if let Err(lack) = bench::check_memory_limit(Bytes::from_mib(32)) {
        println!("SKIP {name}: {lack}");
        return;
    }
    // Ten times slower than its model, so that the delays of a busy machine spoil no trial.
    let disk = "virtual:ssd-sata,fs=ext4,size=4G,dilation=10";
    let words = ["experiment", "memory", disk, "--memory", "32M", "--streams", "2,16"];
    let more = ["--read-ahead", "128K,4M", "--repeats", "1", "--duration", "300ms"];
    let rest = ["--size", "32M", "--seed", "1", "--json"];
    let answer = stage.json(&[words.as_slice(), &more, &rest].concat());
    assert_eq!(answer["decided"], true, "{answer:#}");
    let point = |window: u64, streams: u64| {
        let row = rows(&answer)
            .iter()
            .find(|row| row["read_ahead_kib"] == window && row["streams"] == streams)
            .unwrap();
        let number = |key: &str| row[key].as_f64().unwrap();
        (number("amplification"), number("refaulted_mib"))
    };
    for (window, streams) in [(128, 2), (128, 16), (4096, 2)] {
        let (read, again) = point(window, streams);
        assert!(read < 1.1 && again < 1.0, "{streams} streams of {window} KiB: {read} {again}");
    }
    let (read, again) = point(4096, 16);
    assert!(read > 1.1 && again > 4.0, "{read} {again}: {answer:#}");
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(!own.contains("foreread-memory"), "{own}");
}

/// This kernel starts read-ahead as the recorded rules predict, page for page.
#[test]
fn host_read_ahead_starts_when_the_rules_say() {
    let Some(stage) = Stage::set("host_read_ahead_starts_when_the_rules_say") else { return };
    for filesystem in ["ext4", "xfs"] {
        let disk = format!("virtual:zero,fs={filesystem},size=512M");
        let words = ["experiment", "activation", &disk, "--read-ahead", "128K", "--json"];
        let answer = stage.json(&words);
        for name in ["sequential", "stride-2", "backward", "interleaved", "mmap"] {
            let row = rows(&answer).iter().find(|row| row["pattern"] == name).unwrap();
            assert_eq!(row["rules"], "as predicted", "{filesystem}: {row:#}");
        }
        let starts = |name: &str| {
            let row = rows(&answer).iter().find(|row| row["pattern"] == name).unwrap();
            row["starts_with_read"].as_u64()
        };
        assert_eq!((starts("sequential"), starts("middle")), (Some(1), Some(2)), "{filesystem}");
        assert_eq!((starts("backward"), starts("random")), (None, None), "{filesystem}");
        assert_eq!(starts("two-processes"), starts("middle"), "{filesystem}");
    }
}

/// A disk of 2008 is three fifths as fast at its end as at its start.
#[test]
fn host_the_end_of_a_disk_is_slower_than_its_start() {
    let name = "host_the_end_of_a_disk_is_slower_than_its_start";
    let Some(stage) = Stage::set(name) else { return };
    // The whole disk, so that its end is the model's end.
    let disk = "virtual:hdd-15k-2008,fs=raw,size=136G";
    let words = ["experiment", "zones", disk, "--places", "2", "--repeats", "1"];
    let more = ["--duration", "300ms", "--seed", "1", "--json"];
    let answer = stage.json(&[words.as_slice(), &more].concat());
    let rate = |row: usize| rows(&answer)[row]["throughput_mib_s"].as_f64().unwrap();
    assert_eq!(rows(&answer).len(), 2);
    assert!(rate(0) > 1.0 && rate(1) > 1.0, "{answer:#}");
    assert!(rate(1) < 0.85 * rate(0), "{answer:#}");
}

/// A real server on a virtual disk: a sequential scan with the device's utilisation, and random
/// selects from a cold cache until the table is cached.
#[test]
fn host_postgres_scans_and_is_primed() {
    let name = "host_postgres_scans_and_is_primed";
    if let Err(lack) = pg::Tools::find() {
        println!("SKIP {name}: {lack}");
        return;
    }
    let Some(stage) = Stage::set(name) else { return };
    stage.open_to_all();
    let words = ["pg", "virtual:ssd-sata,fs=ext4,size=1G", "--test", "seq,prime"];
    let more = ["--size", "8M", "--primed", "95", "--limit", "30s", "--seed", "1"];
    let vary = ["--vary", "read_ahead=4K,1M", "--json"];
    let answer = stage.json(&[words.as_slice(), &more, &vary].concat());
    assert_eq!(answer["decided"], true, "{answer:#}");
    assert_eq!(rows(&answer).len(), 4, "{answer:#}");
    for row in rows(&answer) {
        assert!(row["seconds"].as_f64().unwrap() > 0.0, "{row:#}");
        // The cache was cold: the table came from the device.
        assert!(row["device_read_mib"].as_f64().unwrap() > 7.0, "{row:#}");
        let busy = row["device_busy_percent"].as_f64().unwrap();
        assert!((0.0..=100.0).contains(&busy), "{row:#}");
    }
    let scan = |label: &str| {
        let is = |row: &&Value| row["test"] == "seq" && row["settings"] == label;
        rows(&answer).iter().find(is).unwrap().clone()
    };
    let request = |row: &Value| row["device_request_kib"].as_f64().unwrap();
    let (small, large) = (scan("read_ahead=4K"), scan("read_ahead=1M"));
    assert!(request(&large) > 2.0 * request(&small), "{answer:#}");
    let plots = answer["plots"].as_array().unwrap();
    let primed = |plot: &&Value| plot["y"] == "queries/s";
    let curves = plots.iter().find(primed).unwrap()["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2, "{answer:#}");
    assert!(answer["notes"][0].as_str().unwrap().starts_with("PostgreSQL"));
    is_in_the_record(&stage, &answer);
}

/// Checks that the trials are recorded as a run, whose page has the curve of each trial.
fn is_in_the_record(stage: &Stage, answer: &Value) {
    assert_eq!(answer["run"], 1);
    let shown = stage.json(&["runs", "show", "1", "--json"]);
    assert_eq!((&shown["command"], &shown["status"]), (&"pg".into(), &"complete".into()));
    for row in rows(answer) {
        let kib = if row["settings"] == "read_ahead=4K" { 4 } else { 1024 };
        let is = |cell: &&Value| {
            let test = format!("pg-{}", row["test"].as_str().unwrap());
            cell["workload"] == test && cell["settings"]["read_ahead_kib"] == kib
        };
        let cell = shown["cells"].as_array().unwrap().iter().find(is).unwrap();
        if row["test"] == "seq" {
            let (message, kept) = (&row["table_mib_s"], &cell["throughput_mib_s"]["median"]);
            let (message, kept) = (message.as_f64().unwrap(), kept.as_f64().unwrap());
            assert!((message - kept).abs() < 1e-5 * message, "{row:#} {cell:#}");
        }
        // The device delivers the requested data and what read-ahead adds.
        let amplification = cell["amplification"]["median"].as_f64().unwrap();
        assert!((0.9..10.0).contains(&amplification), "{cell:#}");
    }
    let page = stage.run(&["report", "1", "-o", "-"]).stdout;
    let page = String::from_utf8(page).unwrap();
    // pgbench reports whole seconds, so priming that takes less than a second has no queries.
    let plots = answer["plots"].as_array().unwrap().iter();
    let primed = plots.filter(|plot| plot["y"] == "queries/s");
    let curves = primed.flat_map(|plot| plot["curves"].as_array().unwrap());
    let message = curves.into_iter().any(|curve| curve["points"] != serde_json::json!([]));
    for line in ["queries", "cached of table and index", "device busy"] {
        let there = page.contains(&format!("\"name\":\"{line}\""));
        assert!(there || line == "queries" && !message, "no time line of {line}");
    }
}

/// Settings of the server are varied, a setting that this version lacks is refused by name, and
/// pgbench's own transactions run.
#[test]
fn host_postgres_settings_are_varied() {
    let name = "host_postgres_settings_are_varied";
    let Ok(tools) = pg::Tools::find() else { return println!("SKIP {name}: no PostgreSQL") };
    let Some(stage) = Stage::set(name) else { return };
    stage.open_to_all();
    let words = ["pg", "virtual:ssd-sata,fs=xfs,size=2G", "--size", "8M", "--seed", "1"];
    let vary = ["--vary", "effective_io_concurrency=0,16", "--test", "bitmap,pgbench"];
    let more = ["--limit", "1s", "--clients", "2", "--json"];
    let answer = stage.json(&[words.as_slice(), &vary, &more].concat());
    assert_eq!(rows(&answer).len(), 4, "{answer:#}");
    for row in rows(&answer).iter().filter(|row| row["test"] == "pgbench") {
        assert!(row["transactions_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
    }
    if tools.major() < 18 {
        let refused = stage.run(&[words.as_slice(), &["--vary", "io_method=worker"]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(6), "{said}");
        assert!(said.contains("io_method needs PostgreSQL 18"), "{said}");
    }
}

/// A table of an existing server is read; the server is neither changed nor stopped.
#[test]
fn host_postgres_reads_a_given_server() {
    let name = "host_postgres_reads_a_given_server";
    let Ok(tools) = pg::Tools::find() else { return println!("SKIP {name}: no PostgreSQL") };
    let Some(stage) = Stage::set(name) else { return };
    stage.open_to_all();
    let limit = pg::RunLimit::seconds(60);
    let mut server = pg::Cluster::create(&tools, stage.dir.path(), &limit).unwrap();
    server.start(&[]).unwrap();
    let client = server.client().unwrap();
    let fill = "create table shop (id int primary key, pad text);\n\
                insert into shop select n, repeat('x', 400) from generate_series(1, 5000) n;";
    client.run(fill, &limit).unwrap();
    let socket = std::env::temp_dir().join(format!("foreread-pg-{}", std::process::id()));
    let connection = format!("host={} user=foreread dbname=postgres", socket.display());
    let target = stage.dir.path().to_str().unwrap();
    let words = ["pg", target, "--connect", &connection, "--table", "shop", "--key", "id"];
    let more = ["--limit", "1s", "--clients", "2", "--seed", "1", "--json"];
    let answer = stage.json(&[words.as_slice(), &more].concat());
    assert_eq!(rows(&answer).len(), 2, "{answer:#}");
    assert!(answer["notes"].to_string().contains("were not emptied"), "{answer:#}");
    let refused = stage.run(&[words.as_slice(), &["--vary", "work_mem=1MB"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    let wrong = stage.run(&["pg", target, "--connect", &connection, "--table", "no_such"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(1) && said.contains("no_such"), "{said}");
    assert_eq!(client.run("select count(*) from shop", &limit).unwrap().trim(), "5000");
    server.remove().unwrap();
}

/// A killed run leaves files; the next rollback removes them.
#[test]
fn host_postgres_files_of_a_killed_run_are_removed() {
    let name = "host_postgres_files_of_a_killed_run_are_removed";
    if pg::Tools::find().is_err() {
        return println!("SKIP {name}: no PostgreSQL");
    }
    let Some(stage) = Stage::set(name) else { return };
    stage.open_to_all();
    let data = stage.dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let mut run = stage.command(&["pg", data.to_str().unwrap(), "--size", "64M"]).spawn().unwrap();
    let home = data.join(".foreread-postgres");
    let socket = std::env::temp_dir().join(format!("foreread-pg-{}", run.id()));
    let up = || home.join("data/postmaster.pid").exists();
    let running = wait(Duration::from_secs(60), up);
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(running, "the server never started");
    assert!(home.exists() && socket.exists());
    // While the server shuts down, its files are in use.
    let mut said = Vec::new();
    let gone = wait(Duration::from_secs(60), || {
        let rolled = stage.run(&["rollback"]);
        assert!(rolled.status.success(), "{rolled:?}");
        said.push(String::from_utf8_lossy(&rolled.stdout).into_owned());
        !home.exists() && !socket.exists()
    });
    let message = said.last().is_some_and(|last| last.contains(home.to_str().unwrap()));
    assert!(gone && message, "{said:?}");
}

/// Returns whether a condition becomes true in time.
fn wait(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Questions that a sweep answers also work in simulation, which needs no privileges.
#[test]
fn sweeps_are_put_into_words() {
    let dir = tempfile::tempdir().unwrap();
    let ask_of = |target: &str, words: &[&str]| -> Value {
        let output = foreread_in(dir.path())
            .arg("experiment")
            .args(words)
            .args([target, "--read-ahead", "128K,8M", "--repeats", "1"])
            .args(["--duration", "500ms", "--seed", "1", "--json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let ask = |words: &[&str]| ask_of("sim:hdd-2008,cache=1G", words);
    let mixed = ask(&["mixed", "--percent", "10"]);
    assert_eq!(rows(&mixed).len(), 4);
    let streams = |row: usize| rows(&mixed)[row]["streams_mib_s"].as_f64().unwrap();
    assert!(streams(1) < streams(0) / 2.0, "{mixed:#}");
    assert!(rows(&mixed)[1]["random_read_costs_ms"].as_f64().unwrap() > 1.0, "{mixed:#}");
    assert!(mixed["verdict"][0].as_str().unwrap().contains("costs the streams"), "{mixed:#}");
    let memory = ask_of("sim:ssd-sata", &["memory", "--memory", "64M", "--streams", "2,32"]);
    let read = |row: usize| rows(&memory)[row]["amplification"].as_f64().unwrap();
    assert!(read(1) < 1.1 && read(3) > 1.1, "{memory:#}");
    assert_eq!(memory["decided"], true, "{memory:#}");
    let readers = ask(&["readers", "--readers", "1,8"]);
    assert_eq!(rows(&readers).len(), 4);
    assert_eq!(readers["plots"][0]["curves"].as_array().unwrap().len(), 2);
    assert!(readers["run"].as_i64().is_some(), "it is in the record");
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let (found, _, said) = run(foreread_in(dir.path()).args(arguments));
        assert_eq!(found, code, "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    };
    refused(&["blocks", "/no/such/disk"], 2, "/no/such/disk");
    refused(&["blocks", "/tmp"], 2, "is a directory");
    refused(&["blocks", "sim:hdd-2008", "--span", "64K"], 2, "sim:hdd-2008 is 64 KiB");
    refused(&["blocks", "/dev/null", "--block", "1000B"], 2, "multiple of 4 KiB");
    refused(&["blocks", "/dev/null", "--blocks", "0"], 2, "1 or more");
    refused(&["blocks", "/dev/null", "--block", "8"], 2, "unit");
    refused(
        &["experiment", "memory", "sim:nvme", "--memory", "0"],
        2,
        "--memory 0 B: must be at least 8 MiB",
    );
    let small = ["experiment", "memory", "sim:nvme", "--memory", "8M", "--read-ahead", "16M"];
    refused(&small, 2, "give --memory 16MiB or more, or smaller windows with --read-ahead");
    refused(&["experiment", "readers", "sim:nvme,cache=4M"], 2, "give cache=8MiB");
    refused(&["sweep", "sim:nvme", "--workload", "dd:"], 2, "an option is missing");
    refused(&["experiment", "zones", "/dev/null", "--places", "1"], 2, "2 to 1000 places");
    refused(&["blocks", "/dev/null", "--part", "1000B"], 2, "multiple of 4 KiB");
    refused(&["experiment", "memory", "/tmp", "--memory", "1M"], 2, "at least 8 MiB");
    refused(&["experiment", "memory", "sim:hdd-2008", "--streams", "0"], 2, "readers");
    refused(&["pg", "sim:hdd-2008"], 2, "needs a real kernel");
    refused(&["pg", "/tmp", "--vary", "read_ahead=128"], 2, "unit");
    refused(&["pg", "/tmp", "--table", "t"], 2, "--connect");
    refused(&["experiment", "mixed", "sim:hdd-2008", "--percent", "0"], 2, "above 0");
    refused(&["experiment", "mixed", "sim:hdd-2008", "--percent", "101"], 2, "less than 100");
    refused(&["experiment", "readers", "sim:hdd-2008", "--readers", "4"], 2, "two numbers");
    refused(&["experiment", "guess", "/tmp"], 2, "unrecognized subcommand");
}

#[test]
fn simulations_answer_without_rights_and_the_same_for_the_same_seed() {
    let scratch = program::Scratch::new();
    let ask = |words: &str| {
        let json = || {
            let (code, stdout, stderr) = scratch.run(&format!("{words} --json"));
            assert_eq!(code, 0, "{words}: {stderr}");
            stdout
        };
        let first = json();
        assert_eq!(first, json(), "{words}: not the same");
        serde_json::from_str::<Value>(&first).unwrap()
    };
    let zones = ask("experiment zones sim:hdd-2008 --places 3 --duration 200ms --seed 4");
    assert_eq!(zones["kernel"], "linux-6.18 (simulated)");
    let rates = zones["tables"][0]["rows"].as_array().unwrap();
    let ratio = rates[2]["ratio_to_start"].as_f64().unwrap();
    assert!((0.4..0.7).contains(&ratio), "{ratio}");
    let blocks = ask("blocks sim:hdd-2008 --blocks 1,16 --duration 500ms --seed 4");
    let rows = blocks["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let ms = rows[0]["ms_per_request"].as_f64().unwrap();
    assert!((8.0..18.0).contains(&ms), "{ms}");
    let activation = ask("experiment activation sim:hdd-2008 --read-ahead 1M");
    let said = activation["verdict"].to_string();
    assert!(said.contains("agree, page for page, with the rules of linux-6.18"), "{said}");
    assert!(said.contains("reaches 1024 KiB at once"), "{said}");
    let other = ask("experiment activation sim:hdd-2008,kernel=none");
    assert_eq!(other["kernel"], "none (simulated)");
    let readers = "experiment readers sim:hdd-2008 --readers 1,2 --repeats 1 --duration 100ms";
    let (_, stdout, _) = scratch.run(&format!("{readers} --seed 4"));
    let head = stdout.lines().next().unwrap();
    assert!(head.ends_with("sim:hdd-2008, linux-6.18 (simulated), seed 4"), "{head}");
}
