//! Control groups: the group of a process, and the page cache that its memory limits allow.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use units::Bytes;

use crate::Root;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupHierarchy {
    /// Version 2.
    Unified,
    /// The memory controller of version 1.
    MemoryV1,
}

/// Parses the lines of `/proc/PID/cgroup` into controllers (empty for version 2) and the path of
/// the process's group.
pub fn groups(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

impl CgroupHierarchy {
    /// Detects the hierarchy that limits memory, at its usual mount point.
    pub fn of_memory(root: &Root) -> Self {
        let old = root.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        if old { Self::MemoryV1 } else { Self::Unified }
    }

    fn usual_mount(self) -> &'static str {
        match self {
            Self::Unified => "/sys/fs/cgroup",
            Self::MemoryV1 => "/sys/fs/cgroup/memory",
        }
    }

    /// Returns the group of a process as a path below the hierarchy's directory.
    fn path(self, root: &Root, pid: u32) -> Option<String> {
        let text = root.read(format!("/proc/{pid}/cgroup")).ok()?;
        self.parse_group(&text).map(|path| path.trim_matches('/').to_owned())
    }

    /// Finds the path of a group in the text of `/proc/PID/cgroup`. Version 1 may mount several
    /// controllers together.
    pub fn parse_group(self, text: &str) -> Option<&str> {
        groups(text).find_map(|(controllers, path)| self.has_memory(controllers).then_some(path))
    }

    /// Finds the mount point of this hierarchy in `/proc/self/mounts`.
    pub fn parse_mount(self, mounts: &str) -> Option<PathBuf> {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (path, fstype, options) = (fields.next()?, fields.next()?, fields.next()?);
            let is_it = match self {
                Self::Unified => fstype == "cgroup2",
                Self::MemoryV1 => fstype == "cgroup" && self.has_memory(options),
            };
            is_it.then(|| PathBuf::from(path))
        })
    }

    /// Returns whether these controllers or mount options belong to this hierarchy.
    fn has_memory(self, words: &str) -> bool {
        match self {
            Self::Unified => words.is_empty(),
            Self::MemoryV1 => words.split(',').any(|word| word == "memory"),
        }
    }

    /// Returns the id of a process's group, which is the inode number of its directory.
    pub fn group_id(self, root: &Root, pid: u32) -> Option<u64> {
        let path = root.path(format!("{}/{}", self.usual_mount(), self.path(root, pid)?));
        std::fs::metadata(path).ok().map(|dir| dir.ino())
    }

    /// Returns the page cache that the limits of a process's group and its ancestors allow: the
    /// minimum of limit minus anonymous memory. `None` if no limit is set.
    pub fn cache_limit(self, root: &Root, pid: u32) -> Option<Bytes> {
        /// Version 1 reports a missing limit as the largest file offset, just below 2⁶³.
        const MIN_NO_LIMIT: u64 = 1 << 60;
        let (names, anonymous): (&[&str], _) = match self {
            Self::Unified => (&["memory.max", "memory.high"], "anon "),
            Self::MemoryV1 => (&["memory.limit_in_bytes"], "total_rss "),
        };
        let mut path = self.path(root, pid)?;
        let mut least = None;
        while !path.is_empty() {
            let dir = format!("{}/{path}", self.usual_mount());
            let limit = |name| root.read(format!("{dir}/{name}")).ok()?.trim().parse::<u64>().ok();
            let limits = names.iter().filter_map(limit).filter(|limit| *limit < MIN_NO_LIMIT);
            if let Some(limit) = limits.min() {
                let stat = root.read(format!("{dir}/memory.stat")).unwrap_or_default();
                let used = stat.lines().find_map(|line| line.strip_prefix(anonymous)?.parse().ok());
                let cache = Bytes::new(limit.saturating_sub(used.unwrap_or(0)));
                least = Some(least.map_or(cache, |least: Bytes| least.min(cache)));
            }
            path = path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_least_limit_above_a_process_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        write("proc/7/cgroup", "0::/a.slice/b.service\n");
        write("proc/8/cgroup", "0::/\n");
        write("sys/fs/cgroup/a.slice/memory.max", "67108864\n");
        write("sys/fs/cgroup/a.slice/memory.stat", "anon 1048576\nfile 3\n");
        write("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
        let root = Root::at(dir.path());
        assert_eq!(CgroupHierarchy::of_memory(&root), CgroupHierarchy::Unified);
        let cache = |pid| CgroupHierarchy::Unified.cache_limit(&root, pid);
        assert_eq!((cache(7), cache(8), cache(9)), (Some(Bytes::from_mib(63)), None, None));
    }

    #[test]
    fn limits_of_version_1_count_where_memory_is_under_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        write("proc/7/cgroup", "4:memory:/a/b\n1:cpu:/\n0::/\n");
        write("proc/8/cgroup", "4:memory:/a\n0::/\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "67108864\n");
        write("sys/fs/cgroup/memory/a/b/memory.stat", "rss 1\ntotal_rss 1048576\n");
        let root = Root::at(dir.path());
        let hierarchy = CgroupHierarchy::of_memory(&root);
        assert_eq!(hierarchy, CgroupHierarchy::MemoryV1);
        assert_eq!(hierarchy.cache_limit(&root, 7), Some(Bytes::from_mib(63)));
        assert_eq!(hierarchy.cache_limit(&root, 8), None);
        let [a, b] = [7, 8].map(|pid| hierarchy.group_id(&root, pid).expect("a directory"));
        assert_ne!(a, b);
    }
}
