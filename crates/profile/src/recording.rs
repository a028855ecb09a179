//! A recording: the input of all diagnoses.

use std::collections::BTreeMap;

use observe::{AdviceCallKind, InodeId, UringReads};
use policy::ListedTree;
use units::{Bytes, Nanos};

pub(crate) const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessKind {
    /// A read call.
    #[default]
    Read,
    /// A fault of a mapped file.
    Fault,
}

/// A read call or a fault of a mapped file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FileAccess {
    /// Time since the start of the recording.
    pub start: Nanos,
    pub end: Nanos,
    pub tid: u32,
    /// Address of the open file; 0 for faults.
    pub file: u64,
    /// Index of the file in the recording.
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    pub blocked: Nanos,
    pub kind: AccessKind,
    /// Number of missing pages and of marks reached.
    pub misses: u32,
    pub marks: u32,
    /// Bytes submitted by it (by a read, in windows only), and its largest window.
    pub submitted: Bytes,
    pub largest_window: Bytes,
    /// Maximum window of the open file.
    pub window_limit: Bytes,
    pub is_random: bool,
    pub is_direct: bool,
    /// A fault of a mapping whose open file has no descriptor left.
    pub only_mapped: bool,
    /// Number of calls without waits merged into this one, each contiguous; 1 if none were.
    pub calls: u32,
}

#[cfg(test)]
impl FileAccess {
    /// Returns a read of the first page, without a wait.
    pub(crate) fn cached(start: Nanos, end: Nanos) -> Self {
        Self {
            start,
            end,
            tid: 1,
            file: 7,
            length: Bytes::new(PAGE_BYTES),
            calls: 1,
            ..Self::default()
        }
    }
}

/// Reason of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitClass {
    /// A page missing from the page cache.
    Miss,
    /// A page in flight.
    InFlight,
    /// A read or write that bypasses the page cache.
    Direct,
    Metadata,
    WriteBack,
    Throttle,
    /// An advice call that blocks its caller.
    Advice,
    /// Swapped-out memory.
    Swap,
    /// Not storage.
    Other,
}

impl WaitClass {
    pub fn is_storage(self) -> bool {
        self != Self::Other
    }

    /// Returns whether the thread waits for pages of a file, which a replay simulates.
    pub(crate) fn is_for_pages(self) -> bool {
        matches!(self, Self::Miss | Self::InFlight | Self::Direct)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Miss => "miss",
            Self::InFlight => "in flight",
            Self::Direct => "direct I/O",
            Self::Metadata => "metadata",
            Self::WriteBack => "write-back",
            Self::Throttle => "throttled",
            Self::Advice => "advice",
            Self::Swap => "swap",
            Self::Other => "other",
        }
    }
}

/// A wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageWait {
    pub end: Nanos,
    pub blocked: Nanos,
    pub tid: u32,
    pub pid: u32,
    /// Index of the stack in the recording.
    pub stack: u32,
    pub class: WaitClass,
    /// Index of the file; `None` if unknown.
    pub inode: Option<u32>,
    pub file: u64,
    pub offset: Bytes,
}

impl StorageWait {
    pub fn start(&self) -> Nanos {
        self.end.saturating_sub(self.blocked)
    }
}

/// An advice call of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceRecord {
    pub at: Nanos,
    pub tid: u32,
    pub call: AdviceCallKind,
    pub advice: u32,
    pub file: u64,
    /// Index of the file; `None` for `madvise(2)`.
    pub inode: Option<u32>,
    pub offset: u64,
    pub length: Bytes,
    pub result: i64,
    pub blocked: Nanos,
    pub stack: u32,
    pub is_direct: bool,
    /// Bytes submitted within the call.
    pub submitted: Bytes,
}

/// A request that a device completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoRequest {
    pub end: Nanos,
    pub service: Nanos,
    pub device: host::DevNo,
    pub sector: u64,
    pub length: Bytes,
    pub depth: u32,
    pub is_read: bool,
    /// Time from its creation until the driver starts it.
    pub queued: Nanos,
    /// Process that issued it, if that process is not profiled.
    pub neighbour: Option<u32>,
}

impl IoRequest {
    pub fn start(&self) -> Nanos {
        self.end.saturating_sub(self.service)
    }
}

/// Pages submitted to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubmittedPages {
    pub at: Nanos,
    pub tid: u32,
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    /// True for a read-ahead window; false for single pages and pages of advice.
    pub is_window: bool,
}

/// A touch of a page that was not mapped. If it was cached, the kernel also mapped the cached pages
/// around it; touches of those are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTouch {
    pub at: Nanos,
    pub tid: u32,
    pub inode: u32,
    pub offset: Bytes,
    /// Bytes from `offset` to the end of the range that the kernel may map along with it.
    pub length: Bytes,
}

/// Pages of a file that left the page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageEviction {
    pub at: Nanos,
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    /// True if the program's `posix_fadvise(2)` dropped them, false if reclaim did.
    pub is_advised: bool,
}

/// A file used during the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledFile {
    pub id: InodeId,
    pub path: String,
    pub size: Bytes,
    /// Position of its start on the device; `None` if the file system does not report it.
    pub start: Option<Bytes>,
    /// Offsets at which the file continues elsewhere on the device, in ascending order.
    pub jumps: Vec<Bytes>,
}

/// A function in a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Frame {
    pub function: String,
    /// Path of the program or library; empty for the kernel.
    pub module: String,
    /// Source file and line, if the debug information has them.
    pub source: Option<(String, u32)>,
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTrace {
    pub kernel: Vec<Frame>,
    pub user: Vec<Frame>,
}

/// Name prefixes of parts of the C and C++ libraries, which call the kernel for programs.
const RUNTIME_MODULES: [&str; 8] =
    ["libc.so", "libc-", "ld-linux", "libpthread", "[vdso]", "ld-musl", "libstdc++", "libc++"];
/// Prefixes of functions in packages of Go's library that do the same.
const GO_PACKAGES: [&str; 6] = ["syscall.", "internal/", "os.", "io.", "bufio.", "runtime."];

/// Returns whether a file is part of the C or C++ library.
pub(crate) fn is_runtime_module(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or_default();
    RUNTIME_MODULES.iter().any(|module| base.starts_with(module))
}

/// Name prefixes of interpreters and their libraries.
const INTERPRETERS: [&str; 9] =
    ["python", "libpython", "node", "ruby", "libruby", "perl", "libperl", "php", "libjvm"];

impl Frame {
    /// Returns the interpreter that the frame is part of: the line of the script is unknown.
    pub fn interpreter(&self) -> Option<&str> {
        let base = self.module.rsplit('/').next().unwrap_or_default();
        INTERPRETERS.iter().any(|name| base.starts_with(name)).then_some(base)
    }

    /// Returns whether the frame is in a language's library, which Rust and Go link statically.
    fn is_of_runtime(&self) -> bool {
        let in_language = self.source.as_ref().is_some_and(|(file, _)| {
            let of_go = || GO_PACKAGES.iter().any(|package| self.function.starts_with(package));
            file.starts_with("/rustc/") || (file.ends_with(".go") && of_go())
        });
        in_language || is_runtime_module(&self.module)
    }
}

impl StackTrace {
    /// Returns the program's line that led to the stack: the innermost frame outside the library of
    /// its language, preferably with a source line.
    pub fn code(&self) -> Option<&Frame> {
        let mut own = self.user.iter().filter(|frame| !frame.is_of_runtime());
        let first = own.clone().next();
        own.find(|frame| frame.source.is_some()).or(first).or(self.user.first())
    }
}

/// How a thread spent its time.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadAccount {
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    pub span: Nanos,
    pub cpu: Nanos,
    pub runnable: Nanos,
    pub blocked: Nanos,
}

/// All recorded data.
#[derive(Clone, Debug, Default)]
pub struct ProfileRecording {
    /// Name of the target, for titles.
    pub target: String,
    pub wall: Nanos,
    /// Duration of the whole run if only stretches of it were kept: `wall` and all other times are
    /// then those of the stretches, one after another.
    pub kept_of: Option<Nanos>,
    pub files: Vec<ProfiledFile>,
    pub accesses: Vec<FileAccess>,
    pub waits: Vec<StorageWait>,
    pub advice: Vec<AdviceRecord>,
    pub requests: Vec<IoRequest>,
    pub submitted: Vec<SubmittedPages>,
    pub evictions: Vec<PageEviction>,
    /// Touches of mapped pages; empty if the kernel does not report them.
    pub touches: Vec<PageTouch>,
    pub stacks: Vec<StackTrace>,
    pub threads: Vec<ThreadAccount>,
    /// Events, stacks and names lost in the kernel, because a ring was full.
    pub lost: u64,
    /// Number of events received.
    pub taken: u64,
    /// Number of records dropped because a single stretch had no room for them.
    pub not_kept: u64,
    /// Signals that could not be recorded, for example tracepoints that this kernel lacks.
    pub missing: Vec<String>,
    /// Limits of the processes' cgroups, each as `FILE: DEVICE LIMIT`.
    pub limits: Vec<String>,
    /// Reads through io_uring, which are only counted.
    pub uring_reads: UringReads,
    /// Names of processes that are not profiled and used the devices, by process ID.
    pub neighbours: BTreeMap<u32, String>,
    /// Names of the devices.
    pub devices: BTreeMap<host::DevNo, String>,
    /// The directories of the files that were read, listed after the run.
    pub directories: ListedTree,
    /// Read-ahead of the file systems of the files, by device.
    pub read_ahead: BTreeMap<host::DevNo, Bytes>,
}

impl ProfileRecording {
    /// Returns the time that threads waited for storage, summed over all threads.
    pub fn waited(&self) -> Nanos {
        self.waits.iter().filter(|wait| wait.class.is_storage()).map(|wait| wait.blocked).sum()
    }

    /// Scales a time of the kept stretches to the whole run.
    pub fn in_whole_run(&self, time: Nanos) -> Nanos {
        let whole = self.kept_of.unwrap_or(self.wall);
        time.scaled(whole.get() as f64 / self.wall.get().max(1) as f64)
    }

    /// Returns the share of events that were lost or not kept.
    pub fn loss_share(&self) -> f64 {
        let all = self.lost + self.not_kept + self.taken;
        if all == 0 { 0.0 } else { (self.lost + self.not_kept) as f64 / all as f64 }
    }

    /// Returns the first window submitted within a fault, as start and end in bytes.
    pub(crate) fn first_window(&self, fault: &FileAccess) -> Option<(u64, u64)> {
        let from = self.submitted.partition_point(|one| one.at < fault.start);
        let within = self.submitted[from..].iter().take_while(|one| one.at <= fault.end);
        let mut own =
            within.filter(|one| one.is_window && (one.tid, one.inode) == (fault.tid, fault.inode));
        own.next().map(|one| (one.offset.get(), (one.offset + one.length).get()))
    }
}
