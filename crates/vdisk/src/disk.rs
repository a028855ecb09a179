//! A virtual disk, as its creator uses it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use host::{DevNo, Dirs, Storage};
use model::Spec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::availability::availability;
use crate::config::DiskConfig;
use crate::control::{self, ControlRequest};
use crate::counters::DiskCounters;
use crate::error::VdiskError;
use crate::layout::{DiskDirs, ServerFacts, ServerJob, read_json, write_json};
use crate::loop_device;
use crate::mkfs;
use crate::record::DiskRecord;
use crate::registry::{existing, names};
use crate::server::{DIR_FLAG, free_memory};
use crate::teardown::{InUse, take_down};
use crate::waking;

/// Time limit for the start of a server in seconds.
const START_SECONDS: i64 = 30;

/// The command that starts the server: a program that calls [`serve_main`](crate::serve_main) with
/// the arguments after `args`.
#[derive(Clone, Debug)]
pub struct ServerCommand {
    /// The program, usually foreread itself.
    pub program: PathBuf,
    /// Arguments that select the server: `["vdisk", "serve"]` for foreread.
    pub args: Vec<OsString>,
}

/// How long a virtual disk exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    Kept,
    /// Until it is removed or dropped, or its creator exits for any reason.
    DiesWithMe,
}

/// A running virtual disk.
#[derive(Debug)]
pub struct VirtualDisk {
    home: DiskDirs,
    record: DiskRecord,
    devno: DevNo,
    /// The server if this process started it; its standard input closes when this process exits.
    server: Option<Child>,
    removed: bool,
    /// The lock of a disk that dies with this process, which other processes must not remove.
    hold: Option<File>,
}

impl VirtualDisk {
    /// Creates a disk: starts its server, sets up the loop device, creates the file system and
    /// mounts it.
    ///
    /// # Errors
    ///
    /// If a requirement is missing ([`VdiskError::Unavailable`] names it with its package), the
    /// name is taken, memory is short, or a step fails. Nothing is left behind.
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
            None => DiskDirs::claim_numbered(dirs, &config.model.name)?,
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

    /// Opens the disk with this name, which another process or an earlier run created.
    pub fn open(dirs: &Dirs, name: &str) -> Result<Self, VdiskError> {
        let home = existing(dirs, name)?;
        let dead = || VdiskError::Dead { name: name.to_owned() };
        let record: DiskRecord = read_json(&home.record())?.ok_or_else(dead)?;
        control::counters(&home)?;
        let devno = devno_of(&record.device)?;
        Ok(Self { home, record, devno, server: None, removed: false, hold: None })
    }

    /// Returns the running virtual disk that is the only device of this storage, if there is one.
    pub fn find_below(dirs: &Dirs, storage: &Storage) -> Option<Self> {
        let [leaf] = storage.leaves.as_slice() else { return None };
        // Without access to the runtime directory, the device is treated like any other disk.
        let names = names(dirs).ok()?;
        names.iter().find_map(|name| {
            let record: DiskRecord =
                read_json(&DiskDirs::new(dirs, name).ok()?.record()).ok()??;
            let disk = (devno_of(&record.device).ok()? == *leaf).then(|| Self::open(dirs, name));
            disk?.ok()
        })
    }

    /// Returns whether the disk dies with this process, which may then change it freely.
    pub fn is_ours(&self) -> bool {
        self.server.is_some() && self.record.dies_with_creator
    }

    /// Stops using the disk, and removes it if it dies with this process. If it is in use, its
    /// server removes it as after the exit of this process: a result that was measured on it must
    /// not depend on who else has it open.
    ///
    /// # Errors
    ///
    /// Those of [`remove`](Self::remove), but for [`VdiskError::Busy`].
    pub fn release(mut self) -> Result<(), VdiskError> {
        if !self.is_ours() {
            return Ok(());
        }
        match self.take_down() {
            Err(VdiskError::Busy { .. }) => {
                self.removed = true;
                reap(self.server.take());
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Returns the description of the disk with all effective settings.
    pub fn record(&self) -> &DiskRecord {
        &self.record
    }

    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Returns the mount point; `None` for a raw disk.
    pub fn mountpoint(&self) -> Option<&Path> {
        self.record.mountpoint.as_deref()
    }

    pub fn device(&self) -> &Path {
        &self.record.device
    }

    /// Returns the number of the block device.
    pub fn devno(&self) -> DevNo {
        self.devno
    }

    /// Returns the target for measurements: the mount point, or the device of a raw disk.
    pub fn target(&self) -> &Path {
        self.mountpoint().unwrap_or_else(|| self.device())
    }

    /// Returns the disk's model, with the request size that the kernel permitted.
    ///
    /// # Errors
    ///
    /// If the stored model is damaged.
    pub fn model(&self) -> Result<Spec, VdiskError> {
        let path = self.home.record();
        let broken = |source| VdiskError::ModelFile { path: path.clone(), source };
        let mut model = Spec::from_toml(&self.record.model).map_err(broken)?;
        model.host.max_request = self.record.queue.request_size;
        Ok(model)
    }

    /// Returns how many times slower than its model the disk runs.
    pub fn dilation(&self) -> f64 {
        self.record.dilation
    }

    /// Enables or disables the model's times. Without them, the disk serves every request
    /// immediately, for example while files are created. A new disk is timed.
    pub fn set_timing(&self, on: bool) -> Result<(), VdiskError> {
        control::send(&self.home, ControlRequest::Timing { on })
    }

    /// Returns the current counters.
    pub fn counters(&self) -> Result<DiskCounters, VdiskError> {
        control::counters(&self.home)
    }

    /// Empties the caches of the modelled device and resets the counters. Requests that are waiting
    /// are answered immediately.
    pub fn reset(&self) -> Result<(), VdiskError> {
        control::send(&self.home, ControlRequest::Reset)
    }

    /// Unmounts the disk, stops its server and removes all its files.
    ///
    /// # Errors
    ///
    /// [`VdiskError::Busy`] while the file system or the block device is in use. The disk then
    /// continues to work (remounted if only the device is in use). If it dies with its creator, it
    /// is removed by force a moment later.
    pub fn remove(mut self) -> Result<(), VdiskError> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), VdiskError> {
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

/// Waits until a stopping server has exited. Closes its standard input first, which would also make
/// it exit.
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
    let queue = loop_device::set_up_queue(device.number(), &config.model, job.dilation)?;
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
        Ok(early) => tracing::debug!("replies to lone requests are sent early: {early:?}"),
        Err(error) => tracing::warn!("the wake-up time was not measured: {error}"),
    }
    control::send(home, ControlRequest::Timing { on: true })?;
    control::send(home, ControlRequest::Reset)?;
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
        // A server that did not start may hang: kill it; the caller removes what it has set up.
        let _ = child.as_mut().map(Child::kill);
    }
    facts.ok_or_else(|| VdiskError::Server { name: home.name(), message: home.last_words() })
}

/// Waits for the server's ready message.
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
