//! Which features work on this machine for this user, with the reason for those that do not.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use daemon::{LiveSource, Record, WatchSource as _};
use host::Root;
use observe::Signal;
use rustix::fs::Access;
use serde::Serialize;
use units::Bytes;
use vdisk::Filesystem;

use super::super::Context;

/// A feature that depends on the machine.
#[derive(Debug, Serialize)]
pub struct Feature {
    pub name: &'static str,
    #[serde(skip)]
    pub title: &'static str,
    pub works: bool,
    /// Why the feature does not work, or a note if it does.
    pub reason: Option<String>,
}

impl Feature {
    fn of(name: &'static str, title: &'static str, lack: Option<String>) -> Self {
        Self { name, title, works: lack.is_none(), reason: lack }
    }
}

/// The mounted versions of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cgroups {
    None,
    V1,
    V2,
    /// Version 1, and version 2 (the unified hierarchy) without controllers.
    Hybrid,
}

impl Cgroups {
    pub fn detect(root: &Root) -> Self {
        let is = |path: &str| root.exists(path);
        if is("/sys/fs/cgroup/cgroup.controllers") {
            Self::V2
        } else if is("/sys/fs/cgroup/unified/cgroup.procs") {
            Self::Hybrid
        } else if is("/sys/fs/cgroup/memory") || is("/sys/fs/cgroup/cpu") {
            Self::V1
        } else {
            Self::None
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::None => "none are mounted",
            Self::V1 => "version 1",
            Self::V2 => "version 2",
            Self::Hybrid => "version 1, and version 2 without controllers",
        }
    }
}

#[derive(Debug, Serialize)]
pub struct Rights {
    root: bool,
    /// Capabilities of this process that foreread uses.
    capabilities: Vec<&'static str>,
}

/// Capabilities that foreread uses, by their number (linux/capability.h).
const CAPABILITIES: [(u32, &str); 7] = [
    (1, "cap_dac_override"),
    (2, "cap_dac_read_search"),
    (12, "cap_net_admin"),
    (19, "cap_sys_ptrace"),
    (21, "cap_sys_admin"),
    (38, "cap_perfmon"),
    (39, "cap_bpf"),
];

impl Rights {
    pub fn detect(root: &Root) -> Self {
        let status = root.read("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        let has = |number: &u32| bits >> number & 1 == 1;
        let capabilities =
            CAPABILITIES.iter().filter(|(number, _)| has(number)).map(|(_, name)| *name);
        let user = rustix::process::geteuid();
        Self { root: user.is_root(), capabilities: capabilities.collect() }
    }

    pub fn words(&self) -> String {
        let user = if self.root { "root" } else { "not root" };
        match self.capabilities.as_slice() {
            [] => format!("{user}, no capabilities"),
            some => format!("{user}, {}", some.join(", ")),
        }
    }
}

/// Tests each feature without changing anything.
pub fn look(context: &Context) -> (Vec<Signal>, Vec<Feature>) {
    let root = &context.root;
    let (signals, watching) = watching(context);
    let lack = |result: Result<(), String>| result.err();
    let features = vec![
        Feature::of("open_files", "list all open files with their windows", {
            observe::Census::load().err().map(|error| error.to_string())
        }),
        watching,
        Feature::of("set_read_ahead", "set read-ahead", lack(settable(root))),
        Feature::of("cachestat", "verify a cold cache by cachestat(2)", lack(cachestat())),
        Feature::of("fuse", "FUSE", lack(openable("/dev/fuse"))),
        Feature::of("loop", "loop devices", lack(openable("/dev/loop-control"))),
        Feature::of("virtual_disks", "virtual disks (virtual:MODEL)", {
            vdisk::availability(Filesystem::default()).err().map(|lack| lack.to_string())
        }),
        Feature::of("memory_limit", "limit the page cache of a trial", {
            bench::check_memory_limit(Bytes::from_mib(64)).err().map(|lack| lack.to_string())
        }),
        Feature::of("tracepoints", "record traces by tracepoints", lack(tracepoints())),
    ];
    (signals, features)
}

/// Tests the read-ahead probes on a file, as `watch` does before it uses them.
fn watching(context: &Context) -> (Vec<Signal>, Feature) {
    let own = &context.dirs.state;
    let dir = if own.is_dir() { own.clone() } else { "/var/tmp".into() };
    let (name, title) = ("watch_streams", "watch streams by kernel probes");
    let source = match LiveSource::new(&context.root, &dir) {
        Ok(source) => source,
        Err(error) => return (Vec::new(), Feature::of(name, title, Some(error.to_string()))),
    };
    let signals = match source.beginning() {
        Record::Begin(begin) => begin.signals,
        _ => Vec::new(),
    };
    let (works, reason) = (source.sees_readers(), source.note().map(str::to_owned));
    (signals, Feature { name, title, works, reason })
}

/// Checks whether this user may write a read-ahead file.
fn settable(root: &Root) -> Result<(), String> {
    let names = root.names("/sys/class/bdi");
    let Some(first) = names.first() else {
        return Err("/sys/class/bdi contains no backing device".to_owned());
    };
    let path = root.path(format!("/sys/class/bdi/{first}/read_ahead_kb"));
    rustix::fs::access(&path, Access::WRITE_OK)
        .map_err(|error| format!("{}: {}", path.display(), io::Error::from(error)))
}

fn cachestat() -> Result<(), String> {
    let own = File::open("/proc/self/exe").map_err(|error| error.to_string())?;
    match sys::cachestat::cachestat(own.as_fd(), Bytes::ZERO, Bytes::from_kib(4)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Err("this kernel is older than 6.5; mincore(2) is used instead".to_owned())
        }
        Err(error) => Err(format!("{error}; mincore(2) is used instead")),
    }
}

fn openable(device: &str) -> Result<(), String> {
    let opened = File::options().read(true).write(true).open(device);
    opened.map(drop).map_err(|error| format!("{device}: {error}"))
}

fn tracepoints() -> Result<(), String> {
    let event = "events/filemap/mm_filemap_get_pages";
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let mut reason = "tracefs is not mounted".to_owned();
    for place in places {
        match std::fs::read_dir(place).map(Iterator::count) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => reason = format!("{place}: {error}"),
            Ok(0) => {}
            Ok(_) if std::path::Path::new(place).join(event).exists() => return Ok(()),
            Ok(_) => reason = format!("this kernel has no tracepoint {event}"),
        }
    }
    Err(reason)
}
