//! Programs of other people that foreread can use.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A program of other people.
#[derive(Debug, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub used_for: &'static str,
    /// Where it is; `None` if it is not installed.
    pub path: Option<PathBuf>,
}

const TOOLS: [(&str, &str); 14] = [
    ("fio", "workloads fio:FILE"),
    ("bonnie++", "the workload bonnie++"),
    ("strace", "traces without tracepoints"),
    ("psql", "pg"),
    ("pgbench", "pg"),
    ("initdb", "pg"),
    ("mkfs.ext4", "virtual disks with fs=ext4"),
    ("mkfs.xfs", "virtual disks with fs=xfs"),
    ("mkfs.btrfs", "virtual disks with fs=btrfs"),
    ("udevadm", "persist by udev rules"),
    ("systemctl", "persist by units"),
    ("sysctl", "persist by sysctl.d"),
    ("lvchange", "persist by LVM"),
    ("tuned-adm", "persist by TuneD"),
];

/// All of them, with where they are.
pub fn all() -> Vec<Tool> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Administrators' programs are not on everybody's path, and Debian keeps a server's by version.
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    let find = |name: &str| folders.iter().map(|dir| dir.join(name)).find(|path| runs(path));
    TOOLS.iter().map(|&(name, used_for)| Tool { name, used_for, path: find(name) }).collect()
}

fn runs(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}
