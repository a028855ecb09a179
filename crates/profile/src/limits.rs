//! Limits of the cgroups of profiled processes, which delay their requests.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use host::Root;

/// Files of a cgroup that limit reads: those of version 2, and those of the controller `blkio` of
/// version 1.
const LIMIT_FILES: [&str; 2] = ["io.max", "io.latency"];
const OLD_LIMIT_FILES: [&str; 2] =
    ["blkio.throttle.read_bps_device", "blkio.throttle.read_iops_device"];
/// Time after which a process is checked again: it may be moved after its start.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of remembered processes; more are checked again.
const MAX_PROCESSES: usize = 4096;
/// Mount points of version 2, alone and next to version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const OLD_MOUNT: &str = "/sys/fs/cgroup/blkio";

/// Read limits of the cgroups of profiled processes.
#[derive(Debug, Default)]
pub(crate) struct CgroupLimits {
    /// Last content of `/proc/PID/cgroup`, and when it was read, by process ID.
    seen: HashMap<u32, (Instant, String)>,
    found: BTreeSet<String>,
}

impl CgroupLimits {
    /// Checks a process if it is a new program or was not checked within the last second, and reads
    /// the limits of its cgroups if they have changed.
    pub(crate) fn check_process(&mut self, root: &Root, pid: u32, is_new: bool) {
        let now = Instant::now();
        let is_recent = |(at, _): &(Instant, String)| now.duration_since(*at) < LOOK_INTERVAL;
        if !is_new && self.seen.get(&pid).is_some_and(is_recent) {
            return;
        }
        let Ok(text) = std::fs::read_to_string(root.path(format!("/proc/{pid}/cgroup"))) else {
            return;
        };
        if let Some((at, _)) = self.seen.get_mut(&pid).filter(|(_, before)| *before == text) {
            *at = now;
            return;
        }
        for (controllers, path) in host::cgroup::groups(&text) {
            if controllers.is_empty() {
                MOUNTS
                    .iter()
                    .for_each(|mount| self.read_ancestors(root, mount, path, &LIMIT_FILES));
            } else if controllers.split(',').any(|one| one == "blkio") {
                self.read_ancestors(root, OLD_MOUNT, path, &OLD_LIMIT_FILES);
            }
        }
        if self.seen.len() >= MAX_PROCESSES {
            self.seen.clear();
        }
        self.seen.insert(pid, (now, text));
    }

    /// Reads the limits of a cgroup and of its ancestors.
    fn read_ancestors(&mut self, root: &Root, mount: &str, path: &str, files: &[&str]) {
        let mut path = path.trim_end_matches('/');
        while !path.is_empty() {
            for file in files {
                let name = format!("{mount}{path}/{file}");
                let text = std::fs::read_to_string(root.path(&name)).unwrap_or_default();
                let limits = text.lines().filter(|line| limits_reads(line));
                let limits = limits.map(|line| units::text::plain(&format!("{name}: {line}")));
                self.found.extend(limits);
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Returns the limits, each as `FILE: DEVICE LIMIT`.
    pub(crate) fn into_limits(self) -> Vec<String> {
        self.found.into_iter().collect()
    }
}

/// Returns whether a line limits reads: `io.max` also has limits of writes.
fn limits_reads(line: &str) -> bool {
    line.split_ascii_whitespace().skip(1).any(|word| match word.split_once('=') {
        Some(("rbps" | "riops", limit)) => limit != "max",
        Some(("target", limit)) => limit != "0",
        Some(_) => false,
        None => word.parse().is_ok_and(|limit: u64| limit > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_reads_are_found_in_all_cgroups_above() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("proc/7/cgroup", "5:cpu:/x\n4:blkio,net:/old\n0::/a/b\n");
        file("sys/fs/cgroup/a/io.max", "8:0 rbps=max wbps=1000 riops=100 wiops=max\n");
        file("sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=1000 riops=max wiops=max\n");
        file("sys/fs/cgroup/blkio/old/blkio.throttle.read_bps_device", "8:16 1048576\n");
        let root = Root::at(dir.path());
        let mut limits = CgroupLimits::default();
        limits.check_process(&root, 7, true);
        limits.check_process(&root, 8, true);
        file("proc/7/cgroup", "0::/c\n");
        file("sys/fs/cgroup/c/io.max", "8:0 rbps=5\n");
        limits.check_process(&root, 7, false);
        assert_eq!(limits.found.len(), 2, "it was looked at just now");
        limits.check_process(&root, 7, true);
        assert_eq!(
            limits.into_limits(),
            [
                "/sys/fs/cgroup/a/io.max: 8:0 rbps=max wbps=1000 riops=100 wiops=max",
                "/sys/fs/cgroup/blkio/old/blkio.throttle.read_bps_device: 8:16 1048576",
                "/sys/fs/cgroup/c/io.max: 8:0 rbps=5",
            ]
        );
    }
}
