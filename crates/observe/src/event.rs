//! Events of readers.

use host::DevNo;
use policy::{AccessEvent, EventKind, OpenFileId, Window};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

use crate::open_files::device;
use crate::record::{EventRecord, text};

/// An event of a reader, with the identity of the reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEvent {
    #[serde(flatten)]
    pub access: AccessEvent,
    /// The device of the file system, or the disk itself.
    pub device: DevNo,
    pub inode: u64,
    /// The maximum window of the open file.
    pub limit: Pages,
    pub pid: u32,
    pub tid: u32,
    pub comm: String,
    /// The cgroup: the inode of its directory.
    pub cgroup: u64,
}

/// Returns the page at which a fault requested a window. The probe reports the start of the window.
/// The kernel starts it half of the largest window before the page, unless that is before the file
/// (`mm/filemap.c`, `do_sync_mmap_readahead`). In that case the fault may be at any page up to the
/// middle, and the first page is used.
fn fault_page(record: &EventRecord) -> u64 {
    let is_around = record.index == record.start && record.size == record.ra_pages;
    if is_around && record.start > 0 {
        record.start + u64::from(record.ra_pages / 2)
    } else {
        record.index
    }
}

/// Reads a record; `None` if this foreread does not know its kind.
pub(crate) fn event(record: &EventRecord) -> Option<ProbeEvent> {
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
    // It is -1 before the first read.
    let previous = i64::try_from(record.previous_bytes).ok().filter(|_| has_previous);
    let access = AccessEvent {
        at: Nanos::new(record.time_ns),
        kind,
        file: (record.file != 0).then_some(OpenFileId::new(record.file)),
        index: if mapped { fault_page(record) } else { record.index },
        request,
        previous: previous.map(|at| Bytes::new(at.unsigned_abs())),
    };
    Some(ProbeEvent {
        access,
        device: device(record.device),
        inode: record.inode,
        limit: pages(record.ra_pages),
        pid: record.pid,
        tid: record.tid,
        comm: text(&record.comm),
        cgroup: record.cgroup,
    })
}
