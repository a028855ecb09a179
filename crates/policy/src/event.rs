//! Read-ahead events, as BPF programs report them or as the simulator generates them.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

/// An open file (open file description). Numbers are unique among files that are open at the same
/// time, and may be reused after a close.
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

/// The read-ahead window that the kernel stores for an open file (`struct file_ra_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub start: u64,
    pub size: Pages,
    /// The pages from the mark to the end. A reader that reaches the mark triggers the next window.
    pub async_size: Pages,
}

impl Window {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size.get())
    }
}

/// The kind of a read-ahead event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A reader accessed a page that is not cached, and waits for it.
    Miss {
        /// Previous window of the open file.
        before: Window,
    },
    /// A reader reached the mark, which triggers the next window.
    Mark {
        /// Window that contains the mark.
        before: Window,
    },
    /// A window was submitted.
    Window {
        window: Window,
        /// The window was read around the page of a fault in a mapping.
        mapped: bool,
    },
    /// Pages without a window were submitted: a reader's request after a miss, or, if the event has
    /// no open file, `readahead(2)` or advice.
    Plain,
    /// An access sample: a reader requested these pages, cached or not. `mapped` means a fault,
    /// which may also have mapped neighbouring cached pages.
    Access { mapped: bool },
    /// A reader has waited for the device.
    Stall { wait: Nanos },
}

impl EventKind {
    /// Returns whether a read or a fault accessed a page that is not cached.
    pub const fn is_miss(self) -> bool {
        matches!(self, Self::Miss { .. } | Self::Window { mapped: true, .. })
    }
}

/// A read-ahead event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessEvent {
    pub at: Nanos,
    pub kind: EventKind,
    /// Open file, if known.
    pub file: Option<OpenFileId>,
    pub index: u64,
    /// Pages requested or submitted.
    pub request: Pages,
    /// For a miss or mark: the offset after the last byte of the previous read call.
    #[serde(default)]
    pub previous: Option<Bytes>,
}
