//! What a kernel's read-ahead code reports of its readers: live by BPF, or simulated.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

/// An open file (open file description). Two files that are open at the same time have different
/// numbers; a closed file's number may be used again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct OpenFileId(u64);

impl OpenFileId {
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A window as the kernel keeps it for an open file (`struct file_ra_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub start: u64,
    pub size: Pages,
    /// How much of it lies behind the mark: a reader that gets there triggers the next window.
    pub async_size: Pages,
}

impl Window {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.get())
    }
}

/// What happened to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A reader found a page missing, and waits for it.
    Miss {
        /// The window that the open file had until now.
        before: Window,
    },
    /// A reader reached the mark, so that the next window is due.
    Mark {
        /// The window that the mark is of.
        before: Window,
    },
    Window {
        window: Window,
        /// Whether a fault of a mapped file asked for it, around the page of the event.
        mapped: bool,
    },
    /// Pages were submitted that are no window: what a reader asked for after a miss, or, where
    /// the event has no open file, what `readahead(2)` or advice did.
    Plain,
    /// An access sample: a reader asked for these pages, cached or not; `mapped`: by a fault, which
    /// may have mapped cached pages around its own.
    Access { mapped: bool },
    /// A reader has waited for the disk.
    Stall { wait: Nanos },
}

/// One thing that happened to a reader of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessEvent {
    pub at: Nanos,
    pub kind: EventKind,
    /// The open file, where it is known.
    pub file: Option<OpenFileId>,
    pub index: u64,
    /// How many pages were asked for, or submitted.
    pub request: Pages,
    /// Of a miss or mark: the byte after the last one of the read call before, if there was one.
    #[serde(default)]
    pub previous: Option<Bytes>,
}
