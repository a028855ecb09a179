//! What the caches of the machine and of cgroups can hold, and whether memory is tight.

use std::collections::{BTreeMap, BTreeSet};

use host::{Pressure, Root, parse_meminfo};
use observe::OpenFile;
use units::Bytes;

/// Tasks that stand still for memory more than this share of the time (percent of ten seconds)
/// make it tight.
const TIGHT: f64 = 5.0;

/// Memory as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryState {
    /// What caches can hold: that of the machine (0), and those of cgroups with a limit, by the
    /// number of the cgroup.
    pub caches: BTreeMap<u64, Bytes>,
    /// The cgroups with a limit.
    pub limited: BTreeSet<u64>,
    /// Whether tasks stand still for want of memory.
    pub tight: bool,
}

impl MemoryState {
    /// Looks at the machine, and at the cgroups of those who hold these files. What cannot be read
    /// is left out: then the machine's cache counts.
    pub fn look<'a>(root: &Root, files: impl IntoIterator<Item = &'a OpenFile>) -> Self {
        let meminfo = root.read("/proc/meminfo").map(|text| parse_meminfo(&text));
        let available = meminfo.ok().and_then(|memory| memory.get("MemAvailable").copied());
        let mut state = Self::default();
        state.caches.insert(0, available.unwrap_or_default());
        for holder in files.into_iter().filter_map(|file| file.holders.first()) {
            if state.caches.contains_key(&holder.cgroup) || holder.cgroup == 0 {
                continue;
            }
            let own = cgroup_cache(root, holder.pid);
            state.limited.extend(own.map(|_| holder.cgroup));
            state.caches.insert(holder.cgroup, own.or(available).unwrap_or_default());
        }
        let pressure = Pressure::memory(root).ok().flatten();
        state.tight = pressure.is_some_and(|pressure| pressure.some.avg10 > TIGHT);
        state
    }
}

/// What the cgroup of a process, and those above it, let its cache hold: the least of limit minus
/// memory that is no cache. `None` if there is no limit.
fn cgroup_cache(root: &Root, pid: u32) -> Option<Bytes> {
    let text = root.read(format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut least = None;
    let mut path = path.trim_matches('/').to_owned();
    while !path.is_empty() {
        let dir = format!("/sys/fs/cgroup/{path}");
        let limit = |name: &str| root.read(format!("{dir}/{name}")).ok()?.parse::<u64>().ok();
        let limits = [limit("memory.max"), limit("memory.high")];
        if let Some(limit) = limits.into_iter().flatten().min() {
            let stat = root.read(format!("{dir}/memory.stat")).unwrap_or_default();
            let anon = stat.lines().find_map(|line| line.strip_prefix("anon ")?.parse().ok());
            let cache = Bytes::new(limit.saturating_sub(anon.unwrap_or(0)));
            least = Some(least.map_or(cache, |least: Bytes| least.min(cache)));
        }
        path = path.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
    }
    least
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
        assert_eq!(cgroup_cache(&root, 7), Some(Bytes::from_mib(63)));
        assert_eq!(cgroup_cache(&root, 8), None);
        assert_eq!(cgroup_cache(&root, 9), None);
    }
}
