//! Runs trials with little memory: a control group limits the page cache.
//!
//! The kernel charges the page cache to the control group of the reading process
//! (`Documentation/admin-guide/cgroup-v2.rst`, "Memory Ownership"). This process therefore moves
//! into its own group with a limit during a trial, in either version of control groups.
//!
//! If no memory can be reclaimed because all of it is being read, the kernel would kill the only
//! process in the group, this one. Version 1 can disable that (`memory.oom_control`); version 2
//! spares processes with the lowest score (`mm/oom_kill.c`). The call then fails with ENOMEM:
//! readers retry, and nothing else in this process makes system calls meanwhile.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use host::cgroup::CgroupHierarchy;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::BenchError;

/// Minimum memory limit: below it, memory other than the page cache would dominate.
pub const MEMORY_LEAST: Bytes = Bytes::from_mib(8);
/// Prefix of the names of foreread's groups; the process id and a number follow.
pub(crate) const NAME: &str = "foreread-memory-";
/// The OOM killer spares a process with this score.
const SPARED: &str = "-1000";
const SCORE: &str = "/proc/self/oom_score_adj";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The counters of a trial's control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryAccount {
    /// Limit for the page cache and all other memory of the process.
    pub limit: Bytes,
    /// File data that was read again after its eviction.
    pub refaulted: Bytes,
    pub limit_met: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }
}

/// The mount of the memory controller's hierarchy, and the group of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    mount: PathBuf,
    home: PathBuf,
}

/// A memory limit on this process, in force while this value exists.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    group: Group,
    /// Process list of the previous group, opened in advance because opening it needs memory.
    way_back: Option<File>,
    score: Option<String>,
    limit: Bytes,
}

/// Checks whether memory can be limited to this size on this system, before any file is created.
pub fn check_memory_limit(limit: Bytes) -> Result<(), BenchError> {
    MemoryLimit::enter(limit).map(drop)
}

impl MemoryLimit {
    /// Moves this process into a new group with this limit.
    pub(crate) fn enter(limit: Bytes) -> Result<Self, BenchError> {
        if limit < MEMORY_LEAST {
            return Err(BenchError::BadOption {
                option: "memory limit",
                value: limit.to_string(),
                wanted: "at least 8 MiB: the process itself needs memory, too",
            });
        }
        let read = |path: &str| fs::read_to_string(path).map_err(BenchError::io("read", path));
        let mounts = read("/proc/self/mounts")?;
        let hierarchy = Hierarchy::find(&mounts, &read("/proc/self/cgroup")?)?;
        let group = Group::make(&hierarchy, limit)?;
        // Last, because other processes can see it; from here on, dropping undoes all steps.
        let score = fs::read_to_string(SCORE).ok().map(|score| score.trim().to_owned());
        let score = fs::write(SCORE, SPARED).is_ok().then_some(score).flatten();
        let procs = hierarchy.home.join("cgroup.procs");
        let way_back = File::options().write(true).open(&procs);
        let way_back = Some(way_back.map_err(|error| refused(&procs, &error))?);
        let entered = Self { group, way_back, score, limit };
        entered.group.take_in().map_err(|error| refused(&entered.group.path, &error))?;
        Ok(entered)
    }

    /// Leaves the group and returns its counters.
    pub(crate) fn leave(mut self) -> MemoryAccount {
        self.go_back();
        let (refaulted, limit_met) = self.group.counts();
        MemoryAccount { limit: self.limit, refaulted, limit_met }
    }

    fn go_back(&mut self) {
        let Some(mut way_back) = self.way_back.take() else { return };
        // Without memory, even this may fail until a read in flight has completed.
        for _ in 0..1000 {
            match way_back.write_all(b"0") {
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return tracing::warn!(%error, "this process stays in a group"),
                Ok(()) => return,
            }
        }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        self.go_back();
        if let Some(score) = &self.score {
            let _ = fs::write(SCORE, score);
        }
    }
}

impl Hierarchy {
    /// Finds the hierarchy with the memory controller.
    fn find(mounts: &str, own: &str) -> Result<Self, BenchError> {
        let find = |kind: CgroupHierarchy, version| {
            let mount = kind.parse_mount(mounts)?;
            let home = inside(&mount, kind.parse_group(own)?);
            Some(Self { version, home, mount })
        };
        let hierarchy = find(CgroupHierarchy::MemoryV1, Version::One)
            .or_else(|| find(CgroupHierarchy::Unified, Version::Two));
        let hierarchy = hierarchy.ok_or_else(|| {
            lacking("no hierarchy of control groups with the memory controller is mounted")
        })?;
        hierarchy.check()?;
        Ok(hierarchy)
    }

    /// Checks that the mount delegates the memory controller; version 2 requires that.
    fn check(&self) -> Result<(), BenchError> {
        let has = |file: &str| {
            let words = fs::read_to_string(self.mount.join(file)).unwrap_or_default();
            words.split_ascii_whitespace().any(|word| word == "memory")
        };
        if self.version == Version::One || has("cgroup.subtree_control") {
            return Ok(());
        }
        let mount = self.mount.display();
        Err(lacking(&match has("cgroup.controllers") {
            true => format!(
                "the memory controller is not delegated below {mount}: echo +memory > \
                 {mount}/cgroup.subtree_control"
            ),
            false => format!("this kernel has no memory controller in {mount}"),
        }))
    }

    /// Returns the parent of new groups. In version 1 it is the group of this process, so that its
    /// limits still apply. In version 2, only the root may have both processes and children.
    fn parent(&self) -> &Path {
        match self.version {
            Version::One => &self.home,
            Version::Two => &self.mount,
        }
    }
}

/// Returns the directory of a group; the root of the mount if a namespace hides the group.
fn inside(mount: &Path, path: &str) -> PathBuf {
    let whole = mount.join(path.trim_start_matches('/'));
    if whole.is_dir() { whole } else { mount.to_owned() }
}

/// A control group that this process created; removed when dropped.
#[derive(Debug)]
struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    fn make(hierarchy: &Hierarchy, limit: Bytes) -> Result<Self, BenchError> {
        let parent = hierarchy.parent();
        remove_left(parent);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{NAME}{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|error| refused(&path, &error))?;
        let group = Self { version: hierarchy.version, path };
        let file = group.path.join(group.version.limit_file());
        fs::write(&file, limit.get().to_string()).map_err(|error| refused(&file, &error))?;
        if group.version == Version::One {
            // Without this file, the kernel kills the process and the guard restores all settings.
            let _ = fs::write(group.path.join("memory.oom_control"), "1");
        }
        Ok(group)
    }

    fn take_in(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Returns the amount of refaulted file data, and how often the limit was reached.
    fn counts(&self) -> (Bytes, u64) {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).unwrap_or_default();
        let field = |text: &str, key: &str| -> Option<u64> {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
        };
        let pages = field(&read("memory.stat"), "workingset_refault_file").unwrap_or(0);
        let refaulted = Bytes::new(pages.saturating_mul(sys::page_size().bytes().get()));
        let met = match self.version {
            Version::One => read("memory.failcnt").trim().parse().ok(),
            Version::Two => field(&read("memory.events"), "max"),
        };
        (refaulted, met.unwrap_or(0))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove_group(&self.path);
    }
}

/// Removes a control group. Processes, even killed ones, take some time to leave it.
pub(crate) fn remove_group(path: &Path) {
    for _ in 0..100 {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => return,
        }
    }
}

/// Removes groups of processes that have exited: a killed process leaves an empty group behind.
fn remove_left(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split('-').next());
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            // This fails if the group is not empty.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn lacking(problem: &str) -> BenchError {
    BenchError::NoMemoryLimit { problem: problem.to_owned() }
}

fn refused(path: &Path, error: &io::Error) -> BenchError {
    let path = path.display();
    lacking(&match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("creating {path} needs root, or a group that is delegated to you")
        }
        _ => format!("{path}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_hierarchy_with_the_memory_controller_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display();
        let (one, two) = (dir.path().join("memory"), dir.path().join("unified"));
        fs::create_dir_all(one.join("a/b")).unwrap();
        fs::create_dir_all(&two).unwrap();
        let mounts = format!(
            "proc /proc proc rw 0 0\ncgroup {root}/cpu cgroup rw,cpu 0 0\n\
             cgroup {root}/memory cgroup rw,memory 0 0\ncgroup2 {root}/unified cgroup2 rw 0 0\n"
        );
        let found = Hierarchy::find(&mounts, "4:memory:/a/b\n0::/\n").unwrap();
        assert_eq!((found.version, &found.home), (Version::One, &one.join("a/b")));
        assert_eq!(found.parent(), one.join("a/b"));
        // A path that a namespace hides.
        let found = Hierarchy::find(&mounts, "4:memory:/../hidden\n0::/\n").unwrap();
        assert_eq!(found.home, one);

        let only_two = format!("cgroup2 {root}/unified cgroup2 rw 0 0\n");
        let message = |own: &str| Hierarchy::find(&only_two, own).unwrap_err().to_string();
        write(&two.join("cgroup.controllers"), "cpu io\n");
        assert!(message("0::/x\n").contains("has no memory controller"), "{}", message("0::/x\n"));
        write(&two.join("cgroup.controllers"), "cpu io memory\n");
        write(&two.join("cgroup.subtree_control"), "cpu\n");
        assert!(message("0::/x\n").contains("echo +memory >"), "{}", message("0::/x\n"));
        write(&two.join("cgroup.subtree_control"), "cpu memory\n");
        let found = Hierarchy::find(&only_two, "0::/x\n").unwrap();
        assert_eq!((found.version, found.parent()), (Version::Two, two.as_path()));
        let none = Hierarchy::find("proc /proc proc rw 0 0\n", "").unwrap_err();
        assert!(none.to_string().contains("no hierarchy"), "{none}");
    }

    #[test]
    fn counts_of_both_versions_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| write(&dir.path().join(name), text);
        write("memory.stat", "cache 1\nworkingset_refault_anon 5\nworkingset_refault_file 3\n");
        write("memory.failcnt", "7\n");
        write("memory.events", "low 0\nhigh 1\nmax 9\noom 0\n");
        let page = sys::page_size().bytes();
        for (version, met) in [(Version::One, 7), (Version::Two, 9)] {
            let group = Group { version, path: dir.path().to_owned() };
            assert_eq!(group.counts(), (page * 3, met));
            std::mem::forget(group);
        }
    }

    #[test]
    fn groups_of_the_dead_are_removed_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join(format!("{NAME}99999999999-0"));
        let alive = dir.path().join(format!("{NAME}{}-9", std::process::id()));
        let beyond = dir.path().join(format!("{NAME}4000000-0"));
        for path in [&dead, &alive, &beyond] {
            fs::create_dir(path).unwrap();
        }
        remove_left(dir.path());
        assert!(alive.exists() && dead.exists(), "a number that is no process says nothing");
        assert!(beyond.exists() == Path::new("/proc/4000000").exists());
    }

    #[test]
    fn too_little_is_refused() {
        let message = check_memory_limit(Bytes::from_mib(1)).unwrap_err().to_string();
        assert!(message.contains("at least 8 MiB"), "{message}");
    }
}
