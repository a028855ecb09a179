//! What was recorded: the input of every diagnosis.

use std::collections::BTreeMap;

use observe::{AdviceCallKind, InodeId, UringReads};
use units::{Bytes, Nanos};

pub(crate) const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A read call.
    Read,
    /// A fault of a mapped file.
    Fault,
}

/// A read call or a fault of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileAccess {
    /// Since the start of the recording.
    pub start: Nanos,
    pub end: Nanos,
    pub tid: u32,
    /// The address of the open file; 0 for faults.
    pub file: u64,
    /// The place of the file among the recording's.
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    pub blocked: Nanos,
    pub kind: AccessKind,
    /// How often a page was missing, or the mark was reached.
    pub misses: u32,
    pub marks: u32,
    /// Bytes in windows that it had submitted, and the largest.
    pub submitted: Bytes,
    pub largest_window: Bytes,
    /// The most that a window of its open file may have.
    pub window_limit: Bytes,
    pub is_random: bool,
    pub is_direct: bool,
    /// A fault of a mapping whose open file has no descriptor left.
    pub only_mapped: bool,
    /// Calls without a wait that were merged into this one, each where the last one ended.
    pub calls: u32,
}

#[cfg(test)]
impl FileAccess {
    /// A read of the first page, without a wait.
    pub(crate) fn cached(start: Nanos, end: Nanos) -> Self {
        Self {
            start,
            end,
            tid: 1,
            file: 7,
            inode: 0,
            offset: Bytes::ZERO,
            length: Bytes::new(PAGE_BYTES),
            blocked: Nanos::ZERO,
            kind: AccessKind::Read,
            misses: 0,
            marks: 0,
            submitted: Bytes::ZERO,
            largest_window: Bytes::ZERO,
            window_limit: Bytes::ZERO,
            is_random: false,
            is_direct: false,
            only_mapped: false,
            calls: 1,
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitClass {
    /// A page that was missing.
    Miss,
    /// A page in flight.
    InFlight,
    /// A read or write around the page cache.
    Direct,
    Metadata,
    WriteBack,
    Throttle,
    /// AdviceRecord that blocks its caller.
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

/// A thread was blocked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StorageWait {
    pub end: Nanos,
    pub blocked: Nanos,
    pub tid: u32,
    pub pid: u32,
    /// The place of the stack among the recording's.
    pub stack: u32,
    pub class: WaitClass,
    /// The place of the file, if one is known.
    pub inode: Option<u32>,
    pub file: u64,
    pub offset: Bytes,
}

impl StorageWait {
    pub fn start(&self) -> Nanos {
        self.end.saturating_sub(self.blocked)
    }
}

/// A program's advice to the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdviceRecord {
    pub at: Nanos,
    pub tid: u32,
    pub call: AdviceCallKind,
    pub advice: u32,
    pub file: u64,
    /// `None` for `madvise(2)`.
    pub inode: Option<u32>,
    pub offset: u64,
    pub length: Bytes,
    pub result: i64,
    pub blocked: Nanos,
    pub stack: u32,
    pub is_direct: bool,
    /// Bytes that were submitted within the call.
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
    /// From its start to the driver's.
    pub queued: Nanos,
    /// The process that asked for it, if it is not profiled.
    pub neighbour: Option<u32>,
}

impl IoRequest {
    pub fn start(&self) -> Nanos {
        self.end.saturating_sub(self.service)
    }
}

/// Pages that were submitted to be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubmittedPages {
    pub at: Nanos,
    pub tid: u32,
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    /// A read-ahead window; otherwise single pages, or the pages of advice.
    pub is_window: bool,
}

/// A page of a mapping was touched that was not mapped. If it was cached, those around it were
/// mapped along with it, and touching these is not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTouch {
    pub at: Nanos,
    pub tid: u32,
    pub inode: u32,
    pub offset: Bytes,
    /// From its start to the end of what may be mapped along with it.
    pub length: Bytes,
}

/// Pages of a file that left the page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageEviction {
    pub at: Nanos,
    pub inode: u32,
    pub offset: Bytes,
    pub length: Bytes,
    /// By the program's `posix_fadvise(2)`, not by reclaim.
    pub is_advised: bool,
}

/// A file that was used.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledFile {
    pub id: InodeId,
    pub path: String,
    pub size: Bytes,
    /// Where it begins on its device, if the file system says so.
    pub start: Option<Bytes>,
    /// Where in the file it goes on at another place of the device, in order.
    pub jumps: Vec<Bytes>,
}

/// A function in a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Frame {
    pub function: String,
    /// The program or library; empty in the kernel.
    pub module: String,
    /// Where in the source, if the debug information says so.
    pub source: Option<(String, u32)>,
}

/// A stack, the innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackTrace {
    pub kernel: Vec<Frame>,
    pub user: Vec<Frame>,
}

/// Parts of the C and C++ libraries, which call the kernel for others.
const RUNTIME_MODULES: [&str; 8] =
    ["libc.so", "libc-", "ld-linux", "libpthread", "[vdso]", "ld-musl", "libstdc++", "libc++"];
/// Packages of Go's library that do so, as its functions are named.
const GO_PACKAGES: [&str; 6] = ["syscall.", "internal/", "os.", "io.", "bufio.", "runtime."];

/// Whether a file is part of the C or C++ library.
pub(crate) fn is_runtime_module(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or_default();
    RUNTIME_MODULES.iter().any(|module| base.starts_with(module))
}

/// Programs and libraries that run other programs' code, by the beginning of their names.
const INTERPRETERS: [&str; 9] =
    ["python", "libpython", "node", "ruby", "libruby", "perl", "libperl", "php", "libjvm"];

impl Frame {
    /// The interpreter that it is part of: the line of the script is not known.
    pub fn interpreter(&self) -> Option<&str> {
        let base = self.module.rsplit('/').next().unwrap_or_default();
        INTERPRETERS.iter().any(|name| base.starts_with(name)).then_some(base)
    }

    /// Whether it belongs to the library of a language, which is part of programs in Rust and Go.
    fn is_of_runtime(&self) -> bool {
        let in_language = self.source.as_ref().is_some_and(|(file, _)| {
            let of_go = || GO_PACKAGES.iter().any(|package| self.function.starts_with(package));
            file.starts_with("/rustc/") || (file.ends_with(".go") && of_go())
        });
        in_language || is_runtime_module(&self.module)
    }
}

impl StackTrace {
    /// The line of the program that led to it: the innermost that is not in the library of its
    /// language.
    pub fn code(&self) -> Option<&Frame> {
        let mut own = self.user.iter().filter(|frame| !frame.is_of_runtime());
        let first = own.clone().next();
        own.find(|frame| frame.source.is_some()).or(first).or(self.user.first())
    }
}

/// Where the time of a thread went.
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

/// All that was recorded.
#[derive(Clone, Debug, Default)]
pub struct ProfileRecording {
    /// What was profiled, for titles.
    pub target: String,
    pub wall: Nanos,
    /// How long it took, if only stretches of it were kept: `wall` and all other times are those of
    /// the stretches, one after another.
    pub kept_of: Option<Nanos>,
    pub files: Vec<ProfiledFile>,
    pub accesses: Vec<FileAccess>,
    pub waits: Vec<StorageWait>,
    pub advice: Vec<AdviceRecord>,
    pub requests: Vec<IoRequest>,
    pub submitted: Vec<SubmittedPages>,
    pub evictions: Vec<PageEviction>,
    /// Of mappings; none where the kernel does not report them.
    pub touches: Vec<PageTouch>,
    pub stacks: Vec<StackTrace>,
    pub threads: Vec<ThreadAccount>,
    /// Events and details that the kernel could not hand over.
    pub lost: u64,
    /// Events that were taken in.
    pub taken: u64,
    /// Accesses, waits or requests for which one stretch had no room.
    pub not_kept: u64,
    /// Tracepoints that this kernel does not have.
    pub missing: Vec<String>,
    /// Limits of the cgroups of the processes, each as `FILE: DEVICE LIMIT`.
    pub limits: Vec<String>,
    /// Reads through io_uring, which are only counted.
    pub uring_reads: UringReads,
    /// Programs of the processes that are not profiled and used the devices.
    pub neighbours: BTreeMap<u32, String>,
    /// Names of the devices.
    pub devices: BTreeMap<host::DevNo, String>,
    /// The read-ahead of the file systems of the files, by their devices.
    pub read_ahead: BTreeMap<host::DevNo, Bytes>,
}

impl ProfileRecording {
    /// How long threads waited for storage, summed over them.
    pub fn waited(&self) -> Nanos {
        self.waits.iter().filter(|wait| wait.class.is_storage()).map(|wait| wait.blocked).sum()
    }

    /// What a time of the kept stretches is in the whole run.
    pub fn in_whole_run(&self, time: Nanos) -> Nanos {
        let whole = self.kept_of.unwrap_or(self.wall);
        time.scaled(whole.get() as f64 / self.wall.get().max(1) as f64)
    }

    /// The share of events that were lost.
    pub fn loss_share(&self) -> f64 {
        let all = self.lost + self.not_kept + self.taken;
        if all == 0 { 0.0 } else { (self.lost + self.not_kept) as f64 / all as f64 }
    }
}
