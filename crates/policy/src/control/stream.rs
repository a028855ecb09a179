//! What is known of one open file.

use units::{Bytes, Nanos, Pages};

use super::answer::Answer;
use super::around::Around;
use super::outstanding::Outstanding;
use super::pattern::{Classifier, Places};
use super::plan::Plan;
use super::rates::Counts;
use super::runs::Runs;
use super::shrink::Shrink;
use super::trim::{Tally, Trim};
use super::{Facts, FileKey, Pattern, Seen};

/// Windows that a reader must have been seen to ask for before anything is done.
const EVIDENCE: u64 = 3;
/// Of a mapping's faults, those that follow on another, from which on it is read in pieces larger
/// than a page.
const PAIRED: f64 = 0.3;
/// The same, from which on it is read forward.
const FORWARD: f64 = 0.8;
/// The share of other reads' places that go on from another, from which on a larger window may
/// help.
const SOME_FORWARD: f64 = 0.1;

/// How an open file is read, as far as a window matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Forward, in one run or several, perhaps with other reads between.
    Forward,
    /// By faults, here and there, a page or a little more at a time.
    MappedRandom {
        /// Whether neighbouring pages are wanted, too.
        paired: bool,
    },
    /// In a way that a window does not help, or too little to tell.
    Other,
}

/// What is known of one open file.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub file: FileKey,
    pub classifier: Classifier,
    pub ahead: Outstanding,
    pub mapped: bool,
    /// The share of time that its readers wait, over the last half second or so.
    pub waiting: f64,
    /// When something was last seen of it.
    pub seen: Nanos,
    pub plan: Option<Plan>,
    pub trim: Trim,
    pub runs: Runs,
    pub answer: Option<Answer>,
    pub shrink: Option<Shrink>,
    pub around: Around,
    /// The window that it had when it was first looked at.
    pub own: Option<Pages>,
    /// The window that was ordered last, and when.
    pub ordered: Option<(Pages, Nanos)>,
    /// Its state at the last tick.
    pub facts: Option<Facts>,
    /// Since the last tick:
    pub stalled: u64,
    pub stalls: u64,
    pub thrashed: u64,
    /// Up to the last tick.
    before: (u64, Places),
    /// Since the beginning.
    pub asked: u64,
    windows: u64,
    pending: Option<(u64, u64)>,
}

impl Stream {
    /// An open file of which nothing is known.
    pub fn of(file: FileKey) -> Self {
        Self { file, ..Self::default() }
    }

    /// Takes in one thing seen.
    pub fn see(&mut self, at: Nanos, seen: Seen) {
        self.seen = at;
        match seen {
            Seen::Miss { index, pages, previous } => {
                let (index, pages) = (index.get(), pages.get());
                self.windows += 1;
                self.asked = self.asked.saturating_add(pages);
                if self.ahead.awaits(index) {
                    self.thrashed += 1;
                }
                previous.inspect(|previous| self.ahead.reader_at(previous.at.get()));
                self.ahead.reader_at(index);
                self.classifier.reader_from(
                    index,
                    pages,
                    previous.map(|previous| previous.at.get()),
                );
                self.foreseen(index, at);
                if let Some(shrink) = &mut self.shrink {
                    shrink.missed();
                }
                self.pending = Some((index, pages));
                self.mapped = false;
                self.runs.miss(index, previous.map(|previous| previous.behind.get()));
                self.answered(index, pages, at);
            }
            Seen::Mark { index, pages } => {
                self.windows += 1;
                self.ahead.reader_at(index.get());
                self.classifier.reader_at(index.get(), pages.get());
                self.pending = Some((index.get(), 0));
            }
            Seen::Window { window, index, mapped } => {
                if mapped {
                    self.windows += 1;
                    self.asked += 1;
                    self.mapped = true;
                    if self.ahead.awaits(index.get()) {
                        self.thrashed += 1;
                    }
                    self.classifier.reader_at(index.get(), 1);
                    self.foreseen(index.get(), at);
                }
                let (from, asked) = self.pending.take().unwrap_or((index.get(), 1));
                let (start, end) = (window.start.get(), window.end().get());
                self.ahead.submit(start, end, from, asked, at);
                if !mapped {
                    self.classifier.window_to(end);
                }
            }
            Seen::Plain { pages } => {
                self.ahead.used = self.ahead.used.saturating_add(pages.get());
                self.pending = None;
            }
            Seen::Stall { wait } => {
                self.stalls += 1;
                self.stalled = self.stalled.saturating_add(wait.get());
                if self.mapped {
                    self.around.waited(wait);
                }
            }
        }
    }

    /// What was read in answer to a miss will be told by nobody else.
    fn answered(&mut self, index: u64, pages: u64, at: Nanos) {
        let file = self.facts.map_or(Pages::ZERO, |facts| facts.file_pages);
        let Some(answer) = &mut self.answer else { return };
        if let Some(rest) = answer.miss(crate::Page::new(index), Pages::new(pages), file) {
            let (start, end) = (rest.start.get(), rest.end().get());
            self.ahead.submit(start, end, end, 0, at);
        }
    }

    fn foreseen(&mut self, index: u64, at: Nanos) {
        if let Some(plan) = &mut self.plan
            && !plan.reader_at(index, at)
        {
            self.plan = None;
        }
    }

    /// Takes in how it is after an interval.
    pub fn look(&mut self, facts: Facts, now: Nanos, elapsed: Nanos) {
        if let Some(position) = facts.position.filter(|position| !position.is_zero()) {
            self.ahead.reader_at(position.get().div_ceil(facts.page.get()));
            if let Some(plan) = &mut self.plan {
                plan.position(position, facts.page, now);
            }
        }
        self.ahead.expire(now, Some(facts.file_pages.get()));
        let seconds = elapsed.as_secs_f64().max(1e-6);
        let share = self.stalled as f64 / 1e9 / seconds;
        let weight = (seconds / 0.5).min(1.0);
        // At first there is nothing before it.
        let weight = if self.facts.is_none() { 1.0 } else { weight };
        self.waiting += weight * (share - self.waiting);
        self.classifier.fade(0.5_f64.powf(seconds));
        let (now, before) = (self.classifier.places(), self.before.1);
        if now != before {
            let left = now.elsewhere > before.elsewhere && now.switched == before.switched;
            self.ahead.follow_briefly(left);
        }
        let own = *self.own.get_or_insert(facts.window);
        self.around.has(facts.window, own);
        self.facts = Some(facts);
    }

    /// Begins a new interval.
    pub fn begin(&mut self) {
        (self.stalled, self.stalls, self.thrashed) = (0, 0, 0);
        self.before = (self.ahead.progress(), self.classifier.places());
    }

    /// The pages that its readers came by over the interval.
    pub fn came(&self) -> Pages {
        Pages::new(self.ahead.progress().saturating_sub(self.before.0))
    }

    /// What was counted over the interval.
    pub fn counts(&self) -> Counts {
        let (progress, now) = (self.ahead.progress(), self.classifier.places());
        let (progress_before, before) = self.before;
        let all = (now.forward - before.forward) + (now.elsewhere - before.elsewhere);
        if !self.is_known() {
            // It may turn out to be a stream, and would then be missed beside the streams.
            return Counts::default();
        }
        if self.reading() != Reading::Forward {
            return Counts { beside: all, ..Counts::default() };
        }
        Counts {
            progress: progress.saturating_sub(progress_before),
            forward: now.forward - before.forward,
            switched: now.switched - before.switched,
            elsewhere: now.elsewhere - before.elsewhere,
            beside: 0,
        }
    }

    /// Whether its reader has come to the end of the file.
    pub fn is_done(&self) -> bool {
        self.facts.is_some_and(|facts| {
            let position = facts.position.map_or(0, Bytes::get);
            position.div_ceil(facts.page.get().max(1)) >= facts.file_pages.get()
        })
    }

    /// What was counted up to now of what is read ahead for it.
    pub fn tally(&self) -> Tally {
        let places = self.classifier.places();
        Tally {
            used: self.ahead.used,
            wasted: self.ahead.wasted,
            abandoned: self.ahead.abandoned,
            forward: places.forward,
            elsewhere: places.elsewhere,
        }
    }

    /// Whether enough was seen to tell how it is read.
    pub fn is_known(&self) -> bool {
        let few = if self.is_done() { EVIDENCE - 1 } else { EVIDENCE };
        self.windows >= few && self.pattern() != Pattern::Unknown
    }

    /// How it is read.
    pub fn reading(&self) -> Reading {
        let share = self.classifier.forward_share();
        if !self.is_known() {
            Reading::Other
        } else if self.mapped && share < FORWARD {
            let random = matches!(self.pattern(), Pattern::Random | Pattern::RandomDense);
            if random || share < 0.5 {
                Reading::MappedRandom { paired: share > PAIRED }
            } else {
                Reading::Other
            }
        } else if share > SOME_FORWARD && self.plan.is_none() {
            Reading::Forward
        } else {
            Reading::Other
        }
    }

    /// Its pattern.
    pub fn pattern(&self) -> Pattern {
        let pages = self.facts.map_or(0, |facts| facts.file_pages.get());
        let touched = if pages == 0 { 0.0 } else { self.asked as f64 / pages as f64 };
        self.classifier.pattern(touched)
    }
}
