//! Metrics of hosts, and the files in packaging/ for Prometheus and Grafana.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod program;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use daemon::{DeviceStatus, Status, StatusEffect};
use program::{Answer, Scratch, Served, run};
use serde_json::Value;
use testkit::host_tree::{HostTree, TreeDisk};

/// Creates a captured host with this number of disks in the scratch directory.
fn host(scratch: &Scratch, disks: u32) -> HostTree {
    let path = scratch.path().join("host");
    let mut tree = HostTree::new(&path, "host", "0123456789abcdef0123456789abcdef").unwrap();
    for index in 0..disks {
        let (mount, wwn) = (format!("/srv/{index}"), format!("eui.{index:016x}"));
        tree.disk(&TreeDisk { index, read_ahead_kib: 128, mount: &mount, wwn: &wwn }).unwrap();
    }
    tree
}

const POLICY: &str = "version = 1\n[[rule]]\nname = \"all\"\nmount = \"/srv/*\"\nmax = \"256K\"\n";

fn packaged(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(path)
}

/// Returns the command, or `None` after printing why the test is skipped.
fn tool(name: &str) -> Option<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|directory| directory.join(name).is_file()) {
        return Some(Command::new(name));
    }
    println!("SKIP: {name} is not installed; scripts/deps installs it");
    None
}

fn series(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// The endpoint serves the text of the file and, if one runs, the status of `auto`.
#[test]
fn an_endpoint_serves_what_the_file_has_and_what_auto_does() {
    let scratch = Scratch::new();
    host(&scratch, 3).set_read_ahead(1, 8192).unwrap();
    scratch.file("policy.toml", POLICY);
    let words = "doctor --root host --metrics - --policy policy.toml";
    let (_, file, said) = scratch.run(words);
    assert!(file.contains("foreread_policy_violations 1\n"), "{file}{said}");
    let serve = "serve --metrics --root host --policy policy.toml --port 0";
    let endpoint = Served::start(scratch.foreread(serve));
    let Answer { head, body, .. } = endpoint.get("/metrics");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert_eq!(body, file);
    assert_eq!(endpoint.get("/healthz").status, 200);
    assert_eq!(endpoint.get("/else").status, 404);
    // An auto runs on that host.
    fs::create_dir_all(scratch.path().join("host/var/lib/foreread")).unwrap();
    fs::create_dir_all(scratch.path().join("host/proc/77")).unwrap();
    let mut status = Status { pid: 77, state: "acting".to_owned(), ..Status::starting() };
    let device = DeviceStatus { waits: 5, waited_s: 0.25, ..DeviceStatus::default() };
    status.devices.insert("8:0".to_owned(), device);
    let text = serde_json::to_string(&status).unwrap();
    scratch.file("host/var/lib/foreread/auto.json", &text);
    let with_auto = Served::start(scratch.foreread(serve)).get("/metrics").body;
    assert!(with_auto.contains("foreread_reader_wait_seconds_total{bdi=\"8:0\"} 0.25\n"));
    assert!(with_auto.contains("foreread_policy_violations 1\n"), "{with_auto}");
    if let Some(mut promtool) = tool("promtool") {
        scratch.file("metrics", &with_auto);
        promtool
            .args(["check", "metrics"])
            .stdin(File::open(scratch.path().join("metrics")).unwrap());
        let (code, out, said) = run(&mut promtool);
        assert_eq!(code, 0, "{out}{said}");
    }
    // The process has exited, so its status is omitted.
    fs::remove_dir(scratch.path().join("host/proc/77")).unwrap();
    let gone = Served::start(scratch.foreread(serve)).get("/metrics").body;
    assert!(!gone.contains("reader_waits"), "{gone}");
    scratch.file("policy.toml", "version = 9\n");
    let (code, _, said) = scratch.run(serve);
    assert!(code != 0 && said.contains("policy.toml"), "{said}");
}

/// A container's view of its host: a tree with a live procfs, in another mount namespace.
#[test]
fn host_an_endpoint_in_a_container_sees_the_mounts_of_its_host() {
    let name = "host_an_endpoint_in_a_container_sees_the_mounts_of_its_host";
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("tree")).unwrap();
    let (code, outside, _) = scratch.run("doctor --metrics -");
    assert_eq!(code, 0);
    let program = assert_cmd::cargo::cargo_bin!("foreread");
    // A private mount that process 1 does not have, and the host's tree, bind-mounted.
    let script = format!(
        "mount -t tmpfs none tree && mkdir tree/host tree/own && mount -t tmpfs none tree/own && \
         mount --rbind / tree/host && exec {} doctor --root tree/host --metrics -",
        program.display()
    );
    let mut unshare = Command::new("unshare");
    unshare.current_dir(scratch.path()).args(["--mount", "--propagation", "private", "sh", "-c"]);
    let (code, inside, said) = run(unshare.arg(script).env("FOREREAD_CONFIG", ""));
    if code != 0 && said.contains("permitted") {
        return println!("SKIP {name}: {said}");
    }
    assert_eq!(code, 0, "{said}");
    let storage = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.starts_with("foreread_read_ahead_bytes{"));
        lines.map(str::to_owned).collect()
    };
    assert!(!storage(&outside).is_empty());
    assert_eq!(storage(&inside), storage(&outside));
}

#[test]
fn a_host_of_a_hundred_devices_has_at_most_a_hundred_series() {
    let scratch = Scratch::new();
    let tree = host(&scratch, 100);
    scratch.file("policy.toml", POLICY);
    (0..100).for_each(|index| tree.set_read_ahead(index, 512 + u64::from(index) * 4).unwrap());
    let words = "doctor --root host --metrics out.prom --policy policy.toml";
    let (code, out, said) = scratch.run(words);
    assert_eq!((code, out.as_str(), said.as_str()), (0, "", ""));
    let text = fs::read_to_string(scratch.path().join("out.prom")).unwrap();
    let lines = series(&text);
    assert!(lines.len() <= report::MAX_HOST_SERIES, "{} series", lines.len());
    let names: BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(names.len(), lines.len(), "a series occurs twice");
    for line in [
        "foreread_storage_unlisted 52",
        "foreread_policy_checks 100",
        "foreread_policy_violations 100",
        "foreread_read_ahead_min_bytes 524288",
        "foreread_read_ahead_max_bytes 929792",
        "foreread_settings_drifted 0",
        "foreread_findings{finding=\"zero\"} 0",
        "foreread_storage_by_origin{origin=\"unknown\"} 100",
    ] {
        assert!(lines.contains(&line), "{line} is not in\n{text}");
    }
    // The same host produces the same file, because the file contains no times.
    assert_eq!(scratch.run(words).0, 0);
    assert_eq!(fs::read_to_string(scratch.path().join("out.prom")).unwrap(), text);
}

#[test]
fn a_change_of_the_host_changes_its_series() {
    let scratch = Scratch::new();
    let tree = host(&scratch, 2);
    scratch.file("policy.toml", POLICY);
    let words = "doctor --root host --metrics - --policy policy.toml";
    let printed = || scratch.run(words).1;
    let line =
        "foreread_read_ahead_bytes{storage=\"/srv/1\",bdi=\"259:1\",origin=\"kernel\"} 131072\n";
    let before = printed();
    assert!(before.contains(line) && before.contains("violations 0\n"), "{before}");
    assert!(!before.contains("foreread_policy_violation{"), "{before}");
    tree.set_read_ahead(1, 0).unwrap();
    let after = printed();
    for line in [
        "foreread_read_ahead_bytes{storage=\"/srv/1\",bdi=\"259:1\",origin=\"unknown\"} 0\n",
        "foreread_findings{finding=\"zero\"} 1\n",
        "foreread_read_ahead_min_bytes 0\n",
    ] {
        assert!(after.contains(line), "{line} is not in\n{after}");
    }
    tree.set_read_ahead(1, 8192).unwrap();
    let line = "foreread_policy_violation{rule=\"all\",storage=\"/srv/1\",bdi=\"259:1\"} 1\n";
    assert!(printed().contains(line));
}

#[test]
fn damaged_journals_are_counted() {
    let scratch = Scratch::new();
    let tree = host(&scratch, 1);
    tree.file("var/lib/foreread/journal/1.jsonl", "not a journal\n").unwrap();
    let (code, out, said) = scratch.run("doctor --root host --metrics -");
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("foreread_journals_unreadable 1\n"), "{out}");
}

#[test]
fn a_name_from_outside_breaks_no_line() {
    let scratch = Scratch::new();
    let mut tree = host(&scratch, 0);
    let mount = "/srv/a\"b\\134c\\040d\\012e";
    tree.disk(&TreeDisk { index: 0, read_ahead_kib: 128, mount, wwn: "eui.1" }).unwrap();
    let (_, out, said) = scratch.run("doctor --root host --metrics -");
    let storage = "storage=\"/srv/a\\\"b\\\\c d\\\\u{a}e\"";
    assert!(out.contains(storage), "{out}{said}");
    let Some(mut promtool) = tool("promtool") else { return };
    scratch.file("out.prom", out);
    let file = File::open(scratch.path().join("out.prom")).unwrap();
    let (code, out, said) = run(promtool.args(["check", "metrics"]).stdin(file));
    assert_eq!(code, 0, "{out}{said}");
}

#[test]
fn what_cannot_be_written_or_read_is_refused_before_the_host_is_examined() {
    let scratch = Scratch::new();
    host(&scratch, 1);
    scratch.file("theirs.prom", "node_load1 1\n");
    scratch.file("broken.toml", "version = 9\n");
    for (words, code, why) in [
        ("--metrics theirs.prom", 2, "--force overwrites it"),
        ("--metrics none/out.prom", 2, "there is no directory none"),
        ("--metrics out.prom --policy broken.toml", 2, "broken.toml"),
        ("--metrics out.prom --policy none.toml", 2, "none.toml"),
        ("--metrics out.prom --json", 2, "cannot be used with"),
        ("--policy broken.toml", 2, "--metrics"),
    ] {
        let (got, _, said) = scratch.run(&format!("doctor --root host {words}"));
        assert!(got == code && said.contains(why), "{words}: {got}: {said}");
        assert!(!scratch.path().join("out.prom").exists(), "{words}");
    }
    assert_eq!(fs::read(scratch.path().join("theirs.prom")).unwrap(), b"node_load1 1\n");
}

#[test]
fn alerts_and_recording_rules_hold_their_tests() {
    let Some(mut promtool) = tool("promtool") else { return };
    let test = packaged("prometheus/foreread-rules-test.yml");
    let (code, out, said) = run(promtool.args(["test", "rules"]).arg(test));
    assert_eq!(code, 0, "{out}{said}");
    // Each alert has a test in which it fires.
    let alerts = fs::read_to_string(packaged("prometheus/foreread-alerts.yml")).unwrap();
    let tests = fs::read_to_string(packaged("prometheus/foreread-rules-test.yml")).unwrap();
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n");
        assert!(tests.contains(&fires), "no test sees {alert} fire");
    }
}

/// A server that is killed when the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(command.spawn().unwrap())
    }
}

/// Returns a free port of the loopback address. If another program takes it before the server does,
/// the server exits at once, and the test reports that.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn status(round: u64) -> Status {
    let mut status = Status { state: "acting".to_owned(), ..Status::starting() };
    let device = DeviceStatus {
        latency_ms: 8.0,
        rate_mib_s: 90.0,
        parallelism: 1.5,
        followed: 7,
        ..DeviceStatus::default()
    };
    status.devices.insert("259:1".to_owned(), device);
    status.prefetched_bytes = round << 20;
    status.windows_set = round;
    status.effect = Some(StatusEffect { pairs: 8, ratio: 1.5, low: 1.2, high: 1.8 });
    status
}

/// Adds metrics of a device whose gain was predicted and measured to those of `auto`.
fn with_gains(metrics: &str) -> String {
    let others = metrics.lines().filter(|line| !line.contains("_gain_ratio"));
    let mut text: String = others.map(|line| format!("{line}\n")).collect();
    for (kind, ratio) in [("predicted", 1.4), ("measured", 1.3)] {
        let name = format!("foreread_auto_{kind}_gain_ratio");
        text += &format!("# TYPE {name} gauge\n{name}{{bdi=\"259:1\"}} {ratio}\n");
    }
    text
}

/// Returns the dashboard's expressions, with Grafana's variables replaced.
fn expressions() -> Vec<String> {
    let text = fs::read_to_string(packaged("grafana/foreread.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let targets = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let filled = targets.map(|target| {
        let expression = target["expr"].as_str().unwrap();
        expression.replace("$instance", ".*").replace("$__rate_interval", "1m")
    });
    filled.collect()
}

#[test]
fn each_query_of_the_dashboard_returns_series_on_a_real_prometheus() {
    let names = ["prometheus", "prometheus-node-exporter", "promtool"];
    let tools: Vec<Command> = names.iter().map_while(|name| tool(name)).collect();
    let Ok([mut prometheus, mut exporter, _]) = <[Command; 3]>::try_from(tools) else { return };
    let scratch = Scratch::new();
    let tree = host(&scratch, 3);
    tree.set_read_ahead(2, 8192).unwrap();
    scratch.file("policy.toml", POLICY);
    let at = |name: &str| scratch.path().join(name);
    fs::create_dir(at("textfile")).unwrap();
    let survey = "doctor --root host --policy policy.toml --metrics textfile/foreread.prom";
    assert_eq!(scratch.run(survey).0, 0);
    let text = fs::read_to_string(at("textfile/foreread.prom")).unwrap();
    // A captured host has no open files.
    let open = "# TYPE foreread_open_files_outdated gauge\nforeread_open_files_outdated 2\n";
    fs::write(at("textfile/foreread.prom"), text + open).unwrap();
    let (scraped, served) = (free_port(), free_port());
    exporter
        .args(["--collector.disable-defaults", "--collector.textfile"])
        .arg(format!("--collector.textfile.directory={}", at("textfile").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{scraped}"));
    let _exporter = Server::start(&mut exporter, &at("exporter.log"));
    for file in ["foreread-alerts.yml", "foreread-recording.yml"] {
        fs::copy(packaged("prometheus").join(file), at(file)).unwrap();
    }
    scratch.file(
        "prometheus.yml",
        format!(
            "global: {{scrape_interval: 1s}}
rule_files: [foreread-alerts.yml, foreread-recording.yml]
scrape_configs:
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]
"
        ),
    );
    prometheus
        .arg(format!("--config.file={}", at("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", at("tsdb").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{served}"));
    let mut server = Server::start(&mut prometheus, &at("prometheus.log"));
    let expressions = expressions();
    assert!(expressions.len() >= 15, "{expressions:?}");
    let mut left: Vec<&String> = expressions.iter().collect();
    let started = Instant::now();
    let mut round = 0;
    while !left.is_empty() {
        let log = || fs::read_to_string(at("prometheus.log")).unwrap();
        assert!(server.0.try_wait().unwrap().is_none(), "prometheus ended: {}", log());
        assert!(started.elapsed() < Duration::from_secs(120), "no series: {left:#?}\n{}", log());
        round += 1;
        fs::write(at("textfile/foreread-auto.prom"), with_gains(&status(round).metrics())).unwrap();
        sleep(Duration::from_millis(500));
        left.retain(|expression| {
            let url = format!("http://127.0.0.1:{served}");
            let mut promtool = Command::new("promtool");
            promtool.args(["query", "instant", "-o", "json", &url]).arg(expression);
            let found: Result<Value, _> = serde_json::from_str(&run(&mut promtool).1);
            !found.is_ok_and(|found| found.as_array().is_some_and(|found| !found.is_empty()))
        });
    }
}
