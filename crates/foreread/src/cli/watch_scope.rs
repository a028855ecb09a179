//! Selects the streams and devices to show.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use daemon::{StreamView, WatchView};
use host::{BdiId, DevNo, Root, StorageKind, resolve};

use crate::exit::{Usage, bail_usage, usage};

#[derive(Clone, Debug)]
pub enum Scope {
    All,
    Process(u32),
    /// A cgroup and those below it, as inodes of their directories.
    Cgroups(BTreeSet<u64>),
    /// A storage, or a file on it.
    Storage {
        bdi: BdiId,
        /// Devices that count the I/O of the storage.
        devices: Vec<DevNo>,
        inode: Option<u64>,
    },
}

impl Scope {
    /// Parses the target of the command line.
    pub fn parse(root: &Root, target: Option<&str>) -> anyhow::Result<Self> {
        let Some(target) = target else { return Ok(Self::All) };
        if let Some(path) = target.strip_prefix("cgroup:") {
            return cgroups(root, path).map(Self::Cgroups);
        }
        if let Some(pid) = target.strip_prefix("pid:") {
            let wrong = || Usage(format!("pid:{pid}: must be the number of a process"));
            let pid: u32 = pid.parse().map_err(|_| wrong())?;
            return match root.exists(format!("/proc/{pid}")) {
                true => Ok(Self::Process(pid)),
                false => Err(usage!("there is no process {pid}")),
            };
        }
        let storage = resolve(root, Path::new(target))?;
        let inode = match storage.kind {
            StorageKind::File => fs::metadata(&storage.path).ok().map(|file| file.ino()),
            StorageKind::Directory | StorageKind::BlockDevice => None,
        };
        Ok(Self::Storage { bdi: storage.bdi, devices: storage.devices, inode })
    }

    pub fn filter(&self, mut view: WatchView) -> WatchView {
        view.streams.retain(|stream| self.holds(stream));
        match self {
            Self::All => {}
            Self::Storage { devices, .. } => {
                view.devices.retain(|one| {
                    devices.contains(&one.device) || devices.iter().any(|of| is_disk_of(one, *of))
                });
            }
            Self::Process(_) | Self::Cgroups(_) => {
                let read: BTreeSet<DevNo> =
                    view.streams.iter().map(|stream| stream.device).collect();
                view.devices.retain(|one| read.contains(&one.device));
            }
        }
        view
    }

    fn holds(&self, stream: &StreamView) -> bool {
        match self {
            Self::All => true,
            Self::Process(pid) => stream.pid == *pid,
            Self::Cgroups(all) => all.contains(&stream.cgroup),
            Self::Storage { bdi, devices, inode } => {
                let there = match &stream.bdi {
                    Some(of) => of == bdi,
                    None => devices.contains(&stream.device),
                };
                there && inode.is_none_or(|inode| inode == stream.inode)
            }
        }
    }
}

/// Returns whether a listed device is the disk of a partition.
fn is_disk_of(listed: &daemon::DeviceRates, partition: DevNo) -> bool {
    Path::new(&format!("/sys/dev/block/{partition}/partition")).exists()
        && Path::new(&format!("/sys/block/{}", listed.name)).exists()
        && fs::canonicalize(format!("/sys/dev/block/{partition}"))
            .is_ok_and(|path| path.parent().is_some_and(|disk| disk.ends_with(&listed.name)))
}

pub fn cgroups(root: &Root, path: &str) -> anyhow::Result<BTreeSet<u64>> {
    let none = || {
        let old = ["memory", "cpu", "systemd"];
        let old = old.iter().any(|name| root.exists(format!("/sys/fs/cgroup/{name}{path}")));
        let why = match old {
            true => "; kernel probes do not see cgroups of version 1: name a process",
            false => "",
        };
        Usage(format!("there is no cgroup {path:?} in the unified hierarchy{why}"))
    };
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        bail_usage!("write cgroup:/PATH, not cgroup:{path}");
    }
    // On hybrid hosts, the unified hierarchy is mounted one level below.
    let base = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .find(|base| root.exists(format!("{base}/cgroup.procs")))
        .ok_or_else(none)?;
    let top = root.path(format!("{base}{}", path.trim_end_matches('/')));
    let (mut found, mut folders) = (BTreeSet::new(), vec![top]);
    while let Some(folder) = folders.pop() {
        let Ok(status) = fs::metadata(&folder) else { continue };
        found.insert(status.ino());
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            entries
                .filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|one| one.path()),
        );
    }
    if found.is_empty() { Err(none().into()) } else { Ok(found) }
}
