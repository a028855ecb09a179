//! Tests whole studies on the real kernel: a filesystem on a loop device, and a virtual disk.
//!
//! The tests need root, and print `SKIP` if they cannot run.

#![allow(clippy::print_stdout)] // skipped tests are printed

mod agree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use foreread_study::{Run, RunStatus, Store, Trial};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use sys::lock::Lock;
use tempfile::TempDir;
use testkit::HOST_LOCK;
use testkit::file_device::FileDevice;
use units::Kib;

/// Maximum time for a guard or a server to clean up on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Returns the lock and a directory; prints the reason and returns `None` if the test cannot run.
fn stage(name: &str) -> Option<(Lock, TempDir)> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP {name}: not root");
        return None;
    }
    let lock = Lock::acquire(Path::new(HOST_LOCK)).expect("the lock of the host tier");
    Some((lock, tempfile::tempdir().expect("a directory")))
}

/// A 512 MiB ext4 filesystem on a loop device, which is removed on drop.
struct Disk {
    device: FileDevice,
    point: PathBuf,
}

impl Disk {
    fn make(dir: &Path) -> Result<Self, String> {
        let image = dir.join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(512 << 20).map_err(|error| error.to_string())?;
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, image.to_str().ok_or("no path")?])?;
        let device = FileDevice::attach(&image)?;
        let point = dir.join("mnt");
        let disk = Self { device, point };
        std::fs::create_dir(&disk.point).map_err(|error| error.to_string())?;
        let device = disk.device.path().to_str().ok_or("no path")?;
        run("mount", &[device, disk.point.to_str().ok_or("no path")?])?;
        Ok(disk)
    }

    fn read_ahead(&self) -> Kib {
        let text = std::fs::read_to_string(self.device.queue("read_ahead_kb"));
        Kib::new(text.expect("read-ahead").trim().parse().expect("a number"))
    }

    /// Returns the files, without those of the filesystem.
    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.point).expect("the mount point");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| !path.ends_with("lost+found")).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(point) = self.point.to_str() {
            let _ = run("umount", &[point]);
        }
    }
}

fn helper() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let debug = test.parent().and_then(Path::parent).expect("the target directory");
    debug.join("examples/small_study")
}

/// Returns the command for a small study of `target`: three settings, trials of 100 ms.
fn study(verb: &str, target: &str, base: &Path, repeats: &str) -> Command {
    let mut command = Command::new(helper());
    let words = ["4,128,1088", "seq-1", "100ms", repeats, "24M"];
    command.args([verb, target]).arg(base).args(words);
    command
}

fn store(base: &Path) -> Store {
    Store::open(&base.join("state/runs.sqlite")).expect("the store")
}

/// Returns the latest run; `None` before the first one.
fn latest(base: &Path) -> Option<Run> {
    let store = store(base);
    let run = store.runs().expect("runs").first()?.id;
    Some(store.load(run).expect("the run"))
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn success(command: &mut Command) {
    let output = command.output().expect("the helper");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stdout));
}

fn settings_of(run: &Run) -> Vec<u64> {
    let counts: BTreeMap<u64, usize> = run.trials.iter().fold(BTreeMap::new(), |mut counts, t| {
        *counts.entry(t.settings.read_ahead.get()).or_default() += 1;
        counts
    });
    counts.into_keys().collect()
}

#[test]
fn host_a_directory_is_swept_and_left_as_it_was() {
    let name = "host_a_directory_is_swept_and_left_as_it_was";
    let Some((_lock, dir)) = stage(name) else { return };
    let disk = match Disk::make(dir.path()) {
        Ok(disk) => disk,
        Err(why) => return println!("SKIP {name}: {why}"),
    };
    let found = disk.read_ahead();
    let base = dir.path().join("base");
    success(&mut study("sweep", disk.point.to_str().expect("a path"), &base, "2"));
    assert_eq!(disk.read_ahead(), found);
    assert_eq!(disk.files(), [] as [PathBuf; 0]);
    let run = latest(&base).expect("a run");
    assert_eq!((run.summary.status, run.found), (RunStatus::Complete, Some(found)));
    assert_eq!(settings_of(&run), [4, 128, 1088]);
    assert!(run.trials.iter().all(|trial| trial.figures.throughput_mib_s > 0.0));
    assert!(run.trials.iter().all(|trial| trial.figures.amplification.is_some()));
    assert_eq!(run.device_before["tunables"]["read_ahead_kib"], found.get());
    assert_eq!(run.device_after["tunables"]["read_ahead_kib"], found.get());
}

#[test]
fn host_a_virtual_disk_is_swept_and_tuned_and_gone() {
    let name = "host_a_virtual_disk_is_swept_and_tuned_and_gone";
    let Some((_lock, dir)) = stage(name) else { return };
    if let Err(why) = vdisk::availability(vdisk::Filesystem::Xfs) {
        return println!("SKIP {name}: {why}");
    }
    let base = dir.path().join("base");
    for verb in ["sweep", "tune"] {
        success(&mut study(verb, "virtual:hdd-2008,size=1G", &base, "2"));
        let run = latest(&base).expect("a run");
        assert_eq!(run.summary.status, RunStatus::Complete);
        assert_eq!(settings_of(&run), [4, 128, 1088], "{verb}");
        assert!(run.dilation >= 1.0);
        for trial in &run.trials {
            // The disk reads at most 107 MB/s, and bursts from its cache.
            let rate = trial.figures.throughput_mib_s;
            assert!((1.0..300.0).contains(&rate), "{verb}: {trial:?}");
        }
        let disks = vdisk::list(&host::Dirs::under(&base)).expect("a list");
        assert!(disks.is_empty(), "{disks:?}");
    }
}

/// Kills a study at a random moment, whether it has just started, resumed or completed its run.
fn kill_at(random: &mut Pcg64, command: &mut Command, longest: Duration) {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the helper");
    sleep(longest.mul_f64(random.random()));
    let _ = child.kill();
    child.wait().expect("its end");
}

/// Asserts that a killed study has lost no finished trial, nor their order.
fn assert_kept(before: &[Trial], after: &Run) {
    assert!(after.trials.len() >= before.len());
    assert_eq!(&after.trials[..before.len()], before);
}

#[test]
fn host_a_sweep_killed_at_any_moment_leaves_the_device_and_its_trials() {
    let name = "host_a_sweep_killed_at_any_moment_leaves_the_device_and_its_trials";
    let Some((_lock, dir)) = stage(name) else { return };
    let disk = match Disk::make(dir.path()) {
        Ok(disk) => disk,
        Err(why) => return println!("SKIP {name}: {why}"),
    };
    let kills = std::env::var("FOREREAD_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let found = disk.read_ahead();
    let base = dir.path().join("base");
    let target = disk.point.to_str().expect("a path");
    let mut random = Pcg64::seed_from_u64(2008);
    let (mut kept, mut run) = (Vec::new(), None);
    for kill in 0..kills {
        kill_at(&mut random, &mut study("sweep", target, &base, "6"), Duration::from_millis(700));
        until("the guard restores read-ahead", || disk.read_ahead() == found);
        let Some(now) = latest(&base) else { continue };
        if run == Some(now.summary.id) {
            assert_kept(&kept, &now);
        }
        println!("kill {kill}: run {}, {} trials", now.summary.id, now.trials.len());
        assert_ne!(now.summary.status, RunStatus::Failed, "{:?}", now.summary.error);
        run = Some(now.summary.id);
        kept = now.trials;
    }
    success(&mut study("sweep", target, &base, "6"));
    let last = latest(&base).expect("a run");
    if run == Some(last.summary.id) {
        assert_kept(&kept, &last);
    }
    assert_eq!(last.summary.status, RunStatus::Complete);
    assert_eq!((disk.read_ahead(), disk.files()), (found, Vec::new()));
}

#[test]
fn host_a_killed_sweep_leaves_no_virtual_disk() {
    let name = "host_a_killed_sweep_leaves_no_virtual_disk";
    let Some((_lock, dir)) = stage(name) else { return };
    if let Err(why) = vdisk::availability(vdisk::Filesystem::Xfs) {
        return println!("SKIP {name}: {why}");
    }
    let base = dir.path().join("base");
    let mut random = Pcg64::seed_from_u64(1);
    let target = "virtual:hdd-2008,size=1G";
    for _ in 0..3 {
        kill_at(&mut random, &mut study("sweep", target, &base, "2"), Duration::from_secs(3));
        let place = base.to_str().expect("a path").to_owned();
        let clean = || {
            let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
            let loops = run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]);
            !mounts.contains(&place) && !loops.expect("loop devices").contains(&place)
        };
        until("its mounts and loop device go", clean);
    }
    success(&mut study("sweep", target, &base, "2"));
    assert_eq!(latest(&base).expect("a run").summary.status, RunStatus::Complete);
}
