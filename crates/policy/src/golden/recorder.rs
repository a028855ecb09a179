//! Records the decisions of a replay, as a kernel's tracepoints would.

use std::fmt;

use units::{Bytes, Pages};

use crate::cache::{Cache, DeviceLimits, FileCache, Fill, Submission, Trigger};
use crate::page::{Extent, Folio, Page};

/// A recorded decision. All numbers except `previous` are pages.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A recorded submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedSubmission {
    /// `page_cache_ra_order`.
    Order {
        start: u64,
        /// Number of pages of the window.
        size: u64,
        /// Number of pages from the mark to the end of the window.
        async_size: u64,
        order: u64,
    },
    /// `page_cache_ra_unbounded`: single pages.
    Plain {
        start: u64,
        /// Number of pages, cut off at the end of the file.
        pages: u64,
        /// Number of pages from the mark to the end.
        lookahead: u64,
    },
}

/// Formats the decision as in the recording.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<i64>| number.map_or("null".to_owned(), |n| n.to_string());
        let request = number(self.request.map(|pages| pages as i64));
        let previous = number(self.previous);
        write!(f, "[\"{}\",{},{request},{previous},[", self.trigger, self.index)?;
        for (nth, submitted) in self.submitted.iter().enumerate() {
            write!(f, "{}{submitted}", if nth > 0 { "," } else { "" })?;
        }
        write!(f, "]]")
    }
}

impl fmt::Display for RecordedSubmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order { start, size, async_size, order } => {
                write!(f, "[\"order\",{start},{size},{async_size},{order}]")
            }
            Self::Plain { start, pages, lookahead } => {
                write!(f, "[\"plain\",{start},{pages},{lookahead}]")
            }
        }
    }
}

/// The result of a replay.
pub(super) struct ReplayResult {
    pub(super) decisions: Vec<Decision>,
    pub(super) cached: Pages,
}

/// A cache of one file that records the decisions.
pub(super) struct DecisionRecorder {
    file: FileCache,
    decisions: Vec<Decision>,
}

impl DecisionRecorder {
    pub(super) fn new(file: FileCache) -> Self {
        Self { file, decisions: Vec::new() }
    }

    pub(super) fn file(&mut self) -> &mut FileCache {
        &mut self.file
    }

    pub(super) fn forget_decisions(&mut self) {
        self.decisions.clear();
    }

    /// Returns the decisions, without direct ones that submitted nothing: a kernel reports none.
    pub(super) fn decisions(mut self) -> Vec<Decision> {
        self.decisions
            .retain(|decision| decision.trigger != "direct" || !decision.submitted.is_empty());
        self.decisions
    }

    fn decide(&mut self, trigger: &str, index: Page, request: Pages, previous: Option<Bytes>) {
        self.decisions.push(Decision {
            trigger: trigger.to_owned(),
            index: index.get(),
            request: Some(request.get()),
            previous: Some(previous.map_or(-1, |bytes| bytes.get() as i64)),
            submitted: Vec::new(),
        });
    }

    fn record(&mut self, start: Page, submitted: RecordedSubmission) {
        if let Some(decision) = self.decisions.last_mut() {
            if decision.submitted.is_empty() && decision.trigger == "direct" {
                decision.index = start.get();
            }
            decision.submitted.push(submitted);
        }
    }
}

impl Cache for DecisionRecorder {
    fn file_size(&self) -> Bytes {
        self.file.file_size()
    }

    fn folio(&self, page: Page) -> Option<Folio> {
        self.file.folio(page)
    }

    fn hit_run(&self, page: Page, max: Pages) -> Pages {
        self.file.hit_run(page, max)
    }

    fn next_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.next_miss(from, max)
    }

    fn prev_miss(&self, from: Page, max: Pages) -> Option<Page> {
        self.file.prev_miss(from, max)
    }

    fn submit(&mut self, window: Submission) -> Pages {
        let (start, lookahead) = (window.start.get(), window.lookahead.get());
        if let Fill::Folios { order } = window.fill {
            let (size, order) = (window.pages.get(), u64::from(order));
            self.record(
                window.start,
                RecordedSubmission::Order { start, size, async_size: lookahead, order },
            );
        }
        let filled = self.file.fill(&window);
        if let Some(plain) = filled.plain {
            let (start, pages) = (plain.start.get(), plain.pages.get());
            self.record(plain.start, RecordedSubmission::Plain { start, pages, lookahead });
        }
        filled.pages()
    }

    fn demand(&mut self, page: Page) {
        self.file.demand(page);
    }

    fn set_mark(&mut self, page: Page) {
        self.file.set_mark(page);
    }

    fn clear_mark(&mut self, page: Page) {
        self.file.clear_mark(page);
    }

    fn is_used(&self, page: Page) -> bool {
        self.file.is_used(page)
    }

    fn set_used(&mut self, extent: Extent) {
        self.file.set_used(extent);
    }

    fn limits(&self) -> DeviceLimits {
        self.file.limits()
    }

    fn folio_limit(&self) -> Option<u8> {
        self.file.folio_limit()
    }

    fn trace(&mut self, trigger: Trigger) {
        match trigger {
            Trigger::Sync { index, request, previous } => {
                self.decide("sync", index, request, previous);
            }
            Trigger::Async { index, request, previous } => {
                self.decide("async", index, request, previous);
            }
            Trigger::Direct => {
                self.decide("direct", Page::FIRST, Pages::ZERO, None);
                if let Some(decision) = self.decisions.last_mut() {
                    (decision.request, decision.previous) = (None, None);
                }
            }
        }
    }
}
