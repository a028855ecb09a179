//! Changes of settings: open files, recommendations, presets, and possible failures.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use observe::{OpenFileFilter, open_files};
use serde_json::Value;

use super::{Stage, document, foreread_in, text};

impl Stage {
    pub fn run(&self, words: &[&str]) -> Output {
        self.foreread().args(words).output().unwrap()
    }

    pub fn apply(&self, words: &[&str]) -> Output {
        let on = self.mount.to_str().unwrap();
        self.run(&[&["apply", "--on", on], words].concat())
    }

    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join("state/journal"));
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect()
    }

    pub fn roll_back(&self) {
        let output = self.run(&["rollback", "all"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        self.assert_as_before();
    }

    /// Returns the window, in KiB, of the file that a reader has open as its standard input.
    pub fn window_of(&self, reader: &Reader) -> u64 {
        let bdi = self.knob.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let bdi = host::BdiId::new(bdi).unwrap();
        let files = open_files(&OpenFileFilter::on_bdi(&bdi)).unwrap();
        let held = files.iter().find(|file| file.holders.iter().any(|h| h.pid == reader.0.id()));
        held.unwrap().window.to_kib_floor().get()
    }
}

/// A process that holds a file open.
pub struct Reader(Child);

impl Reader {
    pub fn of(path: &Path) -> Self {
        let stdin = File::open(path).unwrap();
        let child = Command::new("sleep").arg("120").stdin(stdin).spawn().unwrap();
        // Until the process executes sleep(1), it has the descriptors of its parent.
        let comm = format!("/proc/{}/comm", child.id());
        while fs::read_to_string(&comm).unwrap().trim() != "sleep" {
            std::thread::yield_now();
        }
        Self(child)
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
pub fn refused(output: &Output, code: i32, said: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(said), "{said:?} is not in {stderr}");
}

#[test]
fn host_open_files_get_the_new_window_where_that_is_allowed() {
    let test = "host_open_files_get_the_new_window_where_that_is_allowed";
    let Some(stage) = Stage::set(test) else { return };
    if let Err(error) = observe::Census::load() {
        println!("SKIP {test}: {error}");
        return;
    }
    let path = stage.mount.join("data");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let before: u64 = stage.original.trim().parse().unwrap();
    let (one, other) = (Reader::of(&path), Reader::of(&path));
    // Without --open-files, apply leaves open files as they are, and reports their number.
    let output = stage.apply(&["read_ahead=1088K"]);
    assert!(text(&output.stderr).contains("2 open files keep another window"), "{output:?}");
    assert_eq!((stage.window_of(&one), stage.window_of(&other)), (before, before));
    let only = format!("pid:{}", one.0.id());
    let output = stage.apply(&["read_ahead=1088K", "--open-files", "--only", &only]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stderr.contains("1 of 2 open files"), "{stderr}");
    let who = format!("(process {})", other.0.id());
    let missed = format!("{who}: left alone: no rule allows it");
    assert!(stdout.contains(&missed), "who could not be reached is said: {stdout}");
    assert_eq!((stage.window_of(&one), stage.window_of(&other)), (1088, before));
    let cgroup = stage.apply(&["read_ahead=544K", "--open-files", "--only", "cgroup:/"]);
    assert!(text(&cgroup.stderr).contains("2 of 2 open files"), "{cgroup:?}");
    assert_eq!((stage.window_of(&one), stage.window_of(&other)), (544, 544));
    let except = format!("pid:{}", other.0.id());
    let words = ["read_ahead=272K", "--open-files", "--only", "user:root", "--except", &except];
    let user = document(&stage.apply(&[&words[..], &["--json"]].concat()));
    assert_eq!(user["open_files"].as_array().unwrap().len(), 2, "{user}");
    assert_eq!((stage.window_of(&one), stage.window_of(&other)), (272, 544));
    drop((one, other));
    fs::remove_file(&path).unwrap();
    stage.roll_back();
}

#[test]
fn host_what_a_run_recommends_is_applied() {
    let Some(stage) = Stage::set("host_what_a_run_recommends_is_applied") else { return };
    let mut sweep = stage.foreread();
    sweep.args(["sweep", "--vary", "read_ahead=4K,1M", "--workload", "seq-1", "--repeats", "3"]);
    sweep.args(["--seed", "7", "--size", "256M", "--duration", "300ms", "--json"]);
    let swept = document(&sweep.arg(&stage.mount).output().unwrap());
    let run = swept["run"].as_i64().or(swept["id"].as_i64()).unwrap().to_string();
    let output = stage.run(&["apply", "--from", &run]);
    match swept["recommendation"]["read_ahead_kib"].as_u64() {
        Some(full) => {
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert_eq!(stage.value().trim(), full.to_string());
            println!("the run recommends {full} KiB, and that is applied");
        }
        None => refused(&output, 2, "recommends no setting"),
    }
    stage.roll_back();
    refused(&stage.run(&["apply", "--from", "4711"]), 2, "4711");
}

#[test]
fn host_published_advice_is_applied_by_name() {
    let Some(stage) = Stage::set("host_published_advice_is_applied_by_name") else { return };
    let output = stage.apply(&["--preset", "greenplum", "--streams", "1"]);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("Greenplum") && stderr.contains("not a measurement"), "{stderr}");
    assert_eq!(stage.value().trim(), "8192");
    refused(&stage.apply(&["--preset", "mongodb"]), 2, "--preset mongodb=VALUE");
    refused(&stage.apply(&["--preset", "mongodb=1M"]), 2, "follows none of the recommendations");
    refused(&stage.apply(&["--preset", "mongobd"]), 2, "no recommendations for");
    refused(&stage.apply(&["--preset", "greenplum", "ra=1M"]), 2, "set twice");
    let output = stage.apply(&["--preset", "mongodb=16K"]);
    assert!(output.status.success() && stage.value().trim() == "16", "{output:?}");
    stage.roll_back();
}

#[test]
fn host_a_read_only_sysfs_is_told_as_what_it_is() {
    let Some(stage) = Stage::set("host_a_read_only_sysfs_is_told_as_what_it_is") else { return };
    let mut command = Command::new("unshare");
    let script = "mount --bind /sys /sys && mount -o remount,ro,bind /sys && exec \"$@\"";
    let program = assert_cmd::cargo::cargo_bin!("foreread");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(program);
    command.args(["apply", "read_ahead=64K", "--on"]).arg(&stage.mount);
    command.env("FOREREAD_STATE_DIR", stage.dir.path().join("state"));
    command.env("FOREREAD_RUNTIME_DIR", stage.dir.path().join("runtime"));
    let output = command.output().unwrap();
    refused(&output, 6, "read-only, as in containers");
    assert!(stage.journals().is_empty(), "nothing is left to undo");
    stage.assert_as_before();
}

#[test]
fn host_a_device_that_vanished_has_nothing_to_put_back() {
    let test = "host_a_device_that_vanished_has_nothing_to_put_back";
    let Some(stage) = Stage::set(test) else { return };
    assert!(stage.apply(&["read_ahead=64K"]).status.success());
    let removed = stage.foreread().args(["vdisk", "remove", "--all", "-q"]).status().unwrap();
    assert!(removed.success());
    refused(&stage.apply(&["read_ahead=64K"]), 2, stage.mount.to_str().unwrap());
    let verify = stage.run(&["verify"]);
    assert_eq!(verify.status.code(), Some(3), "{verify:?}");
    let rollback = stage.run(&["rollback", "all"]);
    assert!(rollback.status.success(), "{rollback:?}");
    assert!(stage.journals().is_empty());
}

#[test]
fn host_a_value_that_another_process_set_stays_and_the_original_is_named() {
    let test = "host_a_value_that_another_process_set_stays_and_the_original_is_named";
    let Some(stage) = Stage::set(test) else { return };
    assert!(stage.apply(&["read_ahead=256K"]).status.success());
    assert!(stage.apply(&["read_ahead=512K"]).status.success());
    fs::write(&stage.knob, "340").unwrap();
    let original = stage.original.trim();
    let before = format!("it was {original} KiB before: echo {original} > ");
    for words in [&["rollback", "all", "-n"][..], &["rollback", "all"]] {
        let output = stage.run(words);
        let stdout = text(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{stdout}");
        assert!(stdout.lines().count() == 1 && stdout.contains(&before), "{stdout}");
        assert_eq!(stage.value().trim(), "340");
    }
    assert!(stage.journals().is_empty());
    fs::write(&stage.knob, original).unwrap();
    stage.roll_back();
}

#[test]
fn host_a_journal_that_was_tampered_with_undoes_nothing() {
    let test = "host_a_journal_that_was_tampered_with_undoes_nothing";
    let Some(stage) = Stage::set(test) else { return };
    assert!(stage.apply(&["read_ahead=64K"]).status.success());
    let journal = stage.journals().pop().unwrap();
    let sound = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, sound.replace("/sys/class/bdi", "/etc")).unwrap();
    refused(&stage.run(&["rollback", "all"]), 1, "line 2");
    assert_eq!(stage.value().trim(), "64");
    let half = &sound[..sound.len() - 20];
    fs::write(&journal, half).unwrap();
    // The last line, which completes the journal, is cut: rollback undoes it like a killed run.
    let output = stage.run(&["rollback", "all"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    stage.assert_as_before();
    assert!(stage.journals().is_empty());
}

#[test]
fn host_ordinary_users_are_told_what_root_applied() {
    let test = "host_ordinary_users_are_told_what_root_applied";
    let Some(stage) = Stage::set(test) else { return };
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    open(stage.dir.path()).unwrap();
    assert!(stage.apply(&["read_ahead=1088K"]).status.success());
    let bdi = stage.knob.parent().unwrap().file_name().unwrap();
    let program = foreread_in(stage.dir.path()).get_program().to_owned();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(program);
    command.args(["doctor", "--json"]).arg(bdi).current_dir("/").stdin(Stdio::null());
    command.env("FOREREAD_STATE_DIR", stage.dir.path().join("state"));
    let output = command.output().unwrap();
    match serde_json::from_slice::<Value>(&output.stdout) {
        Ok(document) => {
            let origin = &document["storage"][0]["origin"];
            assert_eq!(origin["kind"], "foreread", "{document}");
            assert_eq!(origin["confidence"], "certain", "{document}");
        }
        Err(_) => println!("SKIP {test}: nobody cannot start it: {}", text(&output.stderr)),
    }
    stage.roll_back();
}
