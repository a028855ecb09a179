//! External programs that foreread can use.

use std::path::PathBuf;

use serde::Serialize;
use sys::program::find_also_in;

#[derive(Debug, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub used_for: &'static str,
    /// Path of the program; `None` if it is not installed.
    pub path: Option<PathBuf>,
}

const TOOLS: [(&str, &str); 14] = [
    ("fio", "workloads fio:FILE"),
    ("bonnie++", "the workload bonnie++"),
    ("strace", "traces without tracepoints"),
    ("psql", "experiment postgres"),
    ("pgbench", "experiment postgres"),
    ("initdb", "experiment postgres"),
    ("mkfs.ext4", "virtual disks with fs=ext4"),
    ("mkfs.xfs", "virtual disks with fs=xfs"),
    ("mkfs.btrfs", "virtual disks with fs=btrfs"),
    ("udevadm", "persist by udev rules"),
    ("systemctl", "persist by units"),
    ("sysctl", "persist by sysctl.d"),
    ("lvchange", "persist by LVM"),
    ("tuned-adm", "persist by TuneD"),
];

pub fn all() -> Vec<Tool> {
    // Debian has one directory per server version.
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let servers: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    let find = |name: &str| find_also_in(name, &[]).or_else(|| find_also_in(name, &servers));
    TOOLS.iter().map(|&(name, used_for)| Tool { name, used_for, path: find(name) }).collect()
}
