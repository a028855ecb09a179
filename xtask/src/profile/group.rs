//! A control group with little memory for a program.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// Files of the limit in versions 1 and 2 of control groups.
const LIMIT_FILES: [&str; 2] = ["memory/{}/memory.limit_in_bytes", "{}/memory.max"];
/// Enters the group and executes the program.
const SCRIPT: &str = "echo 0 > \"$0\" && exec \"$@\"";

/// A group of either version; removed on drop.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    pub fn new(mib: u64) -> Result<Self> {
        let name = format!("foreread-faults-{}", std::process::id());
        let made = LIMIT_FILES.iter().find_map(|limit| {
            let limit = Path::new("/sys/fs/cgroup").join(limit.replace("{}", &name));
            let group = limit.parent()?.to_owned();
            // Without this check, an ordinary directory could be created.
            group.parent()?.join("cgroup.procs").exists().then_some(())?;
            fs::create_dir(&group).ok()?;
            let group = Self(group);
            fs::write(&limit, (mib << 20).to_string()).ok().map(|()| group)
        });
        made.context("memory cannot be limited here: there is no memory controller")
    }

    /// Returns the words that start a program in this group.
    pub fn words(&self) -> [OsString; 4] {
        let processes = self.0.join("cgroup.procs");
        ["sh".into(), "-c".into(), SCRIPT.into(), processes.into()]
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Processes that have exited take some time to leave the group.
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
