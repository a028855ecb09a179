//! Decisions: recorded on a kernel, or made by a replay.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Pages};

use crate::cache::{CacheEvent, Fill, Submission, Trigger};
use crate::page::{Extent, Page};

/// A decision, in a recording a list of its fields. All numbers except `previous` are pages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Decision {
    /// `sync` (a miss), `async` (a mark) or `direct` (read-around, WILLNEED, `readahead`).
    pub trigger: String,
    /// Page that triggered the decision; for `direct`, the start of the first submission.
    pub index: u64,
    /// Pages from there to the end of the call; `None` for `direct`.
    pub request: Option<u64>,
    /// Offset after the previous call, -1 if there was none; `None` for `direct`.
    pub previous: Option<i64>,
    /// Submissions; empty if a mark caused none.
    pub submitted: Vec<RecordedSubmission>,
}

/// A submission, in a recording a list: its kind, its first page, its number of pages (those of a
/// plain one are cut off at the end of the file), the number of pages from the mark to its end, and
/// the order of the folios, which a plain one does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSubmission(
    SubmissionKind,
    u64,
    u64,
    u64,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<u8>,
);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SubmissionKind {
    /// `page_cache_ra_order`.
    Order,
    /// `page_cache_ra_unbounded`: single pages.
    Plain,
}

/// The result of a replay.
pub(super) struct ReplayResult {
    pub(super) decisions: Vec<Decision>,
    pub(super) cached: Pages,
}

/// Formats the decision as in the recording.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trigger, index, request, previous, submitted } = self;
        let fields = (trigger, index, request, previous, submitted);
        f.write_str(&serde_json::to_string(&fields).map_err(|_| fmt::Error)?)
    }
}

/// Returns the decisions of a replay, without direct ones that submitted nothing: a kernel reports
/// none.
pub(super) fn made_by(events: Vec<CacheEvent>) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = Vec::new();
    for event in events {
        match (event, decisions.last_mut()) {
            (CacheEvent::Trigger(trigger), _) => decisions.push(Decision::triggered(trigger)),
            (CacheEvent::Submission(window, plain), Some(decision)) => {
                decision.submit(window, plain);
            }
            (CacheEvent::Submission(..), None) => {}
        }
    }
    decisions.retain(|decision| decision.trigger != "direct" || !decision.submitted.is_empty());
    decisions
}

impl Decision {
    fn triggered(trigger: Trigger) -> Self {
        let by = |trigger: &str, index: Page, request: Pages, previous: Option<Bytes>| Self {
            trigger: trigger.to_owned(),
            index: index.get(),
            request: Some(request.get()),
            previous: Some(previous.map_or(-1, |bytes| bytes.get() as i64)),
            submitted: Vec::new(),
        };
        match trigger {
            Trigger::Sync { index, request, previous } => by("sync", index, request, previous),
            Trigger::Async { index, request, previous } => by("async", index, request, previous),
            Trigger::Direct => Self {
                request: None,
                previous: None,
                ..by("direct", Page::FIRST, Pages::ZERO, None)
            },
        }
    }

    fn submit(&mut self, window: Submission, plain: Option<Extent>) {
        let mut record = |kind, start: Page, pages: Pages, order| {
            if self.submitted.is_empty() && self.trigger == "direct" {
                self.index = start.get();
            }
            let mark = window.lookahead.get();
            self.submitted.push(RecordedSubmission(kind, start.get(), pages.get(), mark, order));
        };
        if let Fill::Folios { order } = window.fill {
            record(SubmissionKind::Order, window.start, window.pages, Some(order));
        }
        if let Some(plain) = plain {
            record(SubmissionKind::Plain, plain.start, plain.pages, None);
        }
    }
}
