//! The process that serves a virtual disk.

mod engine;
mod fuse;
mod margin;
mod queue;
mod store;
mod tally;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fuser::{MountOption, Session};
use model::SpecError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use sys::process;
use sys::realtime::{self, Awake};
use tracing::{debug, warn};

pub(crate) use store::free_memory;

use crate::control::{self, ControlReply, ControlRequest};
use crate::error::VdiskError;
use crate::layout::{DiskDirs, ServerFacts, ServerJob, read_json, write_json};
use crate::teardown;
use engine::ServiceEngine;
use fuse::{DiskFile, DiskFs};
use store::BlockStore;

/// Real-time priorities: above everything except the kernel's threads at 50. The timer's priority
/// is above that of the threads that accept requests.
const TIMER_PRIORITY: i32 = 20;
const WORKER_PRIORITY: i32 = 10;

/// Arguments of a server after those of its `ServerCommand`.
pub(crate) const DIR_FLAG: &str = "--dir";
const CLEAN_FLAG: &str = "--clean";

/// Implements the hidden verb `foreread vdisk serve`: serves a disk until it is unmounted or its
/// creator exits. `args` are the arguments after [`ServerCommand::args`].
///
/// [`ServerCommand::args`]: crate::ServerCommand
pub fn serve_main(args: impl IntoIterator<Item = OsString>) -> Result<(), VdiskError> {
    let mut args = args.into_iter();
    let (mut dir, mut clean) = (None, false);
    while let Some(arg) = args.next() {
        if arg == DIR_FLAG {
            dir = args.next();
        } else if arg == CLEAN_FLAG {
            clean = true;
        }
    }
    let dir = dir.ok_or_else(|| VdiskError::BadValue {
        key: DIR_FLAG,
        value: String::new(),
        reason: "this is for foreread itself; use `foreread vdisk create`".to_owned(),
    })?;
    let home = DiskDirs::from_path(PathBuf::from(dir));
    // Ctrl-C at the terminal is for the creator. This fails if the process already leads a session.
    let _ = process::leave_session();
    if clean { teardown::take_down_for_good(&home) } else { serve(&home) }
}

fn serve(home: &DiskDirs) -> Result<(), VdiskError> {
    let job: ServerJob = read_json(&home.job())?
        .ok_or_else(|| VdiskError::NoSuchDisk { name: home.name(), known: Vec::new() })?;
    std::env::set_current_dir("/").map_err(VdiskError::io("going to", Path::new("/")))?;
    if let Err(error) = realtime::lock_memory() {
        warn!("memory is not locked, so paging may delay the disk: {error}");
    }
    let model = model::Spec::from_toml(&job.model)?;
    let engine = ServiceEngine::new(model.build(job.seed)?, job.dilation)
        .map_err(VdiskError::system("making a timer"))?;
    let store = BlockStore::new(job.size)?;
    let disk = Arc::new(DiskFile { engine, store, model, seed: job.seed.into() });
    let session = mount(home, &disk)?;
    let signals = watch_signals().map_err(VdiskError::system("watching for signals"))?;
    let (ended, realtime) =
        start_threads(&disk, session).map_err(VdiskError::system("starting threads"))?;
    let listener = control::listen(home)?;
    announce(home, realtime)?;
    let events = Events { listener, ended, signals, lifeline: job.dies_with_creator };
    let outcome = watch(&events, &disk);
    disk.engine.stop();
    outcome
}

fn mount(home: &DiskDirs, disk: &Arc<DiskFile>) -> Result<Session<DiskFs>, VdiskError> {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::FSName("foreread".to_owned()),
        MountOption::Subtype("foreread".to_owned()),
    ];
    // At least two threads: one accepts requests while the other copies up to 1 MiB.
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    config.n_threads = Some(cpus.clamp(2, 4));
    config.clone_fd = true;
    let target = home.fuse();
    Session::new(DiskFs::new(disk.clone()), &target, &config)
        .map_err(VdiskError::io("mounting FUSE at", &target))
}

/// Starts the timer and the FUSE threads. Returns a socket that closes when FUSE has stopped, and
/// whether both have real-time priority.
fn start_threads(disk: &Arc<DiskFile>, session: Session<DiskFs>) -> io::Result<(UnixStream, bool)> {
    let (ended, end) = UnixStream::pair()?;
    let (report, reports) = mpsc::channel();
    let timer = (disk.clone(), report.clone());
    thread::Builder::new().name("vdisk-timer".to_owned()).spawn(move || {
        let (disk, report) = timer;
        let _ = report
            .send(realtime::set_realtime_priority(TIMER_PRIORITY).and(realtime::exact_timers()));
        disk.engine.run_timer(|due| disk.answer(due));
    })?;
    thread::Builder::new().name("vdisk-fuse".to_owned()).spawn(move || {
        // The session's threads inherit the priority.
        let _ = report.send(realtime::set_realtime_priority(WORKER_PRIORITY));
        drop(report);
        if let Err(error) = session.run() {
            warn!("FUSE ended: {error}");
        }
        drop(end);
    })?;
    let reader = disk.clone();
    thread::Builder::new().name("vdisk-awake".to_owned()).spawn(move || stay_awake(&reader))?;
    let mut realtime = true;
    for outcome in reports.iter().take(2) {
        if let Err(error) = outcome {
            warn!("no real-time priority, so other programs may delay the disk: {error}");
            realtime = false;
        }
    }
    Ok((ended, realtime))
}

/// Keeps the processors awake while the disk is being read. Otherwise replies wait until the
/// reader's processor wakes up, which takes longer after longer waits. If idle, lets them sleep.
fn stay_awake(disk: &DiskFile) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    const MAX_UNUSED_CHECKS: u32 = 20;
    let (mut awake, mut reads, mut unused) = (None, 0, 0);
    loop {
        thread::sleep(CHECK_INTERVAL);
        let now = disk.engine.tally.reads();
        unused = if now == reads { unused + 1 } else { 0 };
        reads = now;
        if unused >= MAX_UNUSED_CHECKS {
            awake = None;
        } else if unused == 0 && awake.is_none() {
            match Awake::stay() {
                Ok(request) => awake = Some(request),
                Err(error) => {
                    return warn!("processors may sleep, which delays replies: {error}");
                }
            }
        }
    }
}

/// Returns a socket that becomes readable when a signal requests termination.
fn watch_signals() -> io::Result<UnixStream> {
    let (receive, send) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, send.try_clone()?)?;
    }
    Ok(receive)
}

/// Stores this server's facts, and reports to the creator that it is ready.
fn announce(home: &DiskDirs, realtime: bool) -> Result<(), VdiskError> {
    let pid = std::process::id();
    let started = process::start_time(pid).ok().flatten().unwrap_or_default();
    let connection = connection_of(&home.fuse())?;
    let facts = ServerFacts { pid, started, connection, realtime };
    write_json(&home.server_facts(), &facts)?;
    // If the creator has exited, another check detects it.
    let _ = io::stdout().write_all(b"ready\n").and_then(|()| io::stdout().flush());
    Ok(())
}

/// Returns the number of the FUSE connection from the mount table. A system call on the file system
/// would wait for this process itself.
fn connection_of(mountpoint: &Path) -> Result<u32, VdiskError> {
    let table = Path::new("/proc/self/mountinfo");
    let text = std::fs::read_to_string(table).map_err(VdiskError::io("reading", table))?;
    host::parse_mountinfo(&text)
        .iter()
        .rev()
        .find(|info| info.mount.point == mountpoint)
        .map(|info| info.device.minor)
        .ok_or_else(|| {
            VdiskError::io("finding the mount", mountpoint)(io::ErrorKind::NotFound.into())
        })
}

/// Events for the server's main thread.
struct Events {
    listener: UnixListener,
    /// Closed when FUSE is unmounted or its connection is aborted.
    ended: UnixStream,
    signals: UnixStream,
    /// Whether end of file on standard input means that the creator has exited.
    lifeline: bool,
}

/// Answers requests until FUSE stops. When the creator exits, or on a signal, starts the process
/// that removes the disk, which stops FUSE.
fn watch(events: &Events, disk: &DiskFile) -> Result<(), VdiskError> {
    let mut cleaner: Option<Child> = None;
    loop {
        let happened = wait(events, cleaner.is_some()).map_err(VdiskError::system("waiting"))?;
        if happened.ended {
            return Ok(());
        }
        if happened.question {
            control::serve_one(&events.listener, |question| answer(disk, question));
        }
        match &mut cleaner {
            None if happened.end => cleaner = Some(start_cleaner()?),
            None => {}
            Some(child) => {
                if let Ok(Some(status)) = child.try_wait() {
                    debug!("the cleaner has ended: {status}");
                    return Ok(());
                }
            }
        }
    }
}

struct Happened {
    ended: bool,
    end: bool,
    question: bool,
}

fn wait(events: &Events, ending: bool) -> io::Result<Happened> {
    let stdin = io::stdin();
    let mut fds = [
        PollFd::new(&events.ended, PollFlags::IN),
        PollFd::new(&events.listener, PollFlags::IN),
        PollFd::from_borrowed_fd(events.signals.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
    ];
    // During termination, the sources that requested it would always be ready.
    let watched = if ending { 2 } else { 3 + usize::from(events.lifeline) };
    let step = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut fds[..watched], ending.then_some(&step)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    let creator_gone = ready[3] && is_at_end(stdin);
    Ok(Happened { ended: ready[0], question: ready[1], end: ready[2] || creator_gone })
}

/// Returns whether standard input is at its end. Ignores data that the creator may have sent.
fn is_at_end(mut stdin: io::Stdin) -> bool {
    !matches!(stdin.read(&mut [0; 64]), Ok(1..))
}

fn answer(disk: &DiskFile, question: ControlRequest) -> Result<ControlReply, SpecError> {
    match question {
        ControlRequest::Counters => {
            let mut counters = disk.engine.counters();
            counters.stored = disk.store.stored();
            return Ok(ControlReply::Counters(Box::new(counters)));
        }
        ControlRequest::Reset => disk.reset()?,
        ControlRequest::Probe { service } => {
            let device = service.map(|service| disk.engine.constant(service)).transpose()?;
            disk.change(|engine, due| engine.probe(device, due));
        }
        ControlRequest::HeadStart { early } => disk.engine.set_head_start(early),
        ControlRequest::Timing { on } => disk.change(|engine, due| engine.set_timing(on, due)),
    }
    Ok(ControlReply::Done)
}

/// Starts this program again to remove the disk, while this process continues to serve it.
fn start_cleaner() -> Result<Child, VdiskError> {
    let this = Path::new("/proc/self/exe");
    Command::new(this)
        .args(std::env::args_os().skip(1))
        .arg(CLEAN_FLAG)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(VdiskError::io("starting", this))
}
