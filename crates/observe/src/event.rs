//! One thing that happened to a reader.

use host::DevNo;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

use crate::OpenFileId;
use crate::open_files::device;
use crate::record::{EventRecord, text};

/// A window as the kernel keeps it for an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its first page.
    pub start: u64,
    /// Its size.
    pub size: Pages,
    /// How much of it lies behind the mark: the next window is due when a reader gets there.
    pub async_size: Pages,
}

impl Window {
    /// The page after its last.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.get())
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A reader found a page missing, and waits for it. The window is the one before.
    Miss {
        /// The window that the open file had until now.
        before: Window,
    },
    /// A reader reached the mark, so that the next window is due. The window is the one before.
    Mark {
        /// The window that the mark is of.
        before: Window,
    },
    /// A window was submitted.
    Window {
        /// It.
        window: Window,
        /// A fault of a mapped file asked for it, around the page of the event.
        mapped: bool,
    },
    /// Pages were submitted that are no window: what a reader asked for after a miss, or, where
    /// the event has no open file, what `readahead(2)` or advice did.
    Plain,
    /// A reader has waited for the disk.
    Stall {
        /// For so long.
        wait: Nanos,
    },
}

/// One thing that happened to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, on the monotonic clock.
    pub at: Nanos,
    /// What.
    pub kind: EventKind,
    /// The open file, where one is known.
    pub file: Option<OpenFileId>,
    /// The device of its file system, or the disk itself.
    pub device: DevNo,
    /// Its inode.
    pub inode: u64,
    /// The page.
    pub index: u64,
    /// How many pages were asked for, or submitted.
    pub request: Pages,
    /// Of a miss or mark: the byte behind the last one of the read call before, if there was one.
    #[serde(default)]
    pub previous: Option<Bytes>,
    /// The window that the open file may have at most.
    pub limit: Pages,
    /// The process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: String,
    /// The cgroup: the inode of its directory.
    pub cgroup: u64,
}

/// The page at which a fault asked for a window. The probe sees where the window begins; the kernel
/// puts half of the largest one before the page, unless the file begins sooner (`mm/filemap.c`,
/// `do_sync_mmap_readahead`). There it may have been any page up to the middle, and counts as the
/// first.
fn fault_page(record: &EventRecord) -> u64 {
    let is_around = record.index == record.start && record.size == record.ra_pages;
    if is_around && record.start > 0 {
        record.start + u64::from(record.ra_pages / 2)
    } else {
        record.index
    }
}

/// Reads a record; `None` if this foreread does not know its kind.
pub(crate) fn event(record: &EventRecord) -> Option<Event> {
    let pages = |count: u32| Pages::new(u64::from(count));
    let window = Window {
        start: record.start,
        size: pages(record.size),
        async_size: pages(record.async_size),
    };
    let mapped = record.mapped != 0;
    let kind = match record.kind {
        1 => EventKind::Miss { before: window },
        2 => EventKind::Mark { before: window },
        3 => EventKind::Window { window, mapped },
        4 => EventKind::Plain,
        5 => EventKind::Stall { wait: Nanos::new(record.count) },
        _ => return None,
    };
    let request = match kind {
        EventKind::Stall { .. } => Pages::ZERO,
        _ => Pages::new(record.count),
    };
    let has_previous = matches!(kind, EventKind::Miss { .. } | EventKind::Mark { .. });
    // Before the first call it is -1.
    let previous = i64::try_from(record.previous_bytes).ok().filter(|_| has_previous);
    Some(Event {
        at: Nanos::new(record.time_ns),
        kind,
        file: (record.file != 0).then_some(OpenFileId(record.file)),
        device: device(record.device),
        inode: record.inode,
        index: if mapped { fault_page(record) } else { record.index },
        request,
        previous: previous.map(|at| Bytes::new(at.unsigned_abs())),
        limit: pages(record.ra_pages),
        pid: record.pid,
        tid: record.tid,
        comm: text(&record.comm),
        cgroup: record.cgroup,
    })
}
