//! A control group for one program, if available: it counts the I/O of processes that their parent
//! did not wait for, and kills processes that have left the process group.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use host::cgroup::CgroupHierarchy;
use units::Bytes;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A version 2 control group; removed when dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Creates a group below the root of the hierarchy, or below the group that limits the memory
    /// of a trial; `None` if that fails.
    pub(crate) fn make() -> Option<Self> {
        let root =
            CgroupHierarchy::Unified.parse_mount(&fs::read_to_string("/proc/self/mounts").ok()?)?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::make_in(&limited(&root, &own).unwrap_or(root))
    }

    fn make_in(root: &Path) -> Option<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("foreread-{}-{number}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self { path })
    }

    /// Moves a process into the group; its children start there.
    pub(crate) fn take_in(&self, pid: u32) {
        if let Err(error) = fs::write(self.path.join("cgroup.procs"), pid.to_string()) {
            tracing::debug!(%error, "a program runs without a control group");
        }
    }

    /// Returns the data that the group read and wrote, over all devices; `None` if the io
    /// controller is not enabled.
    pub(crate) fn read_and_written(&self) -> Option<(Bytes, Bytes)> {
        parse_stat(&fs::read_to_string(self.path.join("io.stat")).ok()?)
    }

    pub(crate) fn kill(&self) {
        // Kernels before 5.14 lack this file, and it must not be created.
        if let Ok(mut file) = File::options().write(true).open(self.path.join("cgroup.kill")) {
            let _ = file.write_all(b"1");
        }
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.kill();
        crate::memory::remove_group(&self.path);
    }
}

/// Returns the group of this process if it limits memory, so that the limit covers groups below it.
fn limited(root: &Path, own: &str) -> Option<PathBuf> {
    let path = CgroupHierarchy::Unified.parse_group(own)?.trim_start_matches('/');
    let name = Path::new(path).file_name()?.to_str()?;
    name.starts_with(crate::memory::NAME).then(|| root.join(path))
}

/// Parses `MAJ:MIN rbytes=… wbytes=… …`, one line for each device. Each level of a stack of devices
/// counts the same I/O, so the largest counts are returned.
fn parse_stat(text: &str) -> Option<(Bytes, Bytes)> {
    let field = |line: &str, key: &str| -> Option<u64> {
        line.split_ascii_whitespace().find_map(|field| field.strip_prefix(key))?.parse().ok()
    };
    let most = |key: &str| text.lines().filter_map(|line| field(line, key)).max();
    Some((Bytes::new(most("rbytes=")?), Bytes::new(most("wbytes=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_and_its_counts_are_read() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(
            CgroupHierarchy::Unified.parse_mount(mounts),
            Some(PathBuf::from("/sys/fs/cgroup"))
        );
        assert_eq!(
            CgroupHierarchy::Unified.parse_mount("tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"),
            None
        );
        let root = Path::new("/sys/fs/cgroup");
        let own = "4:memory:/x\n0::/foreread-memory-7-0\n";
        assert_eq!(limited(root, own), Some(root.join("foreread-memory-7-0")));
        assert_eq!(limited(root, "0::/system.slice/a.service\n"), None);
        assert_eq!(limited(root, "0::/\n"), None);
        let stat = "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n\
                    253:0 rbytes=8192 wbytes=512 rios=1 wios=0\n";
        assert_eq!(parse_stat(stat), Some((Bytes::new(8192), Bytes::new(512))));
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_group_goes_with_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let group = ControlGroup::make_in(root.path()).unwrap();
        let path = group.path.clone();
        assert!(path.exists());
        drop(group);
        assert!(!path.exists());
        assert!(ControlGroup::make_in(Path::new("/no/such/place")).is_none());
    }
}
