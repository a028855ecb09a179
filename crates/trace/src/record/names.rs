//! Finds the names of files that the kernel reports as device and inode.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::model::Trace;
use units::Bytes;

/// Names and sizes seen so far, by the name of a file in the tracepoints: `8:1/123`.
#[derive(Default)]
pub(super) struct Names(HashMap<String, (String, Bytes)>);

impl Names {
    /// Adds the files that a process has open or mapped at this moment.
    pub(super) fn look(&mut self, pid: u32) {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
        let mapped = fs::read_dir(format!("/proc/{pid}/map_files"));
        for entry in [descriptors, mapped].into_iter().flatten().flatten().flatten() {
            let path = entry.path();
            let (Ok(name), Ok(metadata)) = (fs::read_link(&path), fs::metadata(&path)) else {
                continue;
            };
            if !(metadata.is_file() || name.starts_with("/dev")) {
                continue;
            }
            let (major, minor) =
                (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
            let key = format!("{major}:{minor}/{}", metadata.ino());
            let size = Bytes::new(metadata.len());
            self.0.insert(key, (name.to_string_lossy().into_owned(), size));
        }
    }

    /// Adds the files of these threads and of all their descendants.
    pub(super) fn look_at_family(&mut self, pids: &[u32]) {
        let mut family = pids.to_vec();
        let mut at = 0;
        while let Some(pid) = family.get(at).copied() {
            self.look(pid);
            let tasks = fs::read_dir(format!("/proc/{pid}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let children = fs::read_to_string(task.path().join("children"));
                let children = children.unwrap_or_default();
                let numbers =
                    children.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
                family.extend(numbers);
            }
            at += 1;
            if at > 4096 {
                break;
            }
        }
    }

    /// Returns the trace with the known file names. Requests are cut at the known ends of their
    /// files.
    pub(super) fn apply(&self, trace: Trace) -> Trace {
        trace.described(|name| {
            self.0.get(name).map(|(path, size)| (path.clone(), (!size.is_zero()).then_some(*size)))
        })
    }
}
