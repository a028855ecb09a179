//! A disk for the host tests: a file system on a loop device over a sparse file.

use std::path::{Path, PathBuf};
use std::process::Command;

use foreread_bench::{Cancel, Dataset, LayOutOptions, Sample, TrialOptions, run_trial};
use host::{Root, Storage};
use sys::lock::Lock;
use testkit::HOST_LOCK;
use testkit::file_device::FileDevice;
use units::{Bytes, Nanos};
use workload::Workload;

/// A mounted file system, removed when this value is dropped.
pub struct Disk {
    device: FileDevice,
    mounted: bool,
    dir: tempfile::TempDir,
    _lock: Lock,
}

/// Runs a command; returns its output, or why it failed.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Creates a disk for the test `name`; returns `None` after printing why the test is skipped.
pub fn disk(name: &str, filesystem: &str, size_mib: u64) -> Option<Disk> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP {name}: not root");
        return None;
    }
    match Disk::make(filesystem, size_mib) {
        Ok(disk) => Some(disk),
        Err(why) => {
            println!("SKIP {name}: {why}");
            None
        }
    }
}

impl Disk {
    fn make(filesystem: &str, size_mib: u64) -> Result<Self, String> {
        let lock =
            Lock::acquire(Path::new(HOST_LOCK)).map_err(|error| format!("{HOST_LOCK}: {error}"))?;
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = dir.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(size_mib << 20).map_err(|error| error.to_string())?;
        let device = FileDevice::attach(&image)?;
        let mut disk = Self { device, mounted: false, dir, _lock: lock };
        if filesystem != "none" {
            let device = disk.device.path().to_str().ok_or("no path")?.to_owned();
            let make = format!("mkfs.{filesystem}");
            match filesystem {
                // Avoids background work on a fresh file system.
                "ext4" => {
                    let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                    run(&make, &["-q", "-E", lazy, &device])?;
                }
                _ => {
                    run(&make, &["-q", &device])?;
                }
            }
            let point = disk.mount_point();
            std::fs::create_dir(&point).map_err(|error| error.to_string())?;
            run("mount", &[&device, point.to_str().ok_or("no path")?])?;
            disk.mounted = true;
        }
        Ok(disk)
    }

    pub fn mount_point(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// Returns the file that backs the loop device.
    pub fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    pub fn remount(&self, option: &str) {
        let point = self.mount_point();
        run("mount", &["-o", &format!("remount,{option}"), point.to_str().unwrap()]).unwrap();
    }

    /// Sets the window of files that are opened from now on.
    pub fn set_read_ahead(&self, kib: u64) {
        std::fs::write(self.device.queue("read_ahead_kb"), kib.to_string()).unwrap();
    }

    pub fn max_request_kib(&self) -> u64 {
        let text = std::fs::read_to_string(self.device.queue("max_sectors_kb")).unwrap();
        text.trim().parse().unwrap()
    }

    pub fn storage(&self) -> Storage {
        let path = if self.mounted { self.mount_point() } else { self.device().to_owned() };
        host::resolve(&Root::system(), &path).unwrap()
    }

    pub fn lay_out(&self, workloads: &[Workload], file_size: Bytes) -> Dataset {
        let options = LayOutOptions { file_size, seed: 3, cancel: Cancel::new() };
        Dataset::lay_out(&self.mount_point(), workloads, &options, &mut |_| {}).unwrap()
    }

    pub fn trial(&self, dataset: &Dataset, workload: &Workload, options: &TrialOptions) -> Sample {
        run_trial(&Root::system(), &self.storage(), dataset, workload, options).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A thread that was left behind may keep a file open for a moment.
        for _ in 0..50 {
            let point = self.mount_point();
            if !self.mounted || run("umount", &[point.to_str().unwrap_or_default()]).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// Returns options of a trial that is over when its data is exhausted.
pub fn whole() -> TrialOptions {
    TrialOptions { duration: Nanos::from_secs(120), seed: 11, ..TrialOptions::default() }
}

/// Returns options of a trial of this many milliseconds.
pub fn millis(duration: u64) -> TrialOptions {
    TrialOptions { duration: Nanos::from_millis(duration), seed: 11, ..TrialOptions::default() }
}
