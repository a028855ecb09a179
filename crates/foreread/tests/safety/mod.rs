//! Other runs, their disks, and applied settings must stay unchanged.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use super::session::Session;
use super::settings::{Reader, refused};
use super::{Stage, document, signal, text};

impl Stage {
    /// Returns the command after `words`, from the first line of `said` that contains them.
    fn command_after(&self, said: &str, words: &str) -> Command {
        let line = said.lines().find_map(|line| line.split_once(words));
        let (_, rest) = line.unwrap_or_else(|| panic!("{words:?} is not in {said}"));
        let mut command = self.foreread();
        command.args(rest.split_whitespace().map(|word| word.trim_matches('"')));
        command
    }

    /// Returns the disk's counters, and checks that its server runs.
    fn counters(&self) -> serde_json::Value {
        let shown = self.foreread().args(["vdisk", "show", "stage", "--json"]).output().unwrap();
        let listing: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(listing["state"], "serving", "{listing}");
        listing["counters"].clone()
    }
}

#[test]
fn host_a_unit_for_auto_leaves_what_was_applied() {
    let Some(stage) = Stage::set("host_a_unit_for_auto_leaves_what_was_applied") else { return };
    assert!(stage.apply(&["read_ahead=64K"]).status.success());
    let mount = stage.mount.to_str().unwrap();
    let unit = stage.run(&["auto", mount, "--emit", "systemd"]);
    let before = stage.command_after(&text(&unit.stdout), "foreread\" rollback");
    let words: Vec<_> = before.get_args().collect();
    let output = stage.foreread().arg("rollback").args(words).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(stage.value().trim(), "64", "what the user applied stays");
    assert_eq!(stage.journals().len(), 1, "and can still be undone");
    stage.roll_back();
}

#[test]
fn host_the_printed_undo_of_a_recommendation_undoes_it() {
    let Some(stage) = Stage::set("host_the_printed_undo_of_a_recommendation_undoes_it") else {
        return;
    };
    let mut sweep = stage.foreread();
    sweep.args(["sweep", "--vary", "read_ahead=4K,1M", "--workload", "seq-1", "--repeats", "3"]);
    sweep.args(["--seed", "7", "--size", "256M", "--duration", "300ms"]);
    let swept = text(&sweep.arg(&stage.mount).output().unwrap().stdout);
    if !swept.contains("foreread apply") {
        println!("SKIP host_the_printed_undo_of_a_recommendation_undoes_it: nothing is better");
        return;
    }
    // As printed in the report, and by the number of the run.
    for applies in [&["apply"][..], &["apply", "--from", "last"]] {
        let output = match applies {
            ["apply"] => {
                let command = stage.command_after(&swept, "foreread apply");
                stage.foreread().arg("apply").args(command.get_args()).output().unwrap()
            }
            words => stage.run(words),
        };
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_ne!(stage.value(), stage.original);
        let undo = stage.command_after(&swept, "foreread rollback");
        let output = stage.foreread().arg("rollback").args(undo.get_args()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        stage.assert_as_before();
    }
    let applied = text(&stage.run(&["apply", "--from", "last"]).stdout);
    let undo = stage.command_after(&applied, "# undo: foreread");
    assert!({ undo }.output().unwrap().status.success());
    stage.assert_as_before();
    assert!(stage.journals().is_empty());
}

#[test]
fn host_open_files_get_their_window_back_with_the_settings() {
    let test = "host_open_files_get_their_window_back_with_the_settings";
    let Some(stage) = Stage::set(test) else { return };
    if let Err(error) = observe::Census::load() {
        println!("SKIP {test}: {error}");
        return;
    }
    let path = stage.mount.join("data");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let before: u64 = stage.original.trim().parse().unwrap();
    let (one, other) = (Reader::of(&path), Reader::of(&path));
    let windows = || (stage.window_of(&one), stage.window_of(&other));
    let only = format!("pid:{}", one.id());
    let apply = ["read_ahead=1088K", "--open-files", "--only", only.as_str()];
    // A preview lists the files that would be changed, and no others.
    let preview = stage.apply(&[&apply[..], &["-n"]].concat());
    let (listed, note) = (text(&preview.stdout), text(&preview.stderr));
    assert!(listed.contains(&format!("(process {})", one.id())), "{listed}");
    assert!(!listed.contains(&format!("(process {})", other.id())), "{listed}");
    assert!(note.contains("1 of 2 open files"), "{note}");
    assert_eq!(windows(), (before, before));

    let output = stage.apply(&apply);
    assert_eq!(windows(), (1088, before), "{output:?}");
    assert!(stage.run(&["rollback"]).status.success());
    assert_eq!(windows(), (1088, before), "what was applied stays");
    let preview = text(&stage.run(&["rollback", "all", "-n"]).stdout);
    assert!(preview.contains(&format!("window 1088 KiB → {before} KiB")), "{preview}");
    assert_eq!(windows(), (1088, before), "a preview changes nothing");
    let rolled = document(&stage.run(&["rollback", "all", "--json"]));
    assert_eq!(rolled["open_files"].as_array().unwrap().len(), 1, "{rolled}");
    assert_eq!(rolled["open_files"][0]["original_kib"], before);
    assert_eq!(windows(), (before, before));

    // Two applies, undone by name, the latest first; a file that was closed meanwhile is skipped.
    let all = ["--open-files", "--only", "cgroup:/"];
    let first = stage.apply(&[&["read_ahead=64K"], &all[..]].concat());
    let second = stage.apply(&[&["read_ahead=256K"], &all[..]].concat());
    assert_eq!(windows(), (256, 256));
    let preview = text(&stage.run(&["rollback", "all", "-n"]).stdout);
    assert!(preview.contains(&format!("window 256 KiB → {before} KiB")), "{preview}");
    for (applied, window) in [(second, 64), (first, before)] {
        let mut undo = stage.command_after(&text(&applied.stdout), "# undo: foreread");
        let output = undo.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(windows(), (window, window));
    }
    let _ = stage.apply(&[&["read_ahead=64K"], &all[..]].concat());
    drop((one, other));
    fs::remove_file(&path).unwrap();
    stage.roll_back();
    let left = fs::read_dir(stage.dir.path().join("state/open-files")).unwrap().count();
    assert_eq!(left, 0, "nothing is remembered of what was undone");
}

#[test]
fn host_a_disk_under_a_study_is_not_removed_and_not_disturbed() {
    let test = "host_a_disk_under_a_study_is_not_removed_and_not_disturbed";
    let Some(stage) = Stage::set(test) else { return };
    let sweep = stage.begun();
    for words in [&["vdisk", "remove", "stage"][..], &["vdisk", "remove", "--all"]] {
        let pid = format!("process {}", sweep.id());
        refused(&stage.run(words), 4, &pid);
        refused(&stage.run(&[words, &["-n"]].concat()), 4, &pid);
    }
    assert_eq!(stage.counters()["timing"], true, "it keeps its model's times");
    signal(&sweep, "-INT");
    assert_eq!(sweep.wait_with_output().unwrap().status.code(), Some(130));
    stage.assert_as_before();

    // The disk of a study cannot be removed, even before the study has locked it.
    let mut own = stage.foreread();
    own.args(["sweep", "virtual:zero,size=1G", "--workload", "seq-1", "--duration", "60s"]);
    let own = own.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let disks = || {
        let listed = stage.run(&["vdisk", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
        let names = listed["virtual_disks"].as_array().unwrap().iter();
        names.filter_map(|disk| disk["name"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    stage.wait(|| disks().len() == 2, "the study's own disk");
    let name = disks().into_iter().find(|name| name != "stage").unwrap();
    refused(&stage.run(&["vdisk", "remove", &name]), 4, "foreread");
    signal(&own, "-INT");
    own.wait_with_output().unwrap();
    stage.wait(|| disks().len() == 1, "the study to remove its disk");
}

#[test]
fn host_a_disk_on_which_something_is_open_is_refused_before_it_is_touched() {
    let test = "host_a_disk_on_which_something_is_open_is_refused_before_it_is_touched";
    let Some(stage) = Stage::set(test) else { return };
    let path = stage.mount.join("data");
    fs::write(&path, "data").unwrap();
    let file = File::open(&path).unwrap();
    let mut remove = stage.foreread();
    let removing = remove.args(["vdisk", "remove", "stage"]).stderr(Stdio::piped()).spawn();
    let removing = removing.unwrap();
    for _ in 0..10 {
        assert_eq!(stage.counters()["timing"], true, "it keeps its model's times meanwhile");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    refused(&removing.wait_with_output().unwrap(), 4, "is in use");
    drop(file);
    fs::remove_file(&path).unwrap();
    assert!(stage.run(&["vdisk", "remove", "stage"]).status.success());
}

#[test]
fn host_a_disk_under_auto_is_not_removed() {
    let test = "host_a_disk_under_auto_is_not_removed";
    let Some(stage) = Stage::set(test) else { return };
    if let Err(error) = observe::Census::load() {
        println!("SKIP {test}: {error}");
        return;
    }
    let mut auto = stage.foreread();
    let auto = auto.arg("auto").arg(&stage.mount).stderr(Stdio::null()).spawn().unwrap();
    let acts = || text(&stage.run(&["auto", "status"]).stdout).contains("acting");
    stage.wait(acts, "auto to begin");
    for words in [&["vdisk", "remove", "stage"][..], &["apply", "read_ahead=64K", "--on"]] {
        let mut command = stage.foreread();
        command.args(words);
        if words[0] == "apply" {
            command.arg(&stage.mount);
        }
        refused(&command.output().unwrap(), 4, &format!("process {}", auto.id()));
    }
    assert_eq!(stage.counters()["timing"], true);
    signal(&auto, "-TERM");
    auto.wait_with_output().unwrap();
    let status = stage.run(&["auto", "status"]);
    assert_eq!(status.status.code(), Some(1), "it has ended, and says nothing any more");
    stage.assert_as_before();
}

#[test]
fn host_rollback_leaves_a_study_on_another_disk_to_itself() {
    let test = "host_rollback_leaves_a_study_on_another_disk_to_itself";
    let Some(stage) = Stage::set(test) else { return };
    let sweep = stage.begun();
    let set = stage.value();
    for words in [&["rollback"][..], &["rollback", "all"], &["rollback", "-n"]] {
        let output = stage.run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        assert!(said.contains(&format!("process {} still uses bdi", sweep.id())), "{said}");
        assert!(!said.contains("error:"), "{said}");
    }
    let json = document(&stage.run(&["rollback", "--json"]));
    assert_eq!(json["still_running"][0]["pid"], sweep.id(), "{json}");
    let bdi = stage.knob.parent().unwrap().file_name().unwrap().to_str().unwrap();
    refused(&stage.run(&["rollback", bdi]), 4, "still running");
    assert_ne!(stage.value(), stage.original, "{set} or the other one is still set");
    signal(&sweep, "-INT");
    sweep.wait_with_output().unwrap();
    stage.assert_as_before();
}

#[test]
fn host_a_preview_of_a_rollback_says_what_would_be_done() {
    let test = "host_a_preview_of_a_rollback_says_what_would_be_done";
    let Some(stage) = Stage::set(test) else { return };
    let mut sweep = stage.begun();
    signal(&sweep, "-KILL");
    sweep.wait().unwrap();
    stage.wait(|| stage.value() == stage.original, "the guard to put the setting back");
    let preview = text(&stage.run(&["rollback", "-n"]).stdout);
    assert!(preview.contains("data files would be removed"), "{preview}");
    let done = text(&stage.run(&["rollback"]).stdout);
    assert!(done.contains("data files removed"), "{done}");
    stage.assert_as_before();
    let state = stage.dir.path().join("state");
    let names = fs::read_dir(state).unwrap().flatten().map(|entry| entry.file_name());
    let locks: Vec<_> = names.filter(|name| name.to_string_lossy().contains(".run-")).collect();
    assert!(locks.is_empty(), "the lock of the killed run stays behind: {locks:?}");
}

#[test]
fn host_what_is_wrong_elsewhere_does_not_keep_settings_from_being_undone() {
    let test = "host_what_is_wrong_elsewhere_does_not_keep_settings_from_being_undone";
    let Some(stage) = Stage::set(test) else { return };
    assert!(stage.apply(&["read_ahead=64K"]).status.success());
    let state = stage.dir.path().join("state");
    fs::write(state.join("runs.sqlite"), "not a record").unwrap();
    fs::write(state.join("open-files"), "not a directory").unwrap();
    fs::create_dir_all(state.join("persisted")).unwrap();
    fs::write(state.join("persisted/x.json"), "garbage").unwrap();
    let output = stage.run(&["rollback", "all"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("restored"), "what was undone is reported: {output:?}");
    let errors = text(&output.stderr).lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(errors, 3, "{}", text(&output.stderr));
    stage.assert_as_before();
    assert!(stage.journals().is_empty());
}

#[test]
fn host_a_study_whose_terminal_goes_puts_everything_back() {
    let test = "host_a_study_whose_terminal_goes_puts_everything_back";
    let Some(stage) = Stage::set(test) else { return };
    for hangup in [":", ""] {
        let words = format!(
            "sweep --fresh --vary read_ahead=36K,68K --workload seq-1 --repeats 2 --size 256M \
             --duration 60s {}",
            stage.mount.display()
        );
        let state = stage.dir.path();
        let Some(mut session) = Session::of(test, state, &words, hangup) else { return };
        stage.wait(|| stage.value() != stage.original, "the sweep to change the setting");
        assert_eq!(session.hang_up(), 129, "SIGHUP {hangup:?}");
        stage.assert_as_before();
    }
}
