//! Removes a virtual disk in any state.
//!
//! A process other than the server does this, because unmounting writes to the disk and waits for
//! it. If the server replies, the disk is removed in order. Otherwise the FUSE connection is
//! aborted first, so that all waiting I/O fails and the same steps succeed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sys::lock::Lock;
use sys::{loopdev, mounts, process};

use crate::control::{self, ControlRequest};
use crate::error::VdiskError;
use crate::layout::{DiskDirs, ServerFacts, read_json};
use crate::loop_device::{self, AttachedLoop};
use crate::mkfs;
use crate::record::DiskRecord;
use crate::users;

/// Time limits for short delays: an unmount while a probe of udev has the device open, the release
/// of a loop device after its last user, the exit of a server.
const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(3);
const LONG_UNMOUNT_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// How long the kernel may take for a step that nothing obstructs.
const STEP_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the steps of a removal may wait for users of the disk: [`UNMOUNT_TIMEOUT`] together, as
/// users that obstructed one step will obstruct the next.
#[derive(Clone, Copy, Debug)]
struct Patience {
    until: Instant,
}

impl Patience {
    fn new() -> Self {
        Self { until: Instant::now() + UNMOUNT_TIMEOUT }
    }

    fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now()).max(STEP_TIMEOUT)
    }
}

/// What to do if the disk is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InUse {
    /// Return an error and change nothing, unless the server is dead.
    Refuse,
    /// Remove the disk nevertheless: its creator has exited.
    Force,
}

/// Unmounts the disk, releases its loop device, stops its server and removes its directory. Skips
/// steps that are already done.
pub(crate) fn take_down(home: &DiskDirs, in_use: InUse) -> Result<(), VdiskError> {
    let Some(parent) = home.dir().parent().filter(|parent| parent.is_dir()) else { return Ok(()) };
    let lock = parent.join(".lock");
    let _lock = Lock::acquire(&lock).map_err(VdiskError::io("locking", &lock))?;
    if !home.exists() {
        return Ok(());
    }
    let server = read_json::<ServerFacts>(&home.server_facts()).ok().flatten();
    if in_use == InUse::Refuse && may_answer(home) {
        // Check before timing changes, so that a disk that stays is unaffected.
        refuse_used(home)?;
    }
    let was_timed = hurry(home, in_use, server.as_ref())?;
    // A disk without a server is unusable anyway.
    let in_use = if was_timed.is_none() { InUse::Force } else { in_use };
    if was_timed.is_none() {
        cut(server.as_ref());
    }
    let was_mounted = is_mounted(&home.mountpoint());
    let patience = Patience::new();
    let released = unmount(&home.mountpoint(), in_use, patience)
        .and_then(|()| release_loop_devices(home, in_use, server.as_ref(), patience));
    if let Err(error) = released {
        if let Some(timing) = was_timed
            && let Err(spoilt) = put_back(home, was_mounted, timing)
        {
            tracing::warn!("{} could not be restored: {spoilt}", home.name());
        }
        return Err(error);
    }
    unmount_fuse(home, server.as_ref(), patience)?;
    end_server(server.as_ref(), patience);
    remove_files(home)
}

/// Returns an error if the disk is in use. Users in other namespaces are invisible here, but make
/// unmounting fail.
fn refuse_used(home: &DiskDirs) -> Result<(), VdiskError> {
    let mut places = vec![home.mountpoint()];
    places.extend(loop_device::over_files_in(home.dir()));
    let start = Instant::now();
    while let Some(path) = users::used(&places) {
        if start.elapsed() > UNMOUNT_TIMEOUT {
            return Err(VdiskError::Busy { path });
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
    Ok(())
}

/// Returns whether the disk's server replies, or may do so later.
pub(crate) fn may_answer(home: &DiskDirs) -> bool {
    let server = read_json::<ServerFacts>(&home.server_facts()).ok().flatten();
    server.as_ref().is_some_and(is_able)
}

/// Switches the server's timing off, because unmounting writes to the disk, and returns whether it
/// was on; `None` if the server will never reply. With `InUse::Refuse`, a late reply is an error: a
/// busy machine is no reason to abort the I/O of users.
fn hurry(
    home: &DiskDirs,
    in_use: InUse,
    server: Option<&ServerFacts>,
) -> Result<Option<bool>, VdiskError> {
    let asked = control::counters(home).and_then(|was| {
        control::send(home, ControlRequest::Timing { on: false }).map(|()| was.timing)
    });
    match asked {
        Ok(timing) => Ok(Some(timing)),
        Err(VdiskError::Dead { .. }) => Ok(None),
        Err(error) if in_use == InUse::Refuse && server.is_some_and(is_able) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Restores a disk that cannot be removed.
fn put_back(home: &DiskDirs, was_mounted: bool, timing: bool) -> Result<(), VdiskError> {
    let record = read_json::<DiskRecord>(&home.record()).ok().flatten();
    let mounted = match record {
        Some(record) if was_mounted && !is_mounted(&home.mountpoint()) => {
            mkfs::mount(home, record.filesystem, &record.device).map(|_| ())
        }
        _ => Ok(()),
    };
    // Last, because mounting reads and writes. Also if mounting failed.
    control::send(home, ControlRequest::Timing { on: timing }).and(mounted)
}

/// Returns whether the server can reply, now or later.
fn is_able(server: &ServerFacts) -> bool {
    is_alive(server) && !process::is_stopped(server.pid)
}

/// Removes the disk by force after its creator has exited. Then waits for processes that have its
/// loop device open, because the device can only be removed after the last one closes it.
pub(crate) fn take_down_for_good(home: &DiskDirs) -> Result<(), VdiskError> {
    let added = read_json::<AttachedLoop>(&home.loop_device()).ok().flatten();
    take_down(home, InUse::Force)?;
    if let Some(added) = added {
        remove_loop_device(added, LONG_UNMOUNT_TIMEOUT);
    }
    Ok(())
}

/// Makes all present and future I/O of the disk fail.
fn cut(server: Option<&ServerFacts>) {
    if let Some(server) = server {
        let abort = format!("/sys/fs/fuse/connections/{}/abort", server.connection);
        // The file is missing if the connection is gone or fusectl is not mounted. Killing the
        // server then aborts the connection.
        if fs::write(abort, "1").is_err() {
            kill(server);
        }
    }
}

fn unmount(target: &Path, in_use: InUse, patience: Patience) -> Result<(), VdiskError> {
    let (start, limit) = (Instant::now(), patience.left());
    while is_mounted(target) {
        match mounts::unmount(target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                if start.elapsed() < limit {
                    std::thread::sleep(RETRY_INTERVAL);
                } else if in_use == InUse::Refuse {
                    return Err(VdiskError::Busy { path: target.to_owned() });
                } else {
                    mounts::detach(target).map_err(VdiskError::io("detaching", target))?;
                }
            }
            Err(error) if !is_mounted(target) => {
                tracing::debug!("{} was unmounted by another process: {error}", target.display());
            }
            Err(error) => return Err(VdiskError::io("unmounting", target)(error)),
        }
    }
    Ok(())
}

fn is_mounted(target: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    host::parse_mountinfo(&table).iter().any(|info| info.mount.point == target)
}

fn release_loop_devices(
    home: &DiskDirs,
    in_use: InUse,
    server: Option<&ServerFacts>,
    patience: Patience,
) -> Result<(), VdiskError> {
    let is_free = match in_use {
        InUse::Refuse => release_free_devices(home)?,
        InUse::Force => release_all(home, server, patience)?,
    };
    if let (true, Ok(Some(added))) = (is_free, read_json(&home.loop_device())) {
        remove_loop_device(added, patience.left());
    }
    Ok(())
}

/// Releases the loop devices that no other process has open; does not change the others.
fn release_free_devices(home: &DiskDirs) -> Result<bool, VdiskError> {
    let start = Instant::now();
    loop {
        let mut busy = None;
        for device in loop_device::over_files_in(home.dir()) {
            let released = loopdev::release_if_free(&device);
            if !released.map_err(VdiskError::io("releasing", &device))? {
                busy = Some(device);
            }
        }
        match busy {
            None => break,
            Some(path) if start.elapsed() > UNMOUNT_TIMEOUT => {
                return Err(VdiskError::Busy { path });
            }
            Some(_) => std::thread::sleep(RETRY_INTERVAL),
        }
    }
    Ok(wait_until(UNMOUNT_TIMEOUT, || loop_device::over_files_in(home.dir()).is_empty()))
}

/// Releases all loop devices, and returns whether they are free. Processes that have one open get
/// errors; the device disappears when they close it.
fn release_all(
    home: &DiskDirs,
    server: Option<&ServerFacts>,
    patience: Patience,
) -> Result<bool, VdiskError> {
    let release = || -> Result<bool, VdiskError> {
        for device in loop_device::over_files_in(home.dir()) {
            loopdev::release(&device).map_err(VdiskError::io("releasing", &device))?;
        }
        Ok(wait_until(patience.left(), || loop_device::over_files_in(home.dir()).is_empty()))
    };
    if release()? {
        return Ok(true);
    }
    cut(server);
    release()
}

/// Removes the disk's loop device if that succeeds in time. A released device stays busy for a
/// moment, or as long as a process has it open.
fn remove_loop_device(added: AttachedLoop, patience: Duration) {
    let AttachedLoop { number } = added;
    let gone = || !Path::new(&format!("/sys/block/loop{number}")).exists();
    if !wait_until(patience, || gone() || loopdev::remove(number).is_ok()) {
        tracing::debug!("loop device {number} is still in use and stays");
    }
}

fn unmount_fuse(
    home: &DiskDirs,
    server: Option<&ServerFacts>,
    patience: Patience,
) -> Result<(), VdiskError> {
    let target = home.fuse();
    if unmount(&target, InUse::Refuse, patience).is_ok() {
        return Ok(());
    }
    cut(server);
    unmount(&target, InUse::Force, patience)
}

/// Waits until the server exits, as it does when its file system is unmounted; otherwise kills it.
fn end_server(server: Option<&ServerFacts>, patience: Patience) {
    let Some(server) = server else { return };
    if !wait_until(patience.left(), || !is_alive(server)) {
        kill(server);
        wait_until(UNMOUNT_TIMEOUT, || !is_alive(server));
    }
}

fn is_alive(server: &ServerFacts) -> bool {
    process::start_time(server.pid).is_ok_and(|started| started == Some(server.started))
}

fn kill(server: &ServerFacts) {
    let Some(pid) = i32::try_from(server.pid).ok().and_then(Pid::from_raw) else { return };
    // The descriptor refers to one process, so no process with a reused id is killed.
    let flags = rustix::process::PidfdFlags::empty();
    let Ok(handle) = rustix::process::pidfd_open(pid, flags) else { return };
    if is_alive(server)
        && let Err(error) = rustix::process::pidfd_send_signal(handle, Signal::KILL)
    {
        tracing::debug!("the server {} was not killed: {error}", server.pid);
    }
}

/// Removes only the disk's own files.
fn remove_files(home: &DiskDirs) -> Result<(), VdiskError> {
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    for file in home.files() {
        match fs::remove_file(&file) {
            Err(error) if !absent(&error) => return Err(VdiskError::io("removing", &file)(error)),
            _ => {}
        }
    }
    for dir in [home.fuse(), home.mountpoint(), home.dir().to_owned()] {
        match fs::remove_dir(&dir) {
            Err(error) if !absent(&error) => return Err(VdiskError::io("removing", &dir)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Waits until `condition` is true; returns false after the time limit.
fn wait_until(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
    true
}
