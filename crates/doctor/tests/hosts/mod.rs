//! Builds machines as trees of `/sys`, `/proc`, `/etc` and `/run` in temporary directories.
#![allow(dead_code)] // each test file uses only a part of it

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use foreread_doctor::{Diagnosis, HostSnapshot, Windows, diagnose};
use host::{Dirs, Root, resolve};
use tempfile::TempDir;

/// The limits of a block device's queue, as in sysfs.
#[derive(Clone, Copy)]
pub struct Queue {
    pub read_ahead_kb: u64,
    pub optimal_io_size: u64,
    pub max_sectors_kb: u64,
    pub max_hw_sectors_kb: u64,
    pub rotational: u64,
}

/// A flash disk with the kernel's defaults.
pub const FLASH: Queue = Queue {
    read_ahead_kb: 128,
    optimal_io_size: 0,
    max_sectors_kb: 1280,
    max_hw_sectors_kb: 32767,
    rotational: 0,
};

/// A disk that is or claims to be rotational, with the defaults of Linux 6.17 and later.
pub const TURNING: Queue = Queue { read_ahead_kb: 2560, rotational: 1, ..FLASH };

/// A machine under construction.
pub struct Machine {
    dir: TempDir,
    mounts: String,
}

impl Machine {
    /// Creates a machine with this kernel release and no devices.
    pub fn new(kernel: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Self { dir, mounts: String::new() };
        machine.file("proc/sys/kernel/osrelease", &format!("{kernel}\n"));
        machine.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n");
        machine.file("proc/self/mountinfo", "");
        machine.mkdir("sys/class/bdi");
        machine
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds a file, as a step of the builder.
    pub fn with(self, path: &str, text: &str) -> Self {
        self.file(path, text);
        self
    }

    pub fn executable(self, path: &str, text: &str) -> Self {
        self.file(path, text);
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub fn mkdir(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
        self
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub fn memory_available(self, kib: u64) -> Self {
        self.file("proc/meminfo", &format!("MemAvailable: {kib} kB\n"));
        self
    }

    pub fn pages_of_64_kib(self) -> Self {
        self.with("proc/self/smaps", "KernelPageSize:       64 kB\n")
    }

    /// Adds a bdi.
    pub fn bdi(self, name: &str, kib: u64) -> Self {
        self.file(&format!("sys/devices/virtual/bdi/{name}/read_ahead_kb"), &format!("{kib}\n"));
        self.link(&format!("sys/class/bdi/{name}"), &format!("../../devices/virtual/bdi/{name}"));
        self
    }

    /// Adds a whole block device.
    pub fn device(self, name: &str, number: &str, queue: Queue) -> Self {
        let dir = format!("sys/devices/virtual/block/{name}");
        self.file(&format!("{dir}/dev"), &format!("{number}\n"));
        self.file(&format!("{dir}/size"), "2097152\n");
        self.file(&format!("{dir}/removable"), "0\n");
        for (file, value) in [
            ("read_ahead_kb", queue.read_ahead_kb),
            ("optimal_io_size", queue.optimal_io_size),
            ("max_sectors_kb", queue.max_sectors_kb),
            ("max_hw_sectors_kb", queue.max_hw_sectors_kb),
            ("rotational", queue.rotational),
            ("nr_requests", 256),
        ] {
            self.file(&format!("{dir}/queue/{file}"), &format!("{value}\n"));
        }
        self.file(&format!("{dir}/queue/scheduler"), "none [mq-deadline]\n");
        self.mkdir(&format!("{dir}/slaves"));
        self.link(&format!("{dir}/bdi"), &format!("../../bdi/{number}"));
        self.named(name, number, name);
        self.bdi(number, queue.read_ahead_kb)
    }

    pub fn partition(self, disk: &str, name: &str, number: &str) -> Self {
        let dir = format!("sys/devices/virtual/block/{disk}/{name}");
        self.file(&format!("{dir}/dev"), &format!("{number}\n"));
        self.file(&format!("{dir}/partition"), "1\n");
        self.file(&format!("{dir}/size"), "1048576\n");
        self.named(name, number, &format!("{disk}/{name}"));
        self
    }

    fn named(&self, name: &str, number: &str, path: &str) {
        let target = format!("../../devices/virtual/block/{path}");
        self.link(&format!("sys/dev/block/{number}"), &target);
        self.link(&format!("sys/class/block/{name}"), &target);
    }

    pub fn dm(self, name: &str, number: &str, label: &str, uuid: &str, queue: Queue) -> Self {
        let machine = self.device(name, number, queue);
        let dir = format!("sys/devices/virtual/block/{name}");
        machine.file(&format!("{dir}/dm/name"), label);
        machine.file(&format!("{dir}/dm/uuid"), uuid);
        machine
    }

    pub fn md(self, name: &str, number: &str, level: &str, disks: u64, queue: Queue) -> Self {
        let machine = self.device(name, number, queue);
        let dir = format!("sys/devices/virtual/block/{name}/md");
        machine.file(&format!("{dir}/level"), level);
        machine.file(&format!("{dir}/raid_disks"), &disks.to_string());
        machine.file(&format!("{dir}/chunk_size"), "524288");
        machine.file(&format!("{dir}/degraded"), "0");
        machine
    }

    pub fn loop_device(self, name: &str, number: &str, file: Option<&str>, queue: Queue) -> Self {
        let machine = self.device(name, number, queue);
        let dir = format!("sys/devices/virtual/block/{name}");
        match file {
            Some(file) => machine.with(&format!("{dir}/loop/backing_file"), file),
            None => machine.with(&format!("{dir}/size"), "0\n"),
        }
    }

    /// Makes a device (`sda` or `sda/sda1`) a member of another.
    pub fn member(self, of: &str, path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap();
        self.link(
            &format!("sys/devices/virtual/block/{of}/slaves/{name}"),
            &format!("../../{path}"),
        );
        self
    }

    pub fn mount(self, number: &str, point: &str, fstype: &str, source: &str) -> Self {
        self.mount_with(number, point, fstype, source, "rw")
    }

    pub fn mount_with(
        mut self,
        number: &str,
        point: &str,
        fstype: &str,
        source: &str,
        options: &str,
    ) -> Self {
        let id = self.mounts.lines().count() + 20;
        self.mounts +=
            &format!("{id} 1 {number} / {point} rw,relatime - {fstype} {source} {options}\n");
        self.file("proc/self/mountinfo", &self.mounts);
        self
    }

    pub fn btrfs(self, uuid: &str, bdi: &str, kib: u64, members: &[&str]) -> Self {
        let dir = format!("sys/fs/btrfs/{uuid}");
        for path in members {
            let name = path.rsplit('/').next().unwrap();
            let target = format!("../../../../devices/virtual/block/{path}");
            self.link(&format!("{dir}/devices/{name}"), &target);
        }
        self.link(&format!("{dir}/bdi"), &format!("../../../devices/virtual/bdi/{bdi}"));
        self.bdi(bdi, kib)
    }

    /// Adds a process; `maps` is its memory map and may be empty.
    pub fn process(self, pid: u32, name: &str, maps: &str) -> Self {
        self.file(&format!("proc/{pid}/comm"), name);
        self.file(&format!("proc/{pid}/cmdline"), &format!("/usr/bin/{name}\0--x\0"));
        self.file(&format!("proc/{pid}/maps"), maps);
        self
    }

    /// Adds a running TuneD with a profile of this text.
    pub fn tuned(self, profile: &str, text: &str) -> Self {
        self.file("etc/tuned/active_profile", &format!("{profile}\n"));
        self.file(&format!("usr/lib/tuned/profiles/{profile}/tuned.conf"), text);
        self.file("run/tuned/tuned.pid", "77\n");
        self.file("proc/77/stat", "77 (tuned)\n");
        self
    }

    pub fn root(&self) -> Root {
        Root::at(self.dir.path())
    }

    pub fn dirs(&self) -> Dirs {
        Dirs::under(self.dir.path().join("own"))
    }

    pub fn snapshot(&self, windows: Windows) -> HostSnapshot {
        HostSnapshot::look(&self.root(), &self.dirs(), None, windows).unwrap()
    }

    /// Returns the diagnosis of the storage that `path` is mounted on or names.
    pub fn diagnosis_with(&self, path: &str, windows: Windows) -> Diagnosis {
        let storage = resolve(&self.root(), Path::new(path)).unwrap();
        let snapshot = self.snapshot(windows);
        diagnose(&snapshot).into_iter().find(|found| found.subject.bdi == storage.bdi).unwrap()
    }

    pub fn diagnosis(&self, path: &str) -> Diagnosis {
        self.diagnosis_with(path, Windows::not_asked())
    }
}
