//! A host as a tree of `/sys`, `/proc`, `/etc` and `/run`, as `--root` reads it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A disk of a [`HostTree`], with the file system on it.
#[derive(Clone, Debug)]
pub struct TreeDisk<'a> {
    /// The number in its name: `nvme0n1`, `nvme1n1`, …
    pub index: u32,
    pub read_ahead_kib: u64,
    /// The mount point, as in mountinfo: a blank is `\040`.
    pub mount: &'a str,
    pub wwn: &'a str,
}

/// A host under construction.
#[derive(Debug)]
pub struct HostTree {
    path: PathBuf,
    mounts: String,
}

impl HostTree {
    /// Creates a host without storage in the directory `path`.
    pub fn new(path: &Path, name: &str, machine_id: &str) -> io::Result<Self> {
        let tree = Self { path: path.to_owned(), mounts: String::new() };
        tree.file("proc/sys/kernel/osrelease", "6.12.0\n")?;
        tree.file("proc/sys/kernel/hostname", &format!("{name}\n"))?;
        tree.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n")?;
        tree.file("proc/self/mountinfo", "")?;
        tree.file("etc/machine-id", &format!("{machine_id}\n"))?;
        fs::create_dir_all(tree.path.join("sys/class/bdi"))?;
        Ok(tree)
    }

    /// Opens an existing host, to change its read-ahead.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), mounts: String::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the tree.
    pub fn file(&self, path: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(path);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, text)
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let path = self.path.join(path);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        symlink(target, path)
    }

    /// Adds an NVMe disk with an XFS file system.
    pub fn disk(&mut self, disk: &TreeDisk<'_>) -> io::Result<()> {
        let (name, number) = (format!("nvme{}n1", disk.index), format!("259:{}", disk.index));
        let directory = format!("sys/devices/virtual/block/{name}");
        let kib = disk.read_ahead_kib;
        for (file, text) in [
            ("dev", format!("{number}\n")),
            ("size", "2097152\n".to_owned()),
            ("removable", "0\n".to_owned()),
            ("wwid", format!("{}\n", disk.wwn)),
            ("queue/read_ahead_kb", format!("{kib}\n")),
            ("queue/optimal_io_size", "0\n".to_owned()),
            ("queue/max_sectors_kb", "1280\n".to_owned()),
            ("queue/max_hw_sectors_kb", "32767\n".to_owned()),
            ("queue/rotational", "0\n".to_owned()),
            ("queue/nr_requests", "256\n".to_owned()),
            ("queue/scheduler", "[none] mq-deadline\n".to_owned()),
        ] {
            self.file(&format!("{directory}/{file}"), &text)?;
        }
        fs::create_dir_all(self.path.join(format!("{directory}/slaves")))?;
        self.link(&format!("{directory}/bdi"), &format!("../../bdi/{number}"))?;
        for class in [format!("sys/dev/block/{number}"), format!("sys/class/block/{name}")] {
            self.link(&class, &format!("../../devices/virtual/block/{name}"))?;
        }
        self.file(&format!("sys/devices/virtual/bdi/{number}/read_ahead_kb"), &format!("{kib}\n"))?;
        self.link(
            &format!("sys/class/bdi/{number}"),
            &format!("../../devices/virtual/bdi/{number}"),
        )?;
        self.file(&format!("run/udev/data/b{number}"), &format!("E:ID_WWN={}\n", disk.wwn))?;
        let mount = disk.mount;
        let id = self.mounts.lines().count() + 20;
        self.mounts += &format!("{id} 1 {number} / {mount} rw,relatime - xfs /dev/{name} rw\n");
        self.file("proc/self/mountinfo", &self.mounts)
    }

    /// Changes the read-ahead of a disk.
    pub fn set_read_ahead(&self, index: u32, kib: u64) -> io::Result<()> {
        let text = format!("{kib}\n");
        self.file(&format!("sys/devices/virtual/bdi/259:{index}/read_ahead_kb"), &text)?;
        self.file(&format!("sys/devices/virtual/block/nvme{index}n1/queue/read_ahead_kb"), &text)
    }
}
