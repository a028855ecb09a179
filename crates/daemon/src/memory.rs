//! Limits of the page caches of the machine and of cgroups, and memory pressure.

use std::collections::{BTreeMap, BTreeSet};

use control::MemoryInputs;
use host::cgroup::CgroupHierarchy;
use host::{Pressure, Root, parse_meminfo};
use observe::{Holder, OpenFile};
use units::Nanos;

/// Memory is under pressure if tasks stalled for it more than this share of the last ten seconds
/// (PSI `some avg10`), in percent ...
const MAX_STALL_PERCENT: f64 = 5.0;
/// ... and at most one part in this many of the machine's memory is available. Otherwise, tasks
/// stall at the limit of a cgroup, which the windows of that cgroup's files already respect.
const MIN_AVAILABLE_DIVISOR: u64 = 4;

/// How long a sample is valid for the same processes: limits and free memory change slowly, and
/// reading them takes more system calls than the rest of a step.
const SAMPLE_LIFETIME: Nanos = Nanos::from_millis(500);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryState {
    pub inputs: MemoryInputs,
    /// The time of the sample and its processes; `None` before the first sample.
    sampled: Option<(Nanos, BTreeSet<u32>)>,
    /// The memory cgroups of processes, on hosts with a memory controller of cgroup version 1:
    /// there, the kernel reports another cgroup for a process.
    cgroups: BTreeMap<u32, u64>,
}

impl MemoryState {
    /// Returns the cache that the file's pages are charged to, a key of [`MemoryInputs::caches`].
    pub fn domain(&self, file: &OpenFile) -> u64 {
        let of = |holder: &Holder| self.cgroups.get(&holder.pid).copied().unwrap_or(holder.cgroup);
        file.holders.first().map_or(0, of)
    }

    /// Samples again, unless a recent sample covers the processes that hold these files.
    pub fn refresh(&mut self, root: &Root, now: Nanos, files: &[OpenFile]) {
        let holders = files.iter().filter_map(|file| file.holders.first());
        let pids: BTreeSet<u32> = holders.map(|holder| holder.pid).collect();
        let counts = self.sampled.as_ref().is_some_and(|(at, known)| {
            now.saturating_sub(*at) < SAMPLE_LIFETIME && pids.is_subset(known)
        });
        if !counts {
            *self = Self { sampled: Some((now, pids)), ..Self::sample(root, files) };
        }
    }

    /// Samples the machine, and the cgroups of the processes that hold these files. A cgroup
    /// without a readable limit gets the available memory of the machine.
    fn sample<'a>(root: &Root, files: impl IntoIterator<Item = &'a OpenFile>) -> Self {
        let meminfo = root.read("/proc/meminfo").map(|text| parse_meminfo(&text));
        let meminfo = meminfo.unwrap_or_default();
        let available = meminfo.get("MemAvailable").copied();
        let mut state = Self::default();
        let inputs = &mut state.inputs;
        inputs.caches.insert(0, available.unwrap_or_default());
        let hierarchy = CgroupHierarchy::of_memory(root);
        inputs.prefetched = hierarchy.cache_limit(root, std::process::id());
        for holder in files.into_iter().filter_map(|file| file.holders.first()) {
            let domain = match hierarchy {
                CgroupHierarchy::Unified => holder.cgroup,
                CgroupHierarchy::MemoryV1 => {
                    let found = || hierarchy.group_id(root, holder.pid).unwrap_or(0);
                    *state.cgroups.entry(holder.pid).or_insert_with(found)
                }
            };
            if inputs.caches.contains_key(&domain) {
                continue;
            }
            let own = hierarchy.cache_limit(root, holder.pid);
            inputs.limited.extend(own.map(|_| domain));
            inputs.caches.insert(domain, own.or(available).unwrap_or_default());
        }
        let total = meminfo.get("MemTotal").copied().unwrap_or_default();
        let plenty = available.is_some_and(|available| available * MIN_AVAILABLE_DIVISOR > total);
        let pressure = Pressure::memory(root).ok().flatten();
        inputs.under_pressure =
            !plenty && pressure.is_some_and(|pressure| pressure.some.avg10 > MAX_STALL_PERCENT);
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_for_a_moment() {
        let dir = tempfile::tempdir().unwrap();
        let available = |kib: u64| {
            let text = format!("MemTotal: 4096 kB\nMemAvailable: {kib} kB\n");
            std::fs::create_dir_all(dir.path().join("proc")).unwrap();
            std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
        };
        let root = Root::at(dir.path());
        let mut state = MemoryState::default();
        let mut seen = |millis| {
            state.refresh(&root, Nanos::from_millis(millis), &[]);
            state.inputs.caches[&0].to_kib_floor().get()
        };
        available(2048);
        assert_eq!(seen(1000), 2048);
        available(1024);
        assert_eq!((seen(1100), seen(1499), seen(1500)), (2048, 2048, 1024));
    }
}
