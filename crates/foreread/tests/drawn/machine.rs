//! State of the machine that must not change: mounts, loop devices, settings, processes, files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

use super::names;
use super::sandbox::{outside, stand_ins};
use super::scene::Stage;

/// How long guards and servers may take to detect that they are no longer needed.
const GRACE: Duration = Duration::from_secs(60);

type Files = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

#[derive(Debug)]
pub struct Machine {
    mounts: BTreeSet<String>,
    loops: BTreeSet<String>,
    connections: BTreeSet<String>,
    settings: BTreeMap<PathBuf, String>,
    processes: BTreeMap<i32, String>,
    files: Files,
}

impl Machine {
    pub fn look(stage: &Stage) -> Self {
        let owns = stage.device.is_some();
        // Other programs also have loop devices and FUSE connections, and other tests have virtual
        // disks that are removed meanwhile. In the host tier, no other test runs.
        let own = stage.scratch.display().to_string();
        let counts = |mount: &String| owns || !mount.contains("/vdisk/") || mount.contains(&own);
        Self {
            mounts: mounts().into_iter().filter(counts).collect(),
            loops: if owns { loops() } else { BTreeSet::new() },
            connections: if owns { connections() } else { BTreeSet::new() },
            settings: settings(stage.device.as_deref()),
            processes: processes(),
            files: files(stage),
        }
    }

    /// Returns the differences that remain after a grace period.
    pub fn left(&self, stage: &Stage) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let left = self.differences(&Self::look(stage));
            if left.is_empty() || begun.elapsed() > GRACE {
                return left;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn differences(&self, now: &Self) -> Vec<String> {
        let mut left = Vec::new();
        for (kind, before, after) in [
            ("mount", &self.mounts, &now.mounts),
            ("loop device", &self.loops, &now.loops),
            ("FUSE connection", &self.connections, &now.connections),
        ] {
            left.extend(after.difference(before).map(|one| format!("leftover {kind}: {one}")));
            left.extend(before.difference(after).map(|one| format!("lost {kind}: {one}")));
        }
        for (path, before) in &self.settings {
            if let Some(after) = now.settings.get(path).filter(|after| *after != before) {
                left.push(format!("changed setting: {}: {before} to {after}", path.display()));
            }
        }
        let new = now.processes.iter().filter(|(pid, _)| !self.processes.contains_key(pid));
        left.extend(new.map(|(pid, name)| format!("leftover process: {pid} {name}")));
        for path in self.files.keys().chain(now.files.keys()).collect::<BTreeSet<_>>() {
            if self.files.get(path) != now.files.get(path) {
                left.push(format!("changed file: {}", path.display()));
            }
        }
        left
    }

    /// Kills new processes and removes new files, so that the next command is not blamed for them.
    pub fn clear(&self, stage: &Stage) {
        let now = Self::look(stage);
        for pid in now.processes.keys().filter(|pid| !self.processes.contains_key(pid)) {
            let _ = Pid::from_raw(*pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        for path in now.files.keys().filter(|path| !self.files.contains_key(*path)) {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
        }
    }
}

fn mounts() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    // The image of the guest may be built meanwhile.
    let lines = table.lines().filter(|line| !line.contains("/target/guest/"));
    // Without the IDs, which a remount changes.
    lines.filter_map(|line| Some(line.splitn(4, ' ').nth(3)?.to_owned())).collect()
}

fn loops() -> BTreeSet<String> {
    let all = names(Path::new("/sys/block")).into_iter();
    all.filter(|name| Path::new("/sys/block").join(name).join("loop").is_dir()).collect()
}

fn connections() -> BTreeSet<String> {
    names(Path::new("/sys/fs/fuse/connections")).into_iter().collect()
}

/// Reads all device settings that foreread may change; of loop devices, only the test's own.
fn settings(device: Option<&str>) -> BTreeMap<PathBuf, String> {
    let mut dirs = vec![PathBuf::from("/proc/sys/vm")];
    for name in names(Path::new("/sys/block")) {
        let block = Path::new("/sys/block").join(&name);
        let Ok(number) = fs::read_to_string(block.join("dev")) else { continue };
        if !name.starts_with("loop") || Some(name.as_str()) == device {
            dirs.push(block.join("queue"));
            dirs.push(Path::new("/sys/class/bdi").join(number.trim()));
        }
    }
    // The kernel computes these from the memory that is free at the moment.
    let computed = |path: &Path| {
        path.file_name().is_some_and(|name| {
            name.to_string_lossy().ends_with("_bytes") && path.starts_with("/sys/class/bdi")
        })
    };
    let files = dirs.iter().flat_map(|dir| names(dir).into_iter().map(|name| dir.join(name)));
    let files = files.filter(|path| !computed(path));
    files.filter_map(|path| Some((path.clone(), fs::read_to_string(&path).ok()?))).collect()
}

fn processes() -> BTreeMap<i32, String> {
    let pids = names(Path::new("/proc")).into_iter().filter_map(|name| name.parse().ok());
    let living = pids.filter_map(|pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (!matches!(state, 'Z' | 'X')).then(|| (pid, words.replace('\0', " ")))
    });
    living.collect()
}

/// Lists all files in the directories that stand in for those of the machine, and on the disk.
fn files(stage: &Stage) -> Files {
    let mut files = Files::new();
    for path in stand_ins() {
        collect(&outside(&stage.scratch, path), &mut files);
    }
    // Also an empty directory is a leftover there.
    let disk = stage.scratch.join("disk");
    files.extend(names(&disk).into_iter().map(|name| (disk.join(name), (0, None))));
    collect(&disk, &mut files);
    files
}

fn collect(dir: &Path, files: &mut Files) {
    for name in names(dir) {
        let path = dir.join(name);
        let Ok(status) = path.symlink_metadata() else { continue };
        if status.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path, (status.len(), status.modified().ok()));
        }
    }
}
