//! The program on a filesystem of its own, with many possible failures. The tests need root, FUSE
//! and loop devices, and undo all their changes at the end.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // a test prints skips, and may panic

mod calibrate;
mod control;
mod drawn;
mod faults;
mod outside;
mod program;
mod safety;
mod session;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use program::{document, foreread_in, text};
use serde_json::Value;
use sys::lock::Lock;
use testkit::HOST_LOCK;
use vdisk::Filesystem;

/// A virtual disk without service times, and directories for foreread's own state.
struct Stage {
    dir: tempfile::TempDir,
    mount: PathBuf,
    knob: PathBuf,
    original: String,
    _turn: Lock,
}

impl Stage {
    /// Creates the disk, or prints why the test called `name` is skipped. Tests run one at a time.
    fn set(name: &str) -> Option<Self> {
        Self::of(name, "zero,fs=ext4,size=2G")
    }

    /// Like [`Self::set`], on a disk with this specification.
    fn of(name: &str, words: &str) -> Option<Self> {
        if let Err(lack) = vdisk::availability(Filesystem::Ext4) {
            println!("SKIP {name}: {lack}");
            return None;
        }
        let turn = Lock::acquire(Path::new(HOST_LOCK)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let made = foreread_in(dir.path())
            .args(["vdisk", "create", words, "--name", "stage", "--json"])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let record: Value = serde_json::from_slice(&made.stdout).unwrap();
        let mount = PathBuf::from(record["mountpoint"].as_str().unwrap());
        let device = Path::new(record["device"].as_str().unwrap()).file_name().unwrap().to_owned();
        let number = fs::read_to_string(Path::new("/sys/class/block").join(device).join("dev"));
        let knob = format!("/sys/class/bdi/{}/read_ahead_kb", number.unwrap().trim());
        let original = fs::read_to_string(&knob).unwrap();
        Some(Self { dir, mount, knob: knob.into(), original, _turn: turn })
    }

    fn foreread(&self) -> Command {
        foreread_in(self.dir.path())
    }

    /// Returns a sweep of the disk with two settings that the disk does not have.
    fn sweep(&self, duration: &str) -> Command {
        let mut command = self.foreread();
        command.args(["sweep", "--vary", "read_ahead=36K,68K", "--workload", "seq-1"]);
        command.args(["--repeats", "2", "--seed", "7", "--size", "256M", "--json"]);
        command.args(["--duration", duration]).arg(&self.mount);
        command
    }

    /// Starts a long sweep, and waits until it has changed the setting.
    fn begun(&self) -> Child {
        let mut command = self.sweep("60s");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        self.wait(|| self.value() != self.original, "the sweep to change the setting");
        child
    }

    fn value(&self) -> String {
        fs::read_to_string(&self.knob).unwrap()
    }

    #[track_caller]
    fn wait(&self, until: impl Fn() -> bool, what: &str) {
        let begun = Instant::now();
        while !until() {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited too long for {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn assert_as_before(&self) {
        assert_eq!(self.value(), self.original, "the setting is back");
        let left: Vec<_> = fs::read_dir(&self.mount)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name != "lost+found")
            .collect();
        assert!(left.is_empty(), "{left:?} is left on the disk");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Other programs that examine new mounts may hold a file of the disk open for a moment.
        for _ in 0..20 {
            let removed = self.foreread().args(["vdisk", "remove", "--all", "-q"]).status();
            if removed.is_ok_and(|status| status.success()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn host_sweep_measures_records_and_leaves_nothing() {
    let Some(stage) = Stage::set("host_sweep_measures_records_and_leaves_nothing") else { return };
    let swept = document(&stage.sweep("200ms").output().unwrap());
    stage.assert_as_before();
    let cells = swept["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert!(cell["throughput_mib_s"]["median"].as_f64().unwrap() > 0.0);
        assert!(cell["amplification"]["median"].as_f64().unwrap() > 0.9, "it was cold");
        assert!(cell["repeats"].as_u64().unwrap() >= 2);
    }
    assert_eq!(swept["seed"], 7);
    let shown = stage.foreread().args(["runs", "show", "last", "--json"]).output().unwrap();
    assert_eq!(document(&shown), swept, "the record shows what the sweep printed");
}

#[test]
fn host_signals_end_a_sweep_and_put_everything_back() {
    let Some(stage) = Stage::set("host_signals_end_a_sweep_and_put_everything_back") else {
        return;
    };
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let child = stage.begun();
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        stage.assert_as_before();
    }
    let mut child = stage.begun();
    signal(&child, "-KILL");
    child.wait().unwrap();
    stage.wait(|| stage.value() == stage.original, "the guard to put the setting back");
}

#[test]
fn host_an_interrupted_sweep_goes_on_with_the_same_command() {
    let Some(stage) = Stage::set("host_an_interrupted_sweep_goes_on_with_the_same_command") else {
        return;
    };
    let mut child = stage.sweep("1s").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let trials = || {
        let runs = stage.foreread().args(["runs", "--json"]).output().unwrap();
        let runs: Value = serde_json::from_slice(&runs.stdout).unwrap();
        runs["runs"][0]["trials"].as_u64().unwrap_or(0)
    };
    stage.wait(|| trials() >= 1, "the first trial to be recorded");
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = trials();
    let output = stage.sweep("1s").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("resuming run 1"), "{said}");
    let document = document(&output);
    assert_eq!((&document["run"], &document["status"]), (&1.into(), &"complete".into()));
    assert!(document["trials"].as_u64().unwrap() >= kept.max(4));
    stage.assert_as_before();
}

#[test]
fn host_a_second_foreread_on_the_same_device_is_refused() {
    let Some(stage) = Stage::set("host_a_second_foreread_on_the_same_device_is_refused") else {
        return;
    };
    let first = stage.begun();
    let second = stage.sweep("1s").arg("--fresh").output().unwrap();
    let said = text(&second.stderr);
    assert_eq!(second.status.code(), Some(4), "{said}");
    assert!(said.contains("another foreread") || said.contains("is in use"), "{said}");
    signal(&first, "-INT");
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(130));
    stage.assert_as_before();
}

#[test]
fn host_places_that_will_not_do_are_refused_with_their_own_code() {
    let Some(stage) = Stage::set("host_places_that_will_not_do_are_refused_with_their_own_code")
    else {
        return;
    };
    let refused = |command: &mut Command, code: i32, word: &str| {
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(word), "{said}");
    };
    refused(stage.foreread().args(["sweep", "/dev/shm"]), 6, "tmpfs");
    let mut too_large = stage.foreread();
    too_large.args(["sweep", "--size", "100G", "--workload", "seq-1"]).arg(&stage.mount);
    refused(&mut too_large, 4, "--size");
    let remount = |how: &str| {
        let status =
            Command::new("mount").args(["-o", how]).arg(&stage.mount).status().unwrap().success();
        assert!(status, "mount -o {how}");
    };
    remount("remount,ro");
    refused(&mut stage.sweep("200ms"), 6, "read-only");
    remount("remount,rw");
    stage.assert_as_before();
}

#[test]
fn host_a_virtual_target_is_gone_afterwards() {
    let Some(stage) = Stage::set("host_a_virtual_target_is_gone_afterwards") else { return };
    let mut command = stage.foreread();
    command.args(["sweep", "virtual:hdd-modern,fs=ext4,size=1G,dilation=1", "--json"]);
    command.args(["--vary", "read_ahead=36K,1M", "--workload", "seq-1", "--repeats", "1"]);
    let output = command.args(["--size", "64M", "--duration", "300ms"]).output().unwrap();
    let document = document(&output);
    assert_eq!(document["cells"].as_array().unwrap().len(), 2);
    assert_eq!(document["dilation"], 1.0);
    let disks = stage.foreread().args(["vdisk", "list", "--json"]).output().unwrap();
    let disks: Value = serde_json::from_slice(&disks.stdout).unwrap();
    let names: Vec<&Value> =
        disks["virtual_disks"].as_array().unwrap().iter().map(|disk| &disk["name"]).collect();
    assert_eq!(names, ["stage"], "only the stage's own disk is there");
}

#[test]
fn host_the_dilation_of_a_known_virtual_disk_is_taken_out() {
    let name = "host_the_dilation_of_a_known_virtual_disk_is_taken_out";
    let Some(stage) = Stage::of(name, "hdd-2008,fs=ext4,size=1G,dilation=4") else { return };
    let mut command = stage.foreread();
    command.args(["sweep", "--vary", "read_ahead=1M", "--workload", "seq-1", "--repeats", "1"]);
    command.args(["--size", "64M", "--duration", "300ms", "--json"]).arg(&stage.mount);
    let output = command.output().unwrap();
    let (found, said) = (document(&output), text(&output.stderr));
    assert_eq!(found["dilation"], 4.0);
    assert!(said.contains("this is the virtual disk stage with a dilation of 4"), "{said}");
    // The model's drive reads 70 to 115 MB/s; the wall-clock rate is a quarter of that.
    let rate = found["cells"][0]["throughput_mib_s"]["median"].as_f64().unwrap();
    assert!((50.0..130.0).contains(&rate), "{rate}");
    // The same in an experiment. The disk belongs to another process, and stays.
    let mut command = stage.foreread();
    let device = fs::canonicalize(stage.knob.parent().unwrap()).unwrap();
    let device = device.file_name().unwrap().to_str().unwrap().to_owned();
    let block = fs::read_link(format!("/sys/dev/block/{device}")).unwrap();
    let block = Path::new("/dev").join(block.file_name().unwrap());
    command.args(["experiment", "zones", "--places", "2", "--duration", "300ms", "--json"]);
    let output = command.args(["--repeats", "1"]).arg(block).output().unwrap();
    assert_eq!(document(&output)["dilation"], 4.0);
    let disks = stage.foreread().args(["vdisk", "show", "stage", "--json"]).output().unwrap();
    assert_eq!(document(&disks)["state"], "serving");
}

#[test]
fn host_a_virtual_disk_counts_and_can_be_removed_when_its_server_is_dead() {
    let name = "host_a_virtual_disk_counts_and_can_be_removed_when_its_server_is_dead";
    let Some(stage) = Stage::set(name) else { return };
    fs::write(stage.mount.join("file"), vec![7; 1 << 20]).unwrap();
    assert!(Command::new("sync").arg("-f").arg(&stage.mount).status().unwrap().success());
    let show = || {
        let shown = stage.foreread().args(["vdisk", "show", "stage", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&shown.stdout).unwrap()
    };
    let shown = show();
    assert_eq!(shown["state"], "serving");
    assert!(shown["counters"]["written_bytes"].as_u64().unwrap() >= 1 << 20, "{shown}");
    let server = shown["record"]["pid"].as_u64().unwrap().to_string();
    assert!(Command::new("kill").args(["-KILL", &server]).status().unwrap().success());
    stage.wait(|| show()["state"] == "dead", "the server to be dead");
    let removed = stage.foreread().args(["vdisk", "remove", "stage"]).output().unwrap();
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(stage.dir.path().to_str().unwrap()), "a mount is left");
}

#[test]
fn host_watch_sees_who_reads_and_how() {
    let Some(stage) = Stage::set("host_watch_sees_who_reads_and_how") else { return };
    let path = stage.mount.join("watched");
    fs::write(&path, vec![7; 16 << 20]).unwrap();
    let file = fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let recording = stage.dir.path().join("recording");
    let mut command = stage.foreread();
    command.args(["watch", "--once", "--interval", "4s", "--json"]).arg(&stage.mount);
    let child = command.arg("--record").arg(&recording).stdout(Stdio::piped());
    let child = child.stderr(Stdio::piped()).spawn().unwrap();
    // watch has started when it has recorded the initial state.
    stage.wait(|| fs::metadata(&recording).is_ok_and(|file| file.len() > 1000), "watch to begin");
    let mut buffer = vec![0; 65536];
    for at in 0..128 {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut buffer, at << 16).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    if text(&output.stderr).contains("only device counters are shown") {
        println!("SKIP host_watch_sees_who_reads_and_how: {}", text(&output.stderr).trim());
        return;
    }
    let mut replay = stage.foreread();
    replay.args(["watch", "--once", "--json", "--replay"]).arg(&recording);
    for line in [output.stdout, replay_output(&mut replay)] {
        let view: Value = serde_json::from_slice(&line).unwrap();
        let streams = view["streams"].as_array().unwrap();
        let own = |stream: &&Value| stream["pid"] == std::process::id();
        let stream = streams.iter().find(own).unwrap_or_else(|| panic!("{view:#}"));
        assert_eq!(stream["pattern"], "sequential");
        assert_eq!(stream["path"].as_str(), path.to_str());
        let (submitted, used) = (&stream["submitted_mib"], &stream["used_mib"]);
        assert!(submitted.as_f64().unwrap() >= 8.0 && used.as_f64().unwrap() >= 7.0, "{stream:#}");
        assert_eq!(view["lost_events"], 0);
    }
}

fn replay_output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output.stdout
}

#[test]
fn host_auto_gives_everything_back() {
    let Some(stage) = Stage::set("host_auto_gives_everything_back") else { return };
    let path = stage.mount.join("read");
    fs::write(&path, vec![7; 64 << 20]).unwrap();
    let file = fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    let end = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| read_cold(&file, &end));
        // The first auto exits after its duration; the others are killed.
        for round in 0..4_u64 {
            let mut command = stage.foreread();
            command.args(["auto", "--new-files", "--interval", "100ms", "--duration", "3s"]);
            command.arg(&stage.mount);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            if round > 0 {
                std::thread::sleep(Duration::from_millis(500 + 370 * round));
                let pid = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let output = child.wait_with_output().unwrap();
            let said = text(&output.stderr);
            if output.status.code() == Some(6) {
                println!("SKIP host_auto_gives_everything_back: {}", said.trim());
                break;
            }
            assert!(round > 0 || output.status.success(), "{said}");
            stage.wait(|| stage.value() == stage.original, "the guard to put the bdi back");
        }
        end.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let left = foreread_in(stage.dir.path()).args(["rollback", "all"]).output().unwrap();
    assert!(left.status.success(), "{}", text(&left.stderr));
    assert_eq!(stage.value(), stage.original);
}

/// Reads a file from the disk repeatedly.
fn read_cold(file: &fs::File, end: &std::sync::atomic::AtomicBool) {
    let mut buffer = vec![0; 65536];
    while !end.load(std::sync::atomic::Ordering::SeqCst) {
        rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        for at in 0..1024 {
            std::os::unix::fs::FileExt::read_exact_at(file, &mut buffer, at << 16).unwrap();
        }
    }
}

#[test]
fn host_drawn_command_lines_leave_the_machine_as_it_was() {
    let name = "host_drawn_command_lines_leave_the_machine_as_it_was";
    if drawn::sandbox::is_inside() {
        return drawn::run(name, &drawn::sandbox::Place::nowhere());
    }
    let Some(stage) = Stage::set(name) else { return };
    let shown = stage.foreread().args(["vdisk", "show", "stage", "--json"]).output().unwrap();
    let device = document(&shown)["record"]["device"].as_str().unwrap().to_owned();
    let device = device.strip_prefix("/dev/").map(str::to_owned);
    drawn::run(name, &drawn::sandbox::Place { mount: Some(stage.mount.clone()), device });
    if let Ok(entries) = fs::read_dir(stage.mount.join(".foreread-data")) {
        let left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        println!("a command has left {left:?} in .foreread-data");
    }
    stage.assert_as_before();
}
