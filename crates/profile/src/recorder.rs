//! Records a profile: the probes, the command and the clock.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use host::Root;
use observe::{ProfileItem, ProfileProbes, ProfileScope, Rung};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use sys::extents::FileExtent;
use units::{Bytes, Nanos};

use crate::collect::Collector;
use crate::directories::listed_directories;
use crate::error::ProfileError;
use crate::limits::CgroupLimits;
use crate::names::{MountPoints, device_name};
use crate::recording::ProfileRecording;
use crate::symbols::StackTable;

/// Maximum time that events stay in the kernel. Its ring holds 131,000 events; the ring of stacks
/// and names wakes its reader when it is half full.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of files whose location on the device is looked up.
const MAX_PLACED_FILES: usize = 1 << 16;

/// Processes to profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordTarget {
    /// A command, which the recorder starts, and all its children.
    Command(Vec<String>),
    Process(u32),
    /// Cgroups, by the inodes of their directories.
    Cgroups(Vec<u64>),
    System,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Recorder {
    probes: ProfileProbes,
    collector: Collector,
    stacks: StackTable,
    limits: CgroupLimits,
    mounts: MountPoints,
    root: Root,
    target: RecordTarget,
    output_to_stderr: bool,
}

impl Recorder {
    /// Loads the probes.
    ///
    /// # Errors
    ///
    /// If privileges are missing or the kernel rejects the probes.
    pub fn new(target: RecordTarget) -> Result<Self, ProfileError> {
        let own = std::process::id();
        let scope = match &target {
            RecordTarget::Command(_) => ProfileScope::ChildrenOf(own),
            RecordTarget::Process(pid) => ProfileScope::Processes(vec![*pid]),
            RecordTarget::Cgroups(ids) => ProfileScope::Cgroups(ids.clone()),
            RecordTarget::System => ProfileScope::AllBut(own),
        };
        let root = Root::system();
        Ok(Self {
            probes: ProfileProbes::new(&scope)?,
            collector: Collector::new(),
            stacks: StackTable::new(),
            limits: CgroupLimits::default(),
            mounts: MountPoints::read(&root),
            root,
            target,
            output_to_stderr: false,
        })
    }

    /// Redirects the standard output of the command to stderr.
    #[must_use]
    pub fn with_output_to_stderr(mut self) -> Self {
        self.output_to_stderr = true;
        self
    }

    /// Records until the command or process exits, `most` elapses or `stop` returns a signal. A
    /// command receives the first such signal or, after `most`, `SIGTERM`; its exit is awaited.
    ///
    /// # Errors
    ///
    /// If the command cannot be started or waited for.
    pub fn record(
        mut self,
        most: Option<Duration>,
        mut stop: impl FnMut() -> Option<Signal>,
    ) -> Result<(ProfileRecording, Option<ExitStatus>), ProfileError> {
        self.collector.start_at(monotonic_now());
        let mut child = self.start()?;
        let began = Instant::now();
        // The descriptor is readable when the command has exited.
        let exit = child.as_ref().map(Pid::from_child);
        let exit = exit.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut status = None;
        let mut stopping = false;
        loop {
            self.probes.wait(DRAIN_INTERVAL, exit.as_ref().map(AsFd::as_fd))?;
            self.drain();
            if let Some(child) = &mut child {
                status = child.try_wait().map_err(|source| ProfileError::Wait { source })?;
            }
            if let Some(signal) = stop().filter(|_| !stopping) {
                stopping = true;
                pass_on(child.as_ref(), signal);
            }
            let is_over = most.is_some_and(|most| began.elapsed() >= most);
            if is_over && !stopping {
                stopping = true;
                pass_on(child.as_ref(), Signal::TERM);
            }
            let ended = match &child {
                Some(_) => status.is_some(),
                None => stopping || self.has_exited(),
            };
            if ended {
                break;
            }
        }
        let wall = began.elapsed();
        self.drain();
        Ok((self.finish(wall), status))
    }

    fn start(&self) -> Result<Option<Child>, ProfileError> {
        let RecordTarget::Command(words) = &self.target else { return Ok(None) };
        let (program, arguments) =
            words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let mut command = Command::new(program);
        command.args(arguments);
        if self.output_to_stderr {
            command.stdout(io::stderr());
        }
        let program = program.to_owned();
        command
            .spawn()
            .map(Some)
            .map_err(|source: io::Error| ProfileError::NotStarted { program, source })
    }

    fn has_exited(&self) -> bool {
        match self.target {
            RecordTarget::Process(pid) => !self.root.path(format!("/proc/{pid}")).exists(),
            _ => false,
        }
    }

    fn drain(&mut self) {
        let Self { probes, collector, stacks, limits, mounts, root, .. } = self;
        probes.drain(|item| match item {
            ProfileItem::Stack(stack) => {
                let is_new = stacks.add(&stack);
                limits.check_process(root, stack.pid, is_new);
            }
            ProfileItem::Name(name) => {
                let path = units::text::plain(&mounts.path(root, &name));
                collector.name(name.inode, name.size, path);
            }
            ProfileItem::Event(event) => collector.event(&event, stacks),
        });
    }

    fn finish(mut self, wall: Duration) -> ProfileRecording {
        for time in self.probes.thread_times() {
            self.collector.account(&time);
        }
        let losses = self.probes.losses();
        let uring_reads = self.probes.uring_reads();
        let signals = self.probes.signals().iter();
        let missing = signals.filter(|signal| signal.rung == Rung::Missing);
        let missing: Vec<String> = missing.map(|signal| signal.name.clone()).collect();
        drop(self.probes);
        let wall = Nanos::new(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX));
        let mut recording = self.collector.finish(wall);
        recording.missing = missing;
        recording.uring_reads = uring_reads;
        recording.limits = self.limits.into_limits();
        recording.lost = losses.events + losses.details;
        let waits = recording.waits.iter().map(|wait| wait.stack);
        let used = waits.chain(recording.advice.iter().map(|advice| advice.stack)).collect();
        recording.stacks = self.stacks.resolve(&used);
        for stack in &mut recording.stacks {
            for frame in stack.kernel.iter_mut().chain(&mut stack.user) {
                frame.function = units::text::plain(&frame.function);
                frame.module = units::text::plain(&frame.module);
            }
        }
        recording.target = match &self.target {
            RecordTarget::Command(words) => units::text::plain(&words.join(" ")),
            RecordTarget::Process(pid) => format!("pid {pid}"),
            RecordTarget::Cgroups(_) => "cgroup".to_owned(),
            RecordTarget::System => "system".to_owned(),
        };
        place_files(&mut recording);
        recording.directories = listed_directories(&recording);
        for device in recording.files.iter().map(|file| file.id.device).collect::<BTreeSet<_>>() {
            if let Some(window) = read_ahead(&self.root, device) {
                recording.read_ahead.insert(device, window);
            }
        }
        for request in &recording.requests {
            recording.devices.entry(request.device).or_insert_with(|| {
                let name = device_name(&self.root, request.device);
                name.unwrap_or_else(|| request.device.to_string())
            });
        }
        recording
    }
}

fn monotonic_now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let nanos = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    Nanos::new(u64::try_from(nanos).unwrap_or_default())
}

fn pass_on(child: Option<&Child>, signal: Signal) {
    if let Some(child) = child {
        let _ = kill_process(Pid::from_child(child), signal);
    }
}

/// Returns the read-ahead of a file system on this device, which may be a partition.
fn read_ahead(root: &Root, device: host::DevNo) -> Option<Bytes> {
    let places = [
        format!("/sys/class/bdi/{device}/read_ahead_kb"),
        format!("/sys/dev/block/{device}/../queue/read_ahead_kb"),
    ];
    let texts = places.iter().filter_map(|path| std::fs::read_to_string(root.path(path)).ok());
    texts.filter_map(|text| text.trim().parse().ok()).next().map(Bytes::from_kib)
}

/// Looks up where files lie on their devices, if their paths still refer to them.
fn place_files(recording: &mut ProfileRecording) {
    use std::os::unix::fs::MetadataExt as _;
    let accesses = recording.accesses.iter().map(|access| access.inode);
    let used: BTreeSet<u32> =
        accesses.chain(recording.waits.iter().filter_map(|it| it.inode)).collect();
    for place in used.into_iter().take(MAX_PLACED_FILES) {
        let file = &mut recording.files[place as usize];
        let Ok(opened) = std::fs::File::open(&file.path) else { continue };
        let same =
            opened.metadata().is_ok_and(|found| found.ino() == file.id.inode && found.is_file());
        if same && let Ok(extents) = sys::extents::extents(opened.as_fd()) {
            file.start = extents.first().map(|extent| extent.physical);
            file.jumps = jumps(&extents);
        }
    }
}

/// Returns the offsets at which a file continues elsewhere on the device.
fn jumps(extents: &[FileExtent]) -> Vec<Bytes> {
    let pairs = extents.windows(2).filter(|two| two[0].physical + two[0].length != two[1].physical);
    pairs.map(|two| two[1].logical).collect()
}
