//! What the caches of the machine and of cgroups can hold, and whether memory is tight.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use host::{Pressure, Root, parse_meminfo};
use observe::{Holder, OpenFile};
use units::Bytes;

/// Tasks that stand still for memory more than this share of the time (percent of ten seconds)
/// make it tight.
const TIGHT: f64 = 5.0;
/// Unless more than a quarter of the machine's memory is available: then they stand still at the
/// limit of a cgroup of theirs, which is for its own windows to heed.
const PLENTY: u64 = 4;

/// Memory as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryState {
    /// What caches can hold: that of the machine (0), and those of cgroups with a limit, by the
    /// number of the cgroup.
    pub caches: BTreeMap<u64, Bytes>,
    /// What the cache of this process's own cgroup can hold, if that has a limit: what a process
    /// asks for by `readahead(2)` is charged to it, whoever reads it then.
    pub own: Option<Bytes>,
    /// The cgroups with a limit.
    pub limited: BTreeSet<u64>,
    /// The memory cgroup of processes, where that is not the one that the kernel tells of them: on
    /// hosts whose memory controller is of version 1.
    pub domains: BTreeMap<u32, u64>,
    /// Whether tasks stand still for want of memory.
    pub tight: bool,
}

impl MemoryState {
    /// Whose memory the pages of an open file are charged to: a place in [`MemoryState::caches`].
    pub fn domain(&self, file: &OpenFile) -> u64 {
        let of = |holder: &Holder| self.domains.get(&holder.pid).copied().unwrap_or(holder.cgroup);
        file.holders.first().map_or(0, of)
    }

    /// Looks at the machine, and at the cgroups of those who hold these files. What cannot be read
    /// is left out: then the machine's cache counts.
    pub fn look<'a>(root: &Root, files: impl IntoIterator<Item = &'a OpenFile>) -> Self {
        let meminfo = root.read("/proc/meminfo").map(|text| parse_meminfo(&text));
        let meminfo = meminfo.unwrap_or_default();
        let available = meminfo.get("MemAvailable").copied();
        let mut state = Self::default();
        state.caches.insert(0, available.unwrap_or_default());
        let hierarchy = Hierarchy::of(root);
        state.own = hierarchy.cache(root, std::process::id());
        for holder in files.into_iter().filter_map(|file| file.holders.first()) {
            let domain = match hierarchy {
                Hierarchy::Unified => holder.cgroup,
                Hierarchy::OfMemory => {
                    let found = || hierarchy.number(root, holder.pid).unwrap_or(0);
                    *state.domains.entry(holder.pid).or_insert_with(found)
                }
            };
            if state.caches.contains_key(&domain) {
                continue;
            }
            let own = hierarchy.cache(root, holder.pid);
            state.limited.extend(own.map(|_| domain));
            state.caches.insert(domain, own.or(available).unwrap_or_default());
        }
        let total = meminfo.get("MemTotal").copied().unwrap_or_default();
        let plenty = available.is_some_and(|available| available * PLENTY > total);
        let pressure = Pressure::memory(root).ok().flatten();
        state.tight = !plenty && pressure.is_some_and(|pressure| pressure.some.avg10 > TIGHT);
        state
    }
}

/// Which control groups limit memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// Those of version 2.
    Unified,
    /// Those of the memory controller of version 1.
    OfMemory,
}

impl Hierarchy {
    fn of(root: &Root) -> Self {
        let old = root.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        if old { Self::OfMemory } else { Self::Unified }
    }

    /// The directory below which its groups are, and how its line in `/proc/PID/cgroup` goes on
    /// behind the first colon.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Unified => ("/sys/fs/cgroup", ":"),
            Self::OfMemory => ("/sys/fs/cgroup/memory", "memory:"),
        }
    }

    /// The group of a process, as a path below the directory.
    fn path(self, root: &Root, pid: u32) -> Option<String> {
        let text = root.read(format!("/proc/{pid}/cgroup")).ok()?;
        let own =
            text.lines().filter_map(|line| line.split_once(':')?.1.strip_prefix(self.words().1));
        own.map(|path| path.trim_matches('/').to_owned()).next()
    }

    /// A number that the group of a process has alone: the inode of its directory.
    fn number(self, root: &Root, pid: u32) -> Option<u64> {
        let path = root.path(format!("{}/{}", self.words().0, self.path(root, pid)?));
        std::fs::metadata(path).ok().map(|dir| dir.ino())
    }

    /// What the group of a process, and those above it, let its cache hold: the least of limit
    /// minus memory that is no cache. `None` if there is no limit.
    fn cache(self, root: &Root, pid: u32) -> Option<Bytes> {
        /// What version 1 has where there is no limit is the most that an offset can be.
        const NONE: u64 = 1 << 60;
        let (names, anonymous): (&[&str], _) = match self {
            Self::Unified => (&["memory.max", "memory.high"], "anon "),
            Self::OfMemory => (&["memory.limit_in_bytes"], "total_rss "),
        };
        let mut path = self.path(root, pid)?;
        let mut least = None;
        while !path.is_empty() {
            let dir = format!("{}/{path}", self.words().0);
            let limit = |name| root.read(format!("{dir}/{name}")).ok()?.trim().parse::<u64>().ok();
            let limits = names.iter().filter_map(limit).filter(|limit| *limit < NONE);
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
        assert_eq!(Hierarchy::of(&root), Hierarchy::Unified);
        let cache = |pid| Hierarchy::Unified.cache(&root, pid);
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
        let hierarchy = Hierarchy::of(&root);
        assert_eq!(hierarchy, Hierarchy::OfMemory);
        assert_eq!(hierarchy.cache(&root, 7), Some(Bytes::from_mib(63)));
        assert_eq!(hierarchy.cache(&root, 8), None);
        let [a, b] = [7, 8].map(|pid| hierarchy.number(&root, pid).expect("a directory"));
        assert_ne!(a, b);
    }
}
