//! A virtual disk in the hands of whoever made it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use host::{DevNo, Dirs, Storage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::availability::availability;
use crate::config::DiskConfig;
use crate::control::{self, ControlRequest};
use crate::counters::DiskCounters;
use crate::error::VdiskError;
use crate::layout::{DiskDirs, DiskLock, ServerFacts, ServerJob, read_json, write_json};
use crate::loop_device;
use crate::mkfs;
use crate::record::DiskRecord;
use crate::registry::{existing, names};
use crate::server::{DIR_FLAG, free_memory};
use crate::teardown::{InUse, take_down};
use crate::waking;

/// A server that is not ready after so many seconds never will be.
const START_SECONDS: i64 = 30;

/// How the server is started: a program that calls [`serve_main`](crate::serve_main) with the
/// arguments that follow `args`.
#[derive(Clone, Debug)]
pub struct ServerCommand {
    /// The program, foreread itself as a rule.
    pub program: PathBuf,
    /// What makes it serve, `["vdisk", "serve"]` for foreread.
    pub args: Vec<OsString>,
}

/// How long a virtual disk lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    Kept,
    /// Until it is removed, dropped, or its creator ends in whatever way.
    DiesWithMe,
}

/// A virtual disk that is being served.
#[derive(Debug)]
pub struct VirtualDisk {
    home: DiskDirs,
    record: DiskRecord,
    devno: DevNo,
    /// The server, if we started it: its standard input is what tells it that we are there.
    server: Option<Child>,
    removed: bool,
    /// Keeps others from removing a disk that dies with this.
    hold: Option<DiskLock>,
}

impl VirtualDisk {
    /// Makes a disk: starts its server, sets up the loop device, makes the filesystem, mounts it.
    ///
    /// # Errors
    ///
    /// Where something is missing ([`VdiskError::Unavailable`] says what and which package has
    /// it), where the name is taken, where memory is short, or where a step fails; nothing is left
    /// behind then.
    pub fn create(
        dirs: &Dirs,
        config: DiskConfig,
        server: &ServerCommand,
        lifetime: Lifetime,
    ) -> Result<Self, VdiskError> {
        availability(config.filesystem)?;
        config.check()?;
        free_memory().map_or(Ok(()), |free| free.check())?;
        let home = match &config.name {
            Some(name) => DiskDirs::claim(dirs, name)?,
            None => DiskDirs::claim_numbered(dirs, &config.model.name)?.0,
        };
        let hold = home.hold()?;
        let mut child = None;
        match build(&home, &config, server, lifetime, &mut child) {
            Ok((record, devno)) => {
                let hold = hold.filter(|_| lifetime == Lifetime::DiesWithMe);
                Ok(Self { home, record, devno, server: child, removed: false, hold })
            }
            Err(error) => {
                if let Err(left) = take_down(&home, InUse::Force) {
                    tracing::warn!("after {error}: {left}");
                }
                reap(child);
                Err(error)
            }
        }
    }

    /// The disk of this name, made by another process or an earlier run.
    pub fn open(dirs: &Dirs, name: &str) -> Result<Self, VdiskError> {
        let home = existing(dirs, name)?;
        let dead = || VdiskError::Dead { name: name.to_owned() };
        let record: DiskRecord = read_json(&home.record())?.ok_or_else(dead)?;
        control::counters(&home)?;
        let devno = devno_of(&record.device)?;
        Ok(Self { home, record, devno, server: None, removed: false, hold: None })
    }

    /// The serving disk that is all of this storage, if another process made one that is.
    pub fn under(dirs: &Dirs, storage: &Storage) -> Option<Self> {
        let [leaf] = storage.leaves.as_slice() else { return None };
        // Without rights to the runtime directory nothing is known, as of any other disk.
        let names = names(dirs).ok()?;
        names.iter().find_map(|name| {
            let record: DiskRecord = read_json(&DiskDirs::of(dirs, name).ok()?.record()).ok()??;
            let disk = (devno_of(&record.device).ok()? == *leaf).then(|| Self::open(dirs, name));
            disk?.ok()
        })
    }

    /// Whether it ends with this process, which may then do with it what it likes.
    pub fn is_ours(&self) -> bool {
        self.server.is_some() && self.record.dies_with_creator
    }

    /// Ends the use of the disk: removes it if it is ours, and leaves that of others as it is.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub fn release(self) -> Result<(), VdiskError> {
        if self.is_ours() { self.remove() } else { Ok(()) }
    }

    /// What was made, with every setting that it got.
    pub fn record(&self) -> &DiskRecord {
        &self.record
    }

    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Where its filesystem is mounted; `None` for a raw disk.
    pub fn mountpoint(&self) -> Option<&Path> {
        self.record.mountpoint.as_deref()
    }

    pub fn device(&self) -> &Path {
        &self.record.device
    }

    /// The number of its block device.
    pub fn devno(&self) -> DevNo {
        self.devno
    }

    /// What to measure on: the mount point, or the device of a raw disk.
    pub fn target(&self) -> &Path {
        self.mountpoint().unwrap_or_else(|| self.device())
    }

    /// How many times slower than its model it runs.
    pub fn dilation(&self) -> f64 {
        self.record.dilation
    }

    /// Whether the model's times are kept. Off, every request is served at once: for laying out
    /// files. A new disk is timed.
    pub fn set_timing(&self, on: bool) -> Result<(), VdiskError> {
        control::tell(&self.home, ControlRequest::Timing { on })
    }

    /// What the disk has counted so far.
    pub fn counters(&self) -> Result<DiskCounters, VdiskError> {
        control::counters(&self.home)
    }

    /// Begins to count anew.
    pub fn reset_counters(&self) -> Result<(), VdiskError> {
        control::tell(&self.home, ControlRequest::Reset)
    }

    /// Unmounts it, ends its server and leaves nothing behind.
    ///
    /// # Errors
    ///
    /// [`VdiskError::Busy`] while somebody uses the filesystem or the block device. The disk then
    /// goes on working (if only the device is used, after its filesystem was mounted anew), or, if
    /// it dies with its creator, is taken down by force a moment later.
    pub fn remove(mut self) -> Result<(), VdiskError> {
        drop(self.hold.take());
        take_down(&self.home, InUse::Refuse)?;
        self.removed = true;
        reap(self.server.take());
        Ok(())
    }
}

impl Drop for VirtualDisk {
    fn drop(&mut self) {
        if self.is_ours() && !self.removed {
            if let Err(error) = take_down(&self.home, InUse::Force) {
                tracing::warn!("virtual disk {} was not removed: {error}", self.record.name);
            }
            reap(self.server.take());
        }
    }
}

/// Waits for a server that is about to end. Its standard input is closed first, which would make
/// it end if nothing else did.
fn reap(server: Option<Child>) {
    if let Some(mut server) = server {
        drop(server.stdin.take());
        if let Err(error) = server.wait() {
            tracing::debug!("the server's end was not seen: {error}");
        }
    }
}

/// Builds the disk from the bottom up.
fn build(
    home: &DiskDirs,
    config: &DiskConfig,
    command: &ServerCommand,
    lifetime: Lifetime,
    child: &mut Option<Child>,
) -> Result<(DiskRecord, DevNo), VdiskError> {
    let job = ServerJob {
        model: config.model.to_toml(),
        size: config.size,
        dilation: config.dilation_factor(),
        seed: config.seed,
        dies_with_creator: lifetime == Lifetime::DiesWithMe,
    };
    write_json(&home.job(), &job)?;
    let server = start_server(home, command, lifetime, child)?;
    let device = loop_device::attach(home)?;
    let queue = loop_device::set_up_queue(device.number(), config.model.host(), job.dilation)?;
    mkfs::make(config.filesystem, &device.path())?;
    let mountpoint = mkfs::mount(home, config.filesystem, &device.path())?;
    let devno = devno_of(&device.path())?;
    let record = DiskRecord {
        name: home.name(),
        words: config.to_string(),
        model: job.model,
        filesystem: config.filesystem,
        size: job.size,
        dilation: job.dilation,
        seed: job.seed,
        pid: server.pid,
        device: device.path(),
        loop_number: device.number(),
        mountpoint,
        queue,
        realtime: server.realtime,
        dies_with_creator: job.dies_with_creator,
    };
    write_json(&home.record(), &record)?;
    match waking::measure(home, &record.device) {
        Ok(early) => tracing::debug!("answers to lone requests go out early: {early:?}"),
        Err(error) => tracing::warn!("what waking takes was not measured: {error}"),
    }
    control::tell(home, ControlRequest::Timing { on: true })?;
    control::tell(home, ControlRequest::Reset)?;
    Ok((record, devno))
}

fn start_server(
    home: &DiskDirs,
    command: &ServerCommand,
    lifetime: Lifetime,
    child: &mut Option<Child>,
) -> Result<ServerFacts, VdiskError> {
    let log_path = home.log();
    let log = File::create(&log_path).map_err(VdiskError::io("making", &log_path))?;
    let stdin = match lifetime {
        Lifetime::DiesWithMe => Stdio::piped(),
        Lifetime::Kept => Stdio::null(),
    };
    let started = Command::new(&command.program)
        .args(&command.args)
        .arg(DIR_FLAG)
        .arg(home.dir())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(VdiskError::io("starting", &command.program))?;
    let stdout = child.insert(started).stdout.take();
    let ready = stdout.is_some_and(says_ready);
    let facts = read_json(&home.server_facts())?.filter(|_| ready);
    if facts.is_none() {
        // It may hang; what it has set up is then taken down without it.
        let _ = child.as_mut().map(Child::kill);
    }
    facts.ok_or_else(|| VdiskError::Server { name: home.name(), message: home.last_words() })
}

/// Waits for the server's one line.
fn says_ready(mut stdout: ChildStdout) -> bool {
    let patience = Timespec { tv_sec: START_SECONDS, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&patience)) {
            Ok(1..) => return matches!(stdout.read(&mut [0; 64]), Ok(1..)),
            Err(rustix::io::Errno::INTR) => {}
            _ => return false,
        }
    }
}

fn devno_of(device: &Path) -> Result<DevNo, VdiskError> {
    let meta = std::fs::metadata(device).map_err(VdiskError::io("looking at", device))?;
    Ok(DevNo::from_raw(meta.rdev()))
}
