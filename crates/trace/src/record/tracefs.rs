//! The kernel's tracepoints through tracefs, in a separate instance. It does not affect other users
//! of tracing and is removed on exit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Usual mount points of tracefs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Name prefix of foreread's instances, followed by the process id.
const PREFIX: &str = "foreread-";
/// Buffer size per processor in KiB, for the events between two reads of the pipe.
const BUFFER_KIB: &str = "8192";

struct Tracefs {
    dir: PathBuf,
    /// A detached mount, which disappears when it is closed.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    fn find() -> Result<Self, String> {
        for place in PLACES {
            let dir = PathBuf::from(place);
            if dir.join("instances").is_dir() {
                return Ok(Self { dir, _mount: None });
            }
        }
        let mount = detached().map_err(|error| format!("tracefs is not available: {error}"))?;
        let dir = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { dir, _mount: Some(mount) })
    }
}

/// Mounts tracefs without attaching it, so that it is invisible to other processes.
fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A tracing instance with its own buffer and settings.
pub(super) struct Instance {
    tracefs: Tracefs,
    dir: PathBuf,
}

impl Instance {
    /// Creates an instance, and removes those that dead processes left behind.
    pub(super) fn make() -> Result<Self, String> {
        if !sys::process::has_host_ids() {
            return Err("this PID namespace is not that of the host, as in a container".to_owned());
        }
        let tracefs = Tracefs::find()?;
        let all = tracefs.dir.join("instances");
        sweep(&all);
        let dir = all.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| format!("no instance of tracefs: {error}"))?;
        Ok(Self { tracefs, dir })
    }

    /// Writes a setting of the instance.
    pub(super) fn set(&self, switch: &str, value: &str) -> Result<(), String> {
        let path = self.dir.join(switch);
        fs::write(&path, value).map_err(|error| format!("{switch} of tracefs: {error}"))
    }

    /// Configures the instance to trace these threads and all their future children.
    pub(super) fn arm(&self, threads: &[u32], events: &[&str]) -> Result<(), String> {
        for event in events {
            if !self.tracefs.dir.join("events").join(event).is_dir() {
                return Err(format!("this kernel has no tracepoint {}", event.replace('/', ":")));
            }
        }
        self.set("buffer_size_kb", BUFFER_KIB)?;
        self.set("trace_clock", "mono")?;
        self.set("options/event-fork", "1")?;
        self.set("options/record-tgid", "1")?;
        let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
        self.set("set_event_pid", &threads.join(" "))?;
        for event in events {
            self.set(&format!("events/{event}/enable"), "1")?;
        }
        self.set("tracing_on", "1")
    }

    /// Opens `trace_pipe`, which delivers the traced events as text.
    pub(super) fn pipe(&self) -> Result<TracePipe, String> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(self.dir.join("trace_pipe"));
        file.map(TracePipe).map_err(|error| format!("trace_pipe of tracefs: {error}"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        if let Err(error) = fs::remove_dir(&self.dir) {
            let instance = self.dir.display();
            tracing::warn!(%error, %instance, "an instance of tracefs is left");
        }
    }
}

/// Removes the instances of processes that no longer exist.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

pub(super) struct TracePipe(File);

impl TracePipe {
    /// Appends the available text; returns whether there was any.
    pub(super) fn drain(&mut self, text: &mut Vec<u8>) -> io::Result<bool> {
        let before = text.len();
        match self.0.read_to_end(text) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(text.len() > before)
    }
}
