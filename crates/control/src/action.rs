//! What the controller wants done.

use std::fmt;

use policy::{Extent, OpenFileId, Page};
use serde::{Deserialize, Serialize};
use units::{PageSize, Pages};

use crate::inputs::FileKey;
use crate::tuning::next_files::MAX_PREFETCHED_BYTES;

/// What to do with an open file, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAction {
    pub file: OpenFileId,
    pub kind: ActionKind,
    /// One line for people; empty if it only continues an earlier action.
    pub why: String,
    /// Whether it primes: reads pages that no reader has asked for yet but random reads may want.
    /// Such bytes are accounted for on their own.
    pub primes: bool,
}

impl FileAction {
    /// An action that does not prime.
    pub(crate) fn new(file: OpenFileId, kind: ActionKind, why: String) -> Self {
        Self { file, kind, why, primes: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    SetWindow(Pages),
    /// Have these pages read.
    Prefetch(Vec<Extent>),
    /// Have these files of its directory read; they need not be open.
    PrefetchFiles(Vec<NextFile>),
    /// From now on have the rest of a run of this length read as soon as one of its pages is missed
    /// ([`MissPrefetch`](policy::MissPrefetch)); `None` ends it.
    PrefetchMisses(Option<Pages>),
    /// Nothing is to be done: an earlier action was to gain this much, and gained this much. 540
    /// is ×5.4.
    Report {
        predicted_percent: u64,
        measured_percent: u64,
    },
}

/// For people; sizes in pages, whose size this does not know.
impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetWindow(pages) => write!(f, "window of {} pages", pages.get()),
            Self::Prefetch(extents) if extents.is_empty() => f.write_str("begin to prefetch"),
            Self::Prefetch(extents) => {
                let pages: u64 = extents.iter().map(|extent| extent.pages.get()).sum();
                write!(f, "prefetch {pages} pages in {} pieces", extents.len())
            }
            Self::PrefetchFiles(files) => write!(f, "prefetch {} files", files.len()),
            Self::PrefetchMisses(Some(run)) => {
                write!(f, "after a miss, prefetch the rest of {} pages", run.get())
            }
            Self::Report { predicted_percent, measured_percent } => {
                write!(f, "gain: predicted {predicted_percent} %, measured {measured_percent} %")
            }
            Self::PrefetchMisses(None) => f.write_str("no more prefetching after misses"),
        }
    }
}

/// A file that will be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextFile {
    pub file: FileKey,
    /// How much of its beginning is left out, so that its reader is seen.
    pub from: Pages,
}

impl NextFile {
    /// What is read of it, if it is long enough, in pages of this size.
    pub fn wanted(&self, page: PageSize) -> Extent {
        let start = Page::new(self.from.get());
        let end = Page::new(MAX_PREFETCHED_BYTES.to_pages_floor(page).get());
        Extent::new(start, end.since(start))
    }
}
