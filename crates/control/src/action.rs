//! What the controller wants done.

use policy::{Extent, OpenFileId};
use units::Pages;

use crate::inputs::FileKey;

/// What to do with an open file, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAction {
    pub file: OpenFileId,
    pub kind: ActionKind,
    /// One line for people; empty if it only continues an earlier action.
    pub why: String,
    /// Whether it primes: reads pages that no reader has asked for yet but random reads may want.
    /// Such bytes are accounted for on their own.
    pub primes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    SetWindow(Pages),
    /// Have these pages read.
    Prefetch(Vec<Extent>),
    /// Have these files of its directory read; they need not be open.
    PrefetchFiles(Vec<NextFile>),
    /// From now on have the rest of a run of this length read as soon as one of its pages is missed
    /// ([`MissPrefetch`](policy::MissPrefetch)); `None` ends it.
    PrefetchMisses(Option<Pages>),
}

/// A file that will be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextFile {
    pub file: FileKey,
    /// How much of its beginning is left out, so that its reader is seen.
    pub from: Pages,
}
