//! Actions that the controller requests.

use std::fmt;

use policy::{Extent, OpenFileId, Page};
use serde::{Deserialize, Serialize};
use units::Pages;

use crate::inputs::FileKey;

/// An action on an open file, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileAction {
    pub file: OpenFileId,
    pub kind: ActionKind,
    /// The reason, as one line of text; empty if the action only continues an earlier one.
    pub why: String,
    /// True if the action primes: it prefetches pages that random reads are likely to need. Primed
    /// bytes are counted separately.
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
    /// Prefetch these pages.
    Prefetch(Vec<Extent>),
    /// Prefetch these files of the directory of the open file; they need not be open.
    PrefetchFiles(Vec<NextFile>),
    /// From now on, prefetch the rest of a run of this length when a reader misses one of its pages
    /// ([`MissPrefetch`](policy::MissPrefetch)); `None` stops this.
    PrefetchMisses(Option<Pages>),
    /// From now on, when a reader misses a page, prefetch the rest of its call, if that has at most
    /// this many pages; `PrefetchMisses(None)` stops this.
    PrefetchCalls(Pages),
    /// From now on, prefetch each of these files of the directory of the open file on its next
    /// miss. They replace the files of an earlier action.
    AwaitFiles(Vec<NextFile>),
    /// Requests nothing: reports the predicted and the measured gain of an earlier action, in
    /// percent. 540 means ×5.4.
    Report {
        predicted_percent: u64,
        measured_percent: u64,
    },
}

/// Formats the action for people, with sizes in pages, as the page size is unknown here.
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
            Self::PrefetchCalls(most) => {
                write!(f, "after a miss, prefetch its call of up to {} pages", most.get())
            }
            Self::Report { predicted_percent, measured_percent } => {
                write!(f, "gain: predicted {predicted_percent} %, measured {measured_percent} %")
            }
            Self::PrefetchMisses(None) => f.write_str("no more prefetching after misses"),
            Self::AwaitFiles(files) => {
                write!(f, "on its next miss, prefetch each of {} files", files.len())
            }
        }
    }
}

/// A directory whose files may be read one after another: that of one of these open files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryQuery {
    /// The latest first; none if no directory is wanted.
    pub files: Vec<OpenFileId>,
    /// Whether to list also the directories that follow, if the reader walks through a tree.
    pub with_next: bool,
}

/// A file that a reader is expected to read soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextFile {
    pub file: FileKey,
    /// The pages at the start that are not prefetched, so that the reader misses and is noticed.
    pub from: Pages,
    /// The page before which the prefetch ends; the file may end sooner. 0 in old recordings.
    #[serde(default)]
    pub until: Pages,
}

impl NextFile {
    /// Returns the pages to prefetch.
    pub fn wanted(&self) -> Extent {
        let start = Page::new(self.from.get());
        Extent::new(start, Page::new(self.until.get()).since(start))
    }
}
