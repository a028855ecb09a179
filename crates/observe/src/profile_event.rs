//! Typed events of the profiler's probes.

use host::DevNo;
use units::{Bytes, Nanos, Pages};

use crate::open_files::device;
use crate::profile_record::{
    CachedReads, KERNEL_FRAMES, NameRecord, ProfileRecord, StackRecord, ThreadTimeRecord,
    USER_FRAMES,
};
use crate::record::{Plain as _, text};

/// `REQUESTER_OTHER` in bpf/profile.h.
const REQUESTER_OTHER: u32 = 2;
/// `S_IFBLK`.
const BLOCK_DEVICE: u32 = 0o060_000;
/// `FMODE_RANDOM` in `f_mode`.
const FMODE_RANDOM: u32 = 1 << 12;
/// System call numbers of `readahead(2)` on x86-64 and in the generic table.
const READAHEAD_CALLS: [u32; 2] = [187, 213];
/// System call numbers of `madvise(2)`, likewise.
const MADVISE_CALLS: [u32; 2] = [28, 233];

/// A file, as the kernel identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InodeId {
    /// The device of its file system, or the disk itself.
    pub device: DevNo,
    pub inode: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId {
    pub pid: u32,
    pub tid: u32,
}

/// An event of the profiler's probes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileEvent {
    /// The end of the event (`CLOCK_MONOTONIC`).
    pub at: Nanos,
    pub thread: ThreadId,
    pub what: ProfileEventKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProfileEventKind {
    Read(ReturnedRead),
    Page(PageEvent),
    Wait(BlockedWait),
    Advice(AdviceCall),
    Request(DeviceRequest),
    Eviction(EvictedPages),
}

/// A read call that returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReturnedRead {
    /// The address of the open file.
    pub file: u64,
    pub inode: InodeId,
    pub offset: Bytes,
    /// Number of bytes read, or the negative error number.
    pub result: i64,
    pub duration: Nanos,
    /// The time that the thread was blocked in the call.
    pub blocked: Nanos,
    pub size: Bytes,
    /// Under `FADV_RANDOM`.
    pub is_random: bool,
    /// Opened with `O_DIRECT`.
    pub is_direct: bool,
    pub window: Pages,
    /// Number of consecutive cached calls of equal length, whose total `result` and `duration` are.
    pub calls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEventKind {
    Fault,
    Miss,
    Mark,
    Window,
    /// Pages that were submitted without a window.
    Plain,
    /// A reader touched a page of a mapping that was not mapped, cached or not. The length is that
    /// from this page to the end of the range that is mapped around it.
    Touch,
}

/// A page that was requested or submitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageEvent {
    pub kind: PageEventKind,
    /// The address of the open file; 0 if unknown.
    pub file: u64,
    pub inode: InodeId,
    pub offset: Bytes,
    pub length: Bytes,
    pub size: Bytes,
    pub window: Pages,
    /// True within a recorded call; false within a fault or another call.
    pub in_call: bool,
    /// The event belongs to a fault, and no descriptor of the open file is left.
    pub only_mapped: bool,
}

/// Pages of a file that were removed from the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedPages {
    pub inode: InodeId,
    pub offset: Bytes,
    pub length: Bytes,
    /// True if a profiled thread requested it with `posix_fadvise(2)`; false for reclaim.
    pub is_advised: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// No page event preceded the wait in its call.
    None,
    Miss,
    Mark,
    Fault,
}

/// A completed wait of a blocked thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockedWait {
    /// The time until the wake-up.
    pub blocked: Nanos,
    /// The time from the wake-up until the thread ran.
    pub runnable: Nanos,
    /// The key of the stack, unique together with the process.
    pub stack: u64,
    /// Whether the kernel counts the wait as waiting for I/O.
    pub in_iowait: bool,
    pub reason: WaitReason,
    /// The file of the last page or call of the thread; inode 0 if there was none.
    pub inode: InodeId,
    pub file: u64,
    pub offset: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdviceCallKind {
    Fadvise,
    Madvise,
    Readahead,
}

/// A program's advice to the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceCall {
    pub call: AdviceCallKind,
    /// The advice value; 0 for `readahead(2)`.
    pub advice: u32,
    pub file: u64,
    /// The file; inode 0 for `madvise(2)`.
    pub inode: InodeId,
    /// An offset, or an address for `madvise(2)`.
    pub offset: u64,
    pub length: Bytes,
    /// 0, or the negative error number.
    pub result: i64,
    pub blocked: Nanos,
    pub duration: Nanos,
    pub stack: u64,
    pub is_direct: bool,
    pub window: Pages,
}

/// A request that a device completed.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRequest {
    pub device: DevNo,
    pub sector: u64,
    pub length: Bytes,
    /// The time from the issue to the driver until the completion.
    pub service: Nanos,
    /// Number of requests in flight when it was issued, including this one.
    pub depth: u32,
    pub is_read: bool,
    /// The time from the start of the request to its issue to the driver.
    pub queued: Nanos,
    /// The name of the thread of the event, if its process is not profiled.
    pub neighbour: Option<String>,
}

/// Reads through io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UringReads {
    pub submitted: u64,
    /// Reads that were handed to a worker thread of the kernel.
    pub punted: u64,
}

/// A stack of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileStack {
    pub key: u64,
    pub pid: u32,
    /// A hash that changes with most changes of the code mappings; 0 if the process has none.
    pub code_mappings: u64,
    /// Addresses, the innermost first.
    pub kernel: Vec<u64>,
    pub user: Vec<u64>,
    /// The words from the stack pointer on, which include the return addresses of functions without
    /// a frame.
    pub words: Vec<u64>,
}

/// The path of a file below the root of its file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    pub inode: InodeId,
    pub size: Bytes,
    /// A process that has used it.
    pub pid: u32,
    pub is_block_device: bool,
    /// Components, the outermost first; `is_cut` if there are more before the first.
    pub parts: Vec<String>,
    pub is_cut: bool,
}

/// Items from the probes. Stacks and names must be resolved while their process exists.
#[derive(Clone, Debug, PartialEq)]
pub enum ProfileItem {
    Stack(ProfileStack),
    Name(FileName),
    Event(ProfileEvent),
}

/// How a thread spent its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub first: Nanos,
    pub last: Nanos,
    pub cpu: Nanos,
    pub runnable: Nanos,
    pub blocked: Nanos,
}

fn is_direct(flags: u32) -> bool {
    i32::try_from(flags).is_ok_and(|flags| flags & libc::O_DIRECT != 0)
}

/// `PROFILE_CACHED` in bpf/profile.h.
const CACHED_KIND: u32 = 12;

/// Decodes the events of a record; none if its kind is unknown.
pub(crate) fn profile_events(item: &[u8]) -> impl Iterator<Item = ProfileEvent> + '_ {
    let record = ProfileRecord::read(item);
    let one = record.as_ref().and_then(profile_event);
    let cached = record.filter(|record| record.kind == CACHED_KIND).into_iter();
    one.into_iter().chain(cached.flat_map(|record| {
        let entries = item.get(size_of::<ProfileRecord>()..).unwrap_or_default();
        let entries = entries.chunks(size_of::<CachedReads>()).filter_map(CachedReads::read);
        entries.map(move |entry| cached_reads(&record, &entry))
    }))
}

fn cached_reads(record: &ProfileRecord, entry: &CachedReads) -> ProfileEvent {
    let [start, end] = [entry.start_ns, entry.end_ns].map(|time| Nanos::new(u64::from(time)));
    let read = ReturnedRead {
        offset: Bytes::new(entry.offset),
        result: i64::from(entry.bytes) * i64::from(entry.calls),
        duration: end.saturating_sub(start),
        calls: entry.calls,
        ..read_call(record)
    };
    let thread = ThreadId { pid: record.pid, tid: record.tid };
    let what = ProfileEventKind::Read(read);
    ProfileEvent { at: Nanos::new(record.time_ns) + end, thread, what }
}

fn profile_event(record: &ProfileRecord) -> Option<ProfileEvent> {
    let page = |kind| ProfileEventKind::Page(page(kind, record));
    let what = match record.kind {
        1 => ProfileEventKind::Read(read_call(record)),
        2 => page(PageEventKind::Fault),
        3 => page(PageEventKind::Miss),
        4 => page(PageEventKind::Mark),
        5 => page(PageEventKind::Window),
        6 => page(PageEventKind::Plain),
        7 => ProfileEventKind::Wait(wait(record)),
        8 => ProfileEventKind::Advice(advice(record)),
        9 => ProfileEventKind::Request(request(record)),
        10 => ProfileEventKind::Eviction(eviction(record)),
        11 => page(PageEventKind::Touch),
        _ => return None,
    };
    let thread = ThreadId { pid: record.pid, tid: record.tid };
    Some(ProfileEvent { at: Nanos::new(record.time_ns), thread, what })
}

fn inode(record: &ProfileRecord) -> InodeId {
    InodeId { device: device(record.device), inode: record.inode }
}

fn read_call(record: &ProfileRecord) -> ReturnedRead {
    ReturnedRead {
        file: record.file,
        inode: inode(record),
        offset: Bytes::new(record.offset),
        result: record.result,
        duration: Nanos::new(record.duration_ns),
        blocked: Nanos::new(record.waited_ns),
        size: Bytes::new(record.size_bytes),
        is_random: record.mode & FMODE_RANDOM != 0,
        is_direct: is_direct(record.flags),
        window: Pages::new(u64::from(record.ra_pages)),
        calls: 1,
    }
}

fn page(kind: PageEventKind, record: &ProfileRecord) -> PageEvent {
    PageEvent {
        kind,
        file: record.file,
        inode: inode(record),
        offset: Bytes::new(record.offset),
        length: Bytes::new(record.length),
        size: Bytes::new(record.size_bytes),
        window: Pages::new(u64::from(record.ra_pages)),
        in_call: record.flags != 0,
        // The mapping has a reference, and so has a fault that submits pages. Not recognised are
        // files that are mapped several times, and mappings that were split or inherited.
        only_mapped: record.flags == 0 && (1..=2).contains(&record.mode),
    }
}

fn wait(record: &ProfileRecord) -> BlockedWait {
    BlockedWait {
        blocked: Nanos::new(record.duration_ns),
        runnable: Nanos::new(record.result.unsigned_abs()),
        stack: record.stack,
        in_iowait: record.in_iowait != 0,
        reason: match record.detail {
            1 => WaitReason::Miss,
            2 => WaitReason::Mark,
            3 => WaitReason::Fault,
            _ => WaitReason::None,
        },
        inode: inode(record),
        file: record.file,
        offset: Bytes::new(record.offset),
    }
}

fn advice(record: &ProfileRecord) -> AdviceCall {
    let call = match record.extra {
        call if READAHEAD_CALLS.contains(&call) => AdviceCallKind::Readahead,
        call if MADVISE_CALLS.contains(&call) => AdviceCallKind::Madvise,
        _ => AdviceCallKind::Fadvise,
    };
    AdviceCall {
        call,
        advice: record.detail,
        file: record.file,
        inode: inode(record),
        offset: record.offset,
        length: Bytes::new(record.length),
        result: record.result,
        blocked: Nanos::new(record.waited_ns),
        duration: Nanos::new(record.duration_ns),
        stack: record.stack,
        is_direct: is_direct(record.flags),
        window: Pages::new(u64::from(record.ra_pages)),
    }
}

fn request(record: &ProfileRecord) -> DeviceRequest {
    DeviceRequest {
        device: device(record.device),
        sector: record.offset,
        length: Bytes::new(record.length),
        service: Nanos::new(record.duration_ns),
        depth: record.flags,
        is_read: record.mode == 0,
        queued: Nanos::new(record.waited_ns),
        neighbour: (record.extra == REQUESTER_OTHER).then(|| {
            let comm = [record.file.to_ne_bytes(), record.inode.to_ne_bytes()].concat();
            text(&comm)
        }),
    }
}

fn eviction(record: &ProfileRecord) -> EvictedPages {
    EvictedPages {
        inode: inode(record),
        offset: Bytes::new(record.offset),
        length: Bytes::new(record.length),
        is_advised: record.flags != 0,
    }
}

pub(crate) fn stack(record: &StackRecord) -> ProfileStack {
    let kernel = (record.kernel_count as usize).min(KERNEL_FRAMES);
    let user = (record.user_count as usize).min(USER_FRAMES);
    ProfileStack {
        key: record.key,
        pid: record.pid,
        code_mappings: record.code_mappings,
        kernel: record.kernel[..kernel].to_vec(),
        user: if user == 0 { vec![record.user_ip] } else { record.user[..user].to_vec() },
        words: record.words.to_vec(),
    }
}

pub(crate) fn name(record: &NameRecord) -> FileName {
    let parts = record.parts.iter().map(|part| text(part));
    let mut parts: Vec<String> = parts.take_while(|part| !part.is_empty()).collect();
    let is_cut = parts.len() == record.parts.len();
    parts.reverse();
    FileName {
        inode: InodeId { device: device(record.device), inode: record.inode },
        size: Bytes::new(record.size_bytes),
        pid: record.pid,
        is_block_device: record.kind == BLOCK_DEVICE,
        parts,
        is_cut,
    }
}

pub(crate) fn thread_time(tid: u32, record: &ThreadTimeRecord) -> ThreadTime {
    ThreadTime {
        pid: record.pid,
        tid,
        first: Nanos::new(record.first_ns),
        last: Nanos::new(record.last_ns),
        cpu: Nanos::new(record.cpu_ns),
        runnable: Nanos::new(record.runnable_ns),
        blocked: Nanos::new(record.blocked_ns),
        comm: text(&record.comm),
    }
}
