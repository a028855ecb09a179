//! What the caches of the machine and of cgroups can hold, and memory pressure.

use std::collections::BTreeMap;

use control::MemoryInputs;
use host::cgroup::CgroupHierarchy;
use host::{Pressure, Root, parse_meminfo};
use observe::{Holder, OpenFile};

/// Memory is under pressure if tasks stalled for it more than this share of the last ten seconds
/// (PSI `some avg10`), in percent ...
const MAX_STALL_PERCENT: f64 = 5.0;
/// ... and at most one part in this many of the machine's memory is available. Otherwise tasks
/// stall at the limit of a cgroup, which the windows of that cgroup's files keep to.
const MIN_AVAILABLE_DIVISOR: u64 = 4;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryState {
    pub inputs: MemoryInputs,
    /// The memory cgroup of processes, on hosts whose memory controller is of version 1: there it
    /// is not the one that the kernel reports of them.
    cgroups: BTreeMap<u32, u64>,
}

impl MemoryState {
    /// The cache that the pages of an open file are charged to, a key of [`MemoryInputs::caches`].
    pub fn domain(&self, file: &OpenFile) -> u64 {
        let of = |holder: &Holder| self.cgroups.get(&holder.pid).copied().unwrap_or(holder.cgroup);
        file.holders.first().map_or(0, of)
    }

    /// Samples the machine, and the cgroups of the processes that hold these files. For what cannot
    /// be read, the machine's cache counts.
    pub fn sample<'a>(root: &Root, files: impl IntoIterator<Item = &'a OpenFile>) -> Self {
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
