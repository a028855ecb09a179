//! The profiler's probes: waits of selected processes with their stacks, and their causes.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, RingBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::object::{KernelTypes, PROFILE, load, of_chain};
use crate::probes::{ProbeAttempt, climb, fentry, kprobe, ladders, tracepoint};
use crate::profile_event::{
    ProfileItem, ThreadTime, UringReads, name, profile_events, stack, thread_time,
};
use crate::profile_record::{NameRecord, ProfileConfig, StackRecord, ThreadTimeRecord};
use crate::record::Plain;
use crate::{ObserveError, Rung, Signal};

const OBJECT: &str = "profile";

/// Accesses to pages of mappings that are cached but not mapped.
const TOUCHES: &str = "filemap_map_pages";
/// Further signals for the tracepoint of touched pages, which does not report the page.
const FAULTS_OF_TOUCHES: [&str; 2] = ["page_fault_user", "page_fault_kernel"];

/// Signals that the profiler requires.
const NEEDED: &[ProbeAttempt] = &[
    tracepoint("sched_switch", "sched_switch", "thread_switches"),
    tracepoint("sched_switch", "sched_switch", "thread_switches_3"),
    tracepoint("sched_wakeup", "sched_wakeup", "thread_wakes"),
    tracepoint("sched_process_fork", "sched_process_fork", "process_forks"),
];

const FURTHER: &[ProbeAttempt] = &[
    tracepoint("sched_process_exit", "sched_process_exit", "thread_exits"),
    tracepoint("sys_enter", "sys_enter", "call_enters"),
    tracepoint("sys_exit", "sys_exit", "call_returns"),
    tracepoint("mm_filemap_fault", "mm_filemap_fault", "page_fault"),
    fentry("mm_filemap_fault", "filemap_fault", "fault_fentry"),
    kprobe("mm_filemap_fault", "filemap_fault", "fault_kprobe"),
    fentry(TOUCHES, "filemap_map_pages", "touch_fentry"),
    kprobe(TOUCHES, "filemap_map_pages", "touch_kprobe"),
    tracepoint(TOUCHES, "mm_filemap_map_pages", "touch_tracepoint"),
    tracepoint(FAULTS_OF_TOUCHES[0], "page_fault_user", "user_faults"),
    tracepoint(FAULTS_OF_TOUCHES[1], "page_fault_kernel", "kernel_faults"),
    tracepoint("page_cache_sync_ra", "page_cache_sync_ra", "page_miss"),
    fentry("page_cache_sync_ra", "page_cache_sync_ra", "miss_fentry"),
    kprobe("page_cache_sync_ra", "page_cache_sync_ra", "miss_kprobe"),
    tracepoint("page_cache_async_ra", "page_cache_async_ra", "page_mark"),
    fentry("page_cache_async_ra", "page_cache_async_ra", "mark_fentry"),
    kprobe("page_cache_async_ra", "page_cache_async_ra", "mark_kprobe"),
    tracepoint("page_cache_ra_order", "page_cache_ra_order", "page_window"),
    fentry("page_cache_ra_order", "page_cache_ra_order", "window_fentry"),
    kprobe("page_cache_ra_order", "page_cache_ra_order", "window_kprobe"),
    fentry("page_cache_ra_order", "do_page_cache_ra", "submit_fentry"),
    kprobe("page_cache_ra_order", "do_page_cache_ra", "submit_kprobe"),
    tracepoint("page_cache_ra_unbounded", "page_cache_ra_unbounded", "page_plain"),
    fentry("page_cache_ra_unbounded", "page_cache_ra_unbounded", "plain_fentry"),
    kprobe("page_cache_ra_unbounded", "page_cache_ra_unbounded", "plain_kprobe"),
    tracepoint(
        "mm_filemap_delete_from_page_cache",
        "mm_filemap_delete_from_page_cache",
        "page_evicted",
    ),
    tracepoint("block_io_start", "block_io_start", "request_starts"),
    tracepoint("io_uring_submit_req", "io_uring_submit_req", "uring_submits"),
    tracepoint("io_uring_queue_async_work", "io_uring_queue_async_work", "uring_punts"),
    // Attached first: otherwise, a request that is issued and completed before this is attached
    // would count as in flight for ever.
    tracepoint("block_rq_complete", "block_rq_complete", "request_completes"),
    tracepoint("block_rq_issue", "block_rq_issue", "request_issued"),
];

/// The processes to profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileScope {
    /// The children that this process starts from now on, and all of their descendants.
    ChildrenOf(u32),
    /// These processes, and the children that they start.
    Processes(Vec<u32>),
    /// Processes in these cgroups: the inodes of their directories.
    Cgroups(Vec<u64>),
    /// All processes but this one.
    AllBut(u32),
}

/// Losses since the probes were loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileLosses {
    pub events: u64,
    /// Lost stacks and names.
    pub details: u64,
}

/// The attached probes. Dropping them removes everything from the kernel.
pub struct ProfileProbes {
    signals: Vec<Signal>,
    events: RingBuf<MapData>,
    details: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
    uring_reads: PerCpuArray<MapData, u64>,
    times: HashMap<MapData, u32, ThreadTimeRecord>,
    /// Dropped last, because it holds the programs and their links.
    _ebpf: Ebpf,
}

impl std::fmt::Debug for ProfileProbes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProfileProbes").field("signals", &self.signals).finish_non_exhaustive()
    }
}

impl ProfileProbes {
    /// Loads and attaches the probes that this kernel supports.
    ///
    /// # Errors
    ///
    /// If privileges are missing, or if the kernel supports no probe of waits.
    pub fn new(scope: &ProfileScope) -> Result<Self, ObserveError> {
        let types = KernelTypes::read()?;
        let mut ebpf = load(PROFILE, &types)?;
        choose(&mut ebpf, scope)?;
        let mut signals = Vec::new();
        let only = Rung::named()?;
        for (attempts, are_needed) in [(NEEDED, true), (FURTHER, false)] {
            for ladder in ladders(attempts) {
                if FAULTS_OF_TOUCHES.contains(&ladder[0].signal) && !has_touch_tracepoint(&signals)
                {
                    continue;
                }
                let (signal, error) = climb(&mut ebpf, &types, ladder, only);
                if let Some(error) = error
                    && (are_needed || matches!(error, ObserveError::NotPermitted { .. }))
                {
                    return Err(error);
                }
                signals.push(signal);
            }
        }
        without_addresses(&mut signals);
        let mut take = |name: &str| {
            ebpf.take_map(name).ok_or_else(|| ObserveError::Refused {
                program: OBJECT,
                problem: format!("it has no map {name}"),
            })
        };
        let (events, details) = (take("events")?, take("details")?);
        let (lost, times, uring_reads) = (take("lost")?, take("times")?, take("uring_reads")?);
        Ok(Self {
            signals,
            events: RingBuf::try_from(events).map_err(of_map)?,
            details: RingBuf::try_from(details).map_err(of_map)?,
            lost: PerCpuArray::try_from(lost).map_err(of_map)?,
            uring_reads: PerCpuArray::try_from(uring_reads).map_err(of_map)?,
            times: HashMap::try_from(times).map_err(of_map)?,
            _ebpf: ebpf,
        })
    }

    /// Returns the signals, and whether each is available.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Waits until a stack of a new program arrives, the ring of stacks and names is half full, or
    /// `also` is readable; at most for `most`.
    pub fn wait(&self, most: Duration, also: Option<BorrowedFd<'_>>) -> Result<(), ObserveError> {
        let most = Timespec::try_from(most).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let fds = std::iter::once(self.details.as_fd()).chain(also);
        let mut ready: Vec<PollFd<'_>> = fds.map(readable).collect();
        match poll(&mut ready, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(ObserveError::Read { program: OBJECT, source: errno.into() }),
        }
    }

    /// Passes the events since the last call to `take`, oldest first, each after the stacks and
    /// names that it refers to.
    pub fn drain(&mut self, mut take: impl FnMut(ProfileItem)) {
        drain_details(&mut self.details, &mut take);
        while let Some(item) = self.events.next() {
            // The probes send stacks and names before the events that refer to them.
            drain_details(&mut self.details, &mut take);
            profile_events(&item).map(ProfileItem::Event).for_each(&mut take);
        }
    }

    /// Returns how the profiled threads spent their time.
    pub fn thread_times(&self) -> Vec<ThreadTime> {
        let times = self.times.iter().filter_map(Result::ok);
        times.map(|(tid, record)| thread_time(tid, &record)).collect()
    }

    pub fn losses(&self) -> ProfileLosses {
        ProfileLosses { events: sum(&self.lost, 0), details: sum(&self.lost, 1) }
    }

    /// Returns the number of reads of profiled processes through io_uring.
    pub fn uring_reads(&self) -> UringReads {
        UringReads { submitted: sum(&self.uring_reads, 0), punted: sum(&self.uring_reads, 1) }
    }
}

fn drain_details(details: &mut RingBuf<MapData>, take: &mut impl FnMut(ProfileItem)) {
    while let Some(item) = details.next() {
        let found = match item.len() {
            length if length == size_of::<StackRecord>() => {
                StackRecord::read(&item).map(|record| ProfileItem::Stack(stack(&record)))
            }
            _ => NameRecord::read(&item).map(|record| ProfileItem::Name(name(&record))),
        };
        found.into_iter().for_each(&mut *take);
    }
}

fn has_touch_tracepoint(signals: &[Signal]) -> bool {
    let touches = signals.iter().find(|signal| signal.name == TOUCHES);
    touches.is_some_and(|touches| touches.rung == Rung::TpBtf)
}

/// The tracepoint of touched pages reports nothing without the addresses of faults.
fn without_addresses(signals: &mut [Signal]) {
    let is_missing = |one: &Signal| one.name == FAULTS_OF_TOUCHES[0] && one.rung == Rung::Missing;
    if signals.iter().any(is_missing)
        && let Some(touches) = signals.iter_mut().find(|one| one.name == TOUCHES)
    {
        touches.rung = Rung::Missing;
    }
}

/// Sums a count over all processors.
fn sum(counts: &PerCpuArray<MapData, u64>, which: u32) -> u64 {
    counts.get(&which, 0).map_or(0, |counts| counts.iter().sum())
}

fn of_map(error: MapError) -> ObserveError {
    of_chain(OBJECT, &error)
}

/// Writes the scope into the maps. This must be done before any program is attached.
fn choose(ebpf: &mut Ebpf, scope: &ProfileScope) -> Result<(), ObserveError> {
    let missing = |name: &str| ObserveError::Refused {
        program: OBJECT,
        problem: format!("it has no map {name}"),
    };
    let (spawner, mode) = match scope {
        ProfileScope::ChildrenOf(pid) => (*pid, 0),
        ProfileScope::Processes(_) => (0, 0),
        ProfileScope::Cgroups(_) => (0, 1),
        ProfileScope::AllBut(pid) => (*pid, 2),
    };
    let map = ebpf.map_mut("config").ok_or_else(|| missing("config"))?;
    let mut config: Array<_, ProfileConfig> = Array::try_from(map).map_err(of_map)?;
    config.set(0, ProfileConfig { spawner, mode }, 0).map_err(of_map)?;
    if let ProfileScope::Processes(pids) = scope {
        let map = ebpf.map_mut("targets").ok_or_else(|| missing("targets"))?;
        let mut targets: HashMap<_, u32, u32> = HashMap::try_from(map).map_err(of_map)?;
        pids.iter().try_for_each(|pid| targets.insert(pid, 1, 0)).map_err(of_map)?;
    }
    if let ProfileScope::Cgroups(ids) = scope {
        let map = ebpf.map_mut("cgroups").ok_or_else(|| missing("cgroups"))?;
        let mut cgroups: HashMap<_, u64, u32> = HashMap::try_from(map).map_err(of_map)?;
        ids.iter().try_for_each(|id| cgroups.insert(id, 1, 0)).map_err(of_map)?;
    }
    Ok(())
}
