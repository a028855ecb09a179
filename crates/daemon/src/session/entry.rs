//! Entries of a recording of the loop.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use control::{
    AbTest, BdiKey, ExternalChange, FileAction, FileState, Listing, LoopConfig, LoopSample,
    SampledFiles, Tuning,
};
use observe::OpenFileId;
use serde::{Deserialize, Serialize};
use units::{Nanos, PageSize, Pages};

/// The format version that this foreread writes; it reads earlier ones too. Since version 2,
/// listings and external changes name their bdi.
pub(super) const SESSION_VERSION: u32 = 2;

/// The options of the recorded loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionHeader {
    pub session_version: u32,
    /// The version of foreread that recorded the session.
    pub foreread: String,
    pub dry_run: bool,
    pub new_files: bool,
    pub leave: bool,
    /// The length of a slot of the A/B test, and the seed; `None` without a test.
    pub ab_test: Option<(Nanos, u64)>,
    #[serde(rename = "page_bytes")]
    pub page: PageSize,
}

impl SessionHeader {
    pub fn new(dry_run: bool, new_files: bool, leave: bool, page: PageSize) -> Self {
        Self {
            session_version: SESSION_VERSION,
            foreread: env!("CARGO_PKG_VERSION").to_owned(),
            dry_run,
            new_files,
            leave,
            ab_test: None,
            page,
        }
    }

    /// Returns the options of the loop, for a live run and for a replay.
    pub fn loop_config(&self) -> LoopConfig {
        let Self { dry_run, new_files, leave, page, .. } = *self;
        let ab_test = self.ab_test.map(|(slot, seed)| AbTest::new(slot, seed));
        LoopConfig { dry_run, new_files, leave, ab_test, page, tuning: Tuning::DEFAULT }
    }
}

/// One answer of the back end, or one decision of the loop, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEntry {
    Begin(SessionHeader),
    /// The start of a step.
    Poll {
        now: Nanos,
        read: bool,
    },
    Sample(LoopSample),
    /// The state of an open file, if it differs from the last one that the loop received.
    File {
        bdi: BdiKey,
        file: OpenFileId,
        state: Option<FileState>,
        /// The path, in the first entry of an open file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    Directory(ListingOnBdi),
    /// This call failed, because another process had changed the window of the bdi, which is `None`
    /// in version 1.
    Changed(CallOnBdi, ExternalChange, #[serde(default)] Option<BdiKey>),
    Decision(LoopDecision),
    /// The error that stopped the session.
    Failed(String),
    /// The regular end of the session.
    End,
}

/// A call that fails if another process has changed the bdi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOnBdi {
    Check,
    Act,
    NewFileWindow,
}

/// A call of the loop to its back end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopDecision {
    Act { bdi: BdiKey, actions: Vec<FileAction> },
    Advise { bdi: BdiKey, actions: Vec<FileAction> },
    NewFileWindow { bdi: BdiKey, window: Option<Pages> },
    SampleAccesses(SampledOnBdi),
    FindDirectory { bdi: BdiKey, wanted: Vec<OpenFileId> },
    KeepDirectory { bdi: BdiKey, keep: bool },
    Restore { bdi: BdiKey },
    Reapply { bdi: BdiKey },
    Release { bdi: BdiKey, leave: bool },
    Note { text: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledOnBdi {
    pub bdi: BdiKey,
    #[serde(flatten)]
    pub files: SampledFiles,
}

/// A directory that was found for a bdi.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListingOnBdi {
    /// `None` in version 1, where the first bdi that asks in the step receives the listing.
    #[serde(default)]
    pub bdi: Option<BdiKey>,
    #[serde(flatten)]
    pub listing: Listing,
}

/// State that is known from earlier entries, so that it is not recorded in every step.
#[derive(Debug, Default)]
pub(super) struct KnownState {
    files: HashMap<(BdiKey, OpenFileId), FileState>,
    windows: BTreeMap<BdiKey, Option<Pages>>,
    sampled: BTreeMap<BdiKey, SampledFiles>,
    wanted: BTreeMap<BdiKey, Vec<OpenFileId>>,
    kept: BTreeMap<BdiKey, bool>,
}

impl KnownState {
    /// Returns whether to record a decision: not if it repeats the last one or has no actions.
    pub(super) fn is_news(&mut self, decision: &LoopDecision) -> bool {
        fn differs<T: Clone + Default + PartialEq>(
            known: &mut BTreeMap<BdiKey, T>,
            bdi: BdiKey,
            now: &T,
        ) -> bool {
            let before = known.insert(bdi, now.clone()).unwrap_or_default();
            before != *now
        }
        match decision {
            LoopDecision::Act { actions, .. } | LoopDecision::Advise { actions, .. } => {
                !actions.is_empty()
            }
            LoopDecision::NewFileWindow { bdi, window } => differs(&mut self.windows, *bdi, window),
            LoopDecision::SampleAccesses(now) => differs(&mut self.sampled, now.bdi, &now.files),
            LoopDecision::FindDirectory { bdi, wanted } => differs(&mut self.wanted, *bdi, wanted),
            LoopDecision::KeepDirectory { bdi, keep } => differs(&mut self.kept, *bdi, keep),
            LoopDecision::Restore { .. }
            | LoopDecision::Reapply { .. }
            | LoopDecision::Release { .. }
            | LoopDecision::Note { .. } => true,
        }
    }

    pub(super) fn file(&self, bdi: BdiKey, file: OpenFileId) -> Option<FileState> {
        self.files.get(&(bdi, file)).copied()
    }

    pub(super) fn set_file(&mut self, bdi: BdiKey, file: OpenFileId, state: Option<FileState>) {
        match state {
            Some(state) => drop(self.files.insert((bdi, file), state)),
            None => drop(self.files.remove(&(bdi, file))),
        }
    }

    /// Removes open files that the loop no longer follows.
    pub(super) fn keep_files(&mut self, followed: &BTreeSet<OpenFileId>) {
        self.files.retain(|(_, file), _| followed.contains(file));
    }
}
