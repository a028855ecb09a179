//! The state that the controller keeps of one open file.

use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

use super::choice::RunsChoice;
use super::gain::MeasuredGain;
use super::history::AccessLog;
use super::inputs::{FileKey, FileState};
use super::outstanding::Outstanding;
use super::pattern::{AccessPattern, Classifier, PlaceCounts};
use super::random_faults::RandomFaults;
use super::rates::{CountedRate, ReadCounts};
use super::runs::{ReadEnd, ShortRuns};
use super::shrink::Shrink;
use super::sizes;
use super::totals::ReaderTotals;
use super::trend::{Trend, TrendPlan, TrendSteps};
use crate::tuning::Tuning;
use crate::what_if::Extra;
use policy::{AccessEvent, EventKind, MissPrefetch};

/// How an open file is read, as far as its window is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// Forward, in one run or several, possibly with other reads in between.
    Forward,
    /// By faults at random places, in pieces that are no longer than the original window.
    MappedRandom,
    /// In a pattern that a larger window does not help, or with too few events to classify.
    Other,
}

/// The access samples of an open file, which are taken in bursts.
#[derive(Clone, Copy, Debug, Default)]
struct SampleBurst {
    count: u64,
    last: Option<Nanos>,
    /// Whether the last one was a fault.
    mapped: bool,
    /// Earliest start of the next burst.
    next: Nanos,
}

impl SampleBurst {
    fn add(&mut self, at: Nanos, mapped: bool) {
        (self.count, self.last, self.mapped) = (self.count + 1, Some(at), mapped);
    }

    /// Returns whether reads are sampled one by one, so that misses add no information.
    fn is_current(&self, at: Nanos, tuning: &Tuning) -> bool {
        self.last.is_some_and(|last| at.saturating_sub(last) < tuning.sample_timeout())
    }

    /// Ends the burst if it is long enough.
    fn interval(&mut self, now: Nanos, tuning: &Tuning) {
        if self.count >= tuning.burst_samples() {
            (self.count, self.next) = (0, now + tuning.retry_interval);
        }
    }
}

/// The predicted gain of a plan, and how much its reader read per second before it.
#[derive(Clone, Copy, Debug)]
struct TrendTrial {
    predicted: f64,
    without: CountedRate,
}

/// The state of one open file.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub file: FileKey,
    pub classifier: Classifier,
    pub ahead: Outstanding,
    pub mapped: bool,
    /// Whether its file is also read through other open files: another reader may then use pages
    /// that were read ahead beyond the end of a run.
    pub shares_file: bool,
    /// Whether its device rotates.
    pub rotates: bool,
    /// Share of time that its readers wait, averaged over about 0.5 s.
    pub waiting: f64,
    /// Times of the first and the last event that is not an access sample.
    first_seen: Option<Nanos>,
    pub seen: Nanos,
    pub trend: Trend,
    pub plan: Option<TrendPlan>,
    /// The trial of that plan; `None` once its gain is known.
    trend_trial: Option<TrendTrial>,
    pub log: AccessLog,
    /// Time before which no plan begins, because the last one had no predicted gain, or a loss.
    pub no_trend_before: Nanos,
    /// The best action by prediction, and the number of runs at that time.
    pub choice: Option<(RunsChoice, u64)>,
    pub runs: ShortRuns,
    pub answer: Option<MissPrefetch>,
    /// Prefetching of large calls, which the kernel requests in parts.
    pub calls: Option<MissPrefetch>,
    /// The predicted gain of the miss prefetching that is being tried.
    pub predicted: f64,
    pub shrink: Option<Shrink>,
    pub faults: RandomFaults,
    /// The window when its state was first read; `None` before that.
    pub original: Option<Pages>,
    /// The window that the controller requested last, and when.
    pub requested_window: Option<(Pages, Nanos)>,
    /// State at the last tick; `None` before the first.
    pub facts: Option<FileState>,
    pub stalled: u64,
    pub stalls: u64,
    pub thrashed: u64,
    samples: SampleBurst,
    /// The page after the last sampled read of a stream, and its time.
    sampled_end: Option<(u64, Nanos)>,
    /// Progress in pages, and places, up to the last tick.
    before: (u64, PlaceCounts),
    /// Pages used and wasted before the interval.
    tallied: (u64, u64),
    windows: u64,
    pending: Option<(u64, u64)>,
    tuning: Arc<Tuning>,
}

impl Stream {
    /// Creates the state of an open file; `earlier_runs` are lengths of its file's earlier runs.
    pub fn new(file: FileKey, earlier_runs: &[u64], tuning: &Arc<Tuning>) -> Self {
        Self {
            file,
            classifier: Classifier::after(earlier_runs, Arc::clone(tuning)),
            ahead: Outstanding::new(Arc::clone(tuning)),
            trend: Trend::new(Arc::clone(tuning)),
            log: AccessLog::new(Arc::clone(tuning)),
            runs: ShortRuns::new(Arc::clone(tuning)),
            faults: RandomFaults::new(Arc::clone(tuning)),
            tuning: Arc::clone(tuning),
            ..Self::default()
        }
    }

    /// Processes an event of a reader; `page` is the page size.
    pub fn on_event(&mut self, event: &AccessEvent, page: Bytes) {
        let AccessEvent { at, index, .. } = *event;
        if !matches!(event.kind, EventKind::Access { .. }) {
            self.seen = at;
            self.first_seen.get_or_insert(at);
        }
        match event.kind {
            EventKind::Miss { .. } => {
                let pages = event.request.get();
                let previous = event.previous.map(|next| ReadEnd::new(next, page));
                self.windows += 1;
                if self.ahead.awaits(index) {
                    self.thrashed += 1;
                }
                previous.inspect(|previous| self.ahead.reader_at(previous.at));
                self.ahead.reader_at(index);
                let behind = previous.map(|previous| previous.behind);
                let is_of_run = behind
                    .zip(self.runs.current())
                    .is_none_or(|(behind, first)| self.classifier.covers(first, behind));
                let previous_at = previous.map(|previous| previous.at);
                let in_run = self.classifier.reader_from(index, pages, previous_at);
                previous.inspect(|previous| self.trend.record_gap(index, pages, previous.at));
                self.read(index, pages, in_run, at);
                match &mut self.shrink {
                    // While it has no window, a miss is not the start of a run.
                    Some(shrink) => shrink.missed(),
                    None => self.runs.miss(at, index, pages, behind, is_of_run),
                }
                self.pending = Some((index, pages));
                self.mapped = false;
                self.answered(index, pages, at);
            }
            EventKind::Mark { .. } => {
                self.windows += 1;
                self.ahead.reader_at(index);
                let in_run = self.classifier.reader_at(index, event.request.get());
                if !self.samples.is_current(at, &self.tuning) {
                    self.trend.read(index, event.request.get(), in_run);
                }
                if self.mapped {
                    self.faults.mark(index, self.original.unwrap_or_default());
                } else {
                    self.runs.mark(index);
                }
                self.pending = Some((index, 0));
            }
            EventKind::Window { window, mapped } => {
                if mapped {
                    self.windows += 1;
                    self.mapped = true;
                    if self.ahead.awaits(index) {
                        self.thrashed += 1;
                    }
                    let in_run = self.classifier.reader_at(index, 1);
                    self.faults.fault(at, index, window, self.original.unwrap_or(window.size));
                    self.read(index, 1, in_run, at);
                }
                let (from, asked) = self.pending.take().unwrap_or((index, 1));
                self.ahead.submit(window.start, window.end(), from, asked, at);
                if !mapped {
                    // Not from `index`: after a mark, that is where the window starts, beyond a
                    // window that may not be known.
                    self.classifier.window_to(from, window.end());
                }
            }
            EventKind::Plain => {
                self.ahead.used = self.ahead.used.saturating_add(event.request.get());
                self.pending = None;
            }
            EventKind::Access { mapped } if !mapped && self.reading() == StreamKind::Forward => {
                self.samples.count += 1;
                self.read_forward(at, index, event.request.get());
            }
            EventKind::Access { mapped } => {
                self.samples.add(at, mapped);
                self.log.sample(at, index, event.request.get(), mapped);
                self.trend.read(index, event.request.get(), false);
                if let Some(plan) = &mut self.plan {
                    plan.reader_at(index, Some(event.request.get()), at);
                }
            }
            EventKind::Stall { wait } => {
                self.stalls += 1;
                self.log.waited(wait);
                self.stalled = self.stalled.saturating_add(wait.get());
                if self.mapped {
                    self.faults.waited(wait, self.original);
                } else {
                    self.runs.waited(wait);
                }
            }
        }
    }

    /// Records a read of a stream, cached or not. Misses do not show a skip within pages that were
    /// read ahead. If the original window hides it, too, it does not count.
    fn read_forward(&mut self, at: Nanos, index: u64, pages: u64) {
        let end = index.saturating_add(pages.max(1));
        let Some((before, then)) = self.sampled_end.replace((end, at)) else { return };
        let is_next = at.saturating_sub(then) < self.tuning.sample_timeout();
        let is_far = index > before.saturating_add(self.original.unwrap_or_default().get());
        if is_next && is_far && self.classifier.skip(before, index) {
            self.ahead.skip(before, index);
            self.runs.miss(at, index, pages, Some(before), true);
        }
    }

    /// Records the prefetch that a miss triggers, because no event reports it.
    fn answered(&mut self, index: u64, pages: u64, at: Nanos) {
        let file = self.facts.map_or(Pages::ZERO, |facts| facts.file_pages);
        let (page, asked) = (policy::Page::new(index), Pages::new(pages));
        if let Some(call) = self.calls.as_mut().and_then(|calls| calls.miss(page, asked, file)) {
            self.ahead.submit_call(call.start.get(), call.end().get(), at);
        }
        if let Some(rest) = self.answer.as_mut().and_then(|runs| runs.miss(page, asked, file)) {
            let (start, end) = (rest.start.get(), rest.end().get());
            self.ahead.submit(start, end, end, 0, at);
            self.classifier.window_to(index, end);
        }
    }

    fn read(&mut self, index: u64, pages: u64, in_run: bool, at: Nanos) {
        if self.samples.is_current(at, &self.tuning) {
            return;
        }
        self.log.miss(at, index, pages, self.mapped);
        self.trend.read(index, pages, in_run);
        if let Some(plan) = &mut self.plan {
            plan.reader_at(index, None, at);
        }
    }

    /// Returns how its reader continues, if the kernel does not foresee that.
    pub fn steps(&self, facts: &FileState) -> Option<TrendSteps> {
        let trend = self.trend.steps(facts.has_read_ahead());
        // Reads by calls in between, or faults that reach marks only, do not show a mapping.
        let is_mapped = self.mapped || self.samples.mapped;
        let around = self.original.filter(|_| is_mapped && facts.has_read_ahead());
        trend.map(|steps| around.map_or(steps, |original| steps.with_window(original)))
    }

    /// Starts a plan. With a predicted gain, the gain is measured if enough reads were sampled.
    pub fn begin_plan(&mut self, plan: TrendPlan, predicted: Option<f64>) {
        let without = self.log.take_rate();
        let is_known = without.count >= self.tuning.min_trend_reads();
        let trial = predicted.map(|predicted| TrendTrial { predicted, without });
        (self.plan, self.trend_trial) = (Some(plan), trial.filter(|_| is_known));
    }

    /// Returns the gain of the plan once it is known: what its reader reads per second, without
    /// what it skips. With `ends`, a plan with a loss ends.
    pub fn judge_plan(&mut self, now: Nanos, ends: bool) -> Option<MeasuredGain> {
        let with = self.log.rate();
        self.plan.as_ref().filter(|plan| plan.can_be_judged())?;
        let TrendTrial { predicted, without } =
            self.trend_trial.take_if(|_| with.count >= self.tuning.min_trend_reads())?;
        if ends && with.is_below(&without, &self.tuning) {
            self.end_plan();
            self.no_trend_before = now + self.tuning.retry_interval;
        }
        let measured = with.per_second / without.per_second.max(1e-9);
        Some(MeasuredGain { predicted, measured })
    }

    pub fn end_plan(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.trend.end(&plan);
        }
        self.trend_trial = None;
    }

    /// Updates the state after an interval.
    pub fn observe(&mut self, facts: FileState, now: Nanos, elapsed: Nanos) {
        if let Some(position) = facts.position.filter(|position| !position.is_zero()) {
            self.ahead.reader_at(position.get().div_ceil(facts.page.get()));
            if let Some(plan) = &mut self.plan {
                plan.position(position, facts.page, now);
            }
        }
        self.ahead.expire(now, Some(facts.file_pages.get()));
        self.samples.interval(now, &self.tuning);
        let seconds = elapsed.as_secs_f64().max(1e-6);
        let share = self.stalled as f64 / 1e9 / seconds;
        let weight = (seconds / 0.5).min(1.0);
        // The first interval has no earlier average.
        let weight = if self.facts.is_none() { 1.0 } else { weight };
        self.waiting += weight * (share - self.waiting);
        self.classifier.interval(self.original.unwrap_or(facts.window));
        self.classifier.fade(0.5_f64.powf(seconds));
        self.faults.fade(0.5_f64.powf(seconds));
        self.original.get_or_insert(facts.window);
        self.facts = Some(facts);
    }

    pub fn begin(&mut self) {
        (self.stalled, self.stalls, self.thrashed) = (0, 0, 0);
        self.before = (self.ahead.progress(), self.classifier.places());
        self.tallied = (self.ahead.used, self.ahead.wasted);
    }

    /// Returns the totals of its readers over the interval; `page` is the page size.
    pub fn totals(&self, page: Bytes) -> ReaderTotals {
        let bytes = |now: u64, before: u64| {
            Bytes::new(now.saturating_sub(before).saturating_mul(page.get()))
        };
        ReaderTotals {
            waits: self.stalls,
            waited: Nanos::new(self.stalled),
            used: bytes(self.ahead.used, self.tallied.0),
            wasted: bytes(self.ahead.wasted, self.tallied.1),
        }
    }

    /// Returns the pages that its readers passed over the interval.
    pub fn pages_passed(&self) -> Pages {
        Pages::new(self.ahead.progress().saturating_sub(self.before.0))
    }

    /// Returns the counts over the interval.
    pub fn counts(&self) -> ReadCounts {
        let (progress, now) = (self.ahead.progress(), self.classifier.places());
        let (progress_before, before) = self.before;
        let all = (now.forward - before.forward) + (now.elsewhere - before.elsewhere);
        if !self.is_known() {
            // It may turn out to be a stream, and would then be missing from the other reads.
            return ReadCounts::default();
        }
        if self.reading() != StreamKind::Forward {
            return ReadCounts { other_reads: all, ..ReadCounts::default() };
        }
        ReadCounts {
            progress: progress.saturating_sub(progress_before),
            forward: now.forward - before.forward,
            switched: now.switched - before.switched,
            elsewhere: now.elsewhere - before.elsewhere,
            other_reads: 0,
        }
    }

    /// Returns whether to sample its accesses: always with a plan, and in bursts without one.
    pub fn wants_samples(&self, now: Nanos) -> bool {
        let is_read = now.saturating_sub(self.seen) <= self.tuning.max_unseen_time();
        let is_managed = self.facts.is_some_and(|facts| !facts.unmanaged);
        let is_due = is_read && now >= self.samples.next;
        let is_of_use = || match self.reading() {
            StreamKind::Forward => !self.mapped,
            StreamKind::MappedRandom => false,
            StreamKind::Other => true,
        };
        is_managed && (self.plan.is_some() || (is_due && is_of_use()))
    }

    /// Returns whether its reader has reached the end of the file.
    pub fn is_done(&self) -> bool {
        self.facts.is_some_and(|facts| {
            let position = facts.position.map_or(0, Bytes::get);
            position.div_ceil(facts.page.get().max(1)) >= facts.file_pages.get()
        })
    }

    /// Returns whether nobody has read it for `idle_timeout`.
    pub fn is_idle(&self, now: Nanos) -> bool {
        now.saturating_sub(self.seen) > self.tuning.idle_timeout
    }

    /// Returns whether it has been silent for longer than it had been read before: a program that
    /// scans first reads a few blocks of other files.
    pub fn has_stopped(&self, now: Nanos) -> bool {
        let read = self.seen.saturating_sub(self.first_seen.unwrap_or(self.seen));
        now.saturating_sub(self.seen) > read.max(self.tuning.min_first_trial_time())
    }

    /// Returns whether it has been read for so short a time that few waits may have ended.
    pub fn is_young(&self, now: Nanos) -> bool {
        let read = now.saturating_sub(self.first_seen.unwrap_or(now));
        read < self.tuning.observation_time
    }

    /// Returns whether its window differs from the original one.
    pub fn is_changed(&self) -> bool {
        self.facts
            .is_some_and(|facts| self.original.is_some_and(|original| original != facts.window))
    }

    /// Returns the largest window that its runs justify; `None` if they are unknown or no limit.
    pub fn window_limit(&self) -> Option<Pages> {
        let original = self.original?;
        let Some((choice, _)) = self.choice else {
            // No choice yet, or several readers use this open file. If its runs join, what is read
            // beyond one of them saves another reader a seek.
            let in_turns = self.classifier.is_in_turns();
            let join = self.rotates && in_turns && self.classifier.do_runs_join();
            let run = self.classifier.usual_run().filter(|_| !self.shares_file && !join)?;
            let unwasted = Pages::new((self.tuning.max_waste_share * run.get() as f64) as u64);
            let window =
                if in_turns { sizes::at_most(unwasted) } else { sizes::even_at_most(unwasted) };
            return Some(window.max(original));
        };
        Some(if choice.candidate.extra == Extra::Nothing {
            choice.candidate.window.max(original)
        } else {
            original
        })
    }

    /// Returns the length of the runs to complete after a miss, if that is the best action.
    pub fn completed_run(&self) -> Option<Pages> {
        match self.choice?.0.candidate.extra {
            Extra::AfterMiss(run, _) => Some(run),
            _ => None,
        }
    }

    /// Returns whether there are enough events to know how it is read.
    pub fn is_known(&self) -> bool {
        let few =
            if self.is_done() { self.tuning.min_windows - 1 } else { self.tuning.min_windows };
        self.windows >= few && self.classifier.pattern() != AccessPattern::Unknown
    }

    pub fn reading(&self) -> StreamKind {
        let share = self.classifier.forward_share();
        if !self.is_known() {
            StreamKind::Other
        } else if self.mapped
            && self.plan.is_none()
            && self.original.is_some_and(|original| self.faults.is_random(original))
        {
            StreamKind::MappedRandom
        } else if self.mapped && share < self.tuning.min_forward_share_mapped() {
            StreamKind::Other
        } else if share > self.tuning.min_share && self.plan.is_none() {
            StreamKind::Forward
        } else {
            StreamKind::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Page;

    #[test]
    fn runs_limit_a_window_to_a_power_of_two() {
        // A fifth of 350 pages are 70.
        let mut stream = Stream::new(FileKey(1, 1), &[350; 4], &Arc::default());
        stream.original = Some(Pages::new(32));
        stream.classifier.interval(Pages::new(32));
        assert_eq!(stream.window_limit(), Some(Pages::new(64)));
    }

    #[test]
    fn runs_that_join_limit_no_window_of_streams_in_turn_on_a_rotating_disk() {
        let limit = |streams: u64, rotates: bool, join: bool| {
            let mut stream =
                Stream { original: Some(Pages::new(32)), rotates, ..Stream::default() };
            // Each stream reads runs of 512 pages in calls of 64, far from one another.
            for call in 0..200 * streams {
                let (reader, run, part) = (call % streams, call / streams / 8, call / streams % 8);
                let index = (reader * 1000 + run) * 10_000 + part * 64;
                stream.classifier.reader_at(index, 64);
                stream.classifier.record_join(index, join);
            }
            stream.classifier.interval(Pages::new(32));
            stream.window_limit().map(Pages::get)
        };
        assert_eq!([false, true].map(|join| limit(1, true, join)), [Some(64); 2]);
        assert_eq!([false, true].map(|join| limit(2, false, join)), [Some(68); 2]);
        assert_eq!([false, true].map(|join| limit(2, true, join)), [Some(68), None]);
    }

    #[test]
    fn a_file_that_is_silent_for_longer_than_it_was_read_has_stopped() {
        let mut stream = Stream::default();
        for at in [0, 200] {
            let kind = EventKind::Plain;
            let event =
                crate::probed::event(Nanos::from_millis(at), kind, Page::FIRST, Pages::ZERO);
            stream.on_event(&event, Bytes::from_kib(4));
        }
        assert_eq!([499, 500].map(|at| stream.is_young(Nanos::from_millis(at))), [true, false]);
        assert!(!stream.has_stopped(Nanos::from_millis(400)));
        assert!(stream.has_stopped(Nanos::from_millis(401)));
    }

    #[test]
    fn a_skip_beyond_the_original_window_ends_the_run_of_a_stream() {
        let read = |skipped: u64, pause: Nanos| {
            let mut stream = Stream { original: Some(Pages::new(32)), ..Stream::default() };
            let mut at = Nanos::ZERO;
            let mut event = |stream: &mut Stream, kind: EventKind, page: u64| {
                let event = crate::probed::event(at, kind, Page::new(page), Pages::new(8));
                stream.on_event(&event, Bytes::from_kib(4));
                at += pause;
            };
            for call in 0..8 {
                event(&mut stream, EventKind::Miss { before: policy::Window::default() }, call * 8);
            }
            assert_eq!(stream.reading(), StreamKind::Forward);
            stream.ahead.submit(64, 512, 64, 0, Nanos::ZERO);
            stream.classifier.window_to(56, 512);
            event(&mut stream, EventKind::Access { mapped: false }, 64);
            event(&mut stream, EventKind::Access { mapped: false }, 72 + skipped);
            stream.ahead.wasted
        };
        let soon = Nanos::from_millis(1);
        assert_eq!([0, 32, 33, 300].map(|skipped| read(skipped, soon)), [0, 0, 33, 300]);
        let later = Tuning::DEFAULT.sample_timeout();
        assert_eq!(read(300, later), 0, "what was read between the samples is not known");
    }

    /// Returns the measured gain of a plan, and whether it goes on, for a reader that takes
    /// `before` and then `with` microseconds for each read.
    fn judged(before: u64, with: u64) -> (f64, bool) {
        let mut stream = Stream::default();
        let (mut at, mut page) = (Nanos::ZERO, 1 << 20);
        let mut read = |stream: &mut Stream, micros: u64| {
            at += Nanos::from_micros(micros);
            page -= 16;
            stream.log.sample(at, page, 1, false);
        };
        let enough = stream.tuning.min_trend_reads();
        (0..=enough).for_each(|_| read(&mut stream, before));
        let steps = TrendSteps::gapless(1 << 19, -16);
        let max_skip = Pages::new(64);
        let mut plan = TrendPlan::new(steps, Nanos::ZERO, max_skip, Arc::clone(&stream.tuning));
        (0..stream.tuning.judge_intervals()).for_each(|_| plan.interval(max_skip));
        stream.begin_plan(plan, Some(2.0));
        (1..enough).for_each(|_| read(&mut stream, with));
        assert!(stream.judge_plan(Nanos::ZERO, true).is_none(), "too few reads");
        read(&mut stream, with);
        let gain = stream.judge_plan(Nanos::ZERO, true).expect("a gain");
        assert!(stream.judge_plan(Nanos::ZERO, true).is_none(), "it is reported once");
        (gain.measured, stream.plan.is_some())
    }

    #[test]
    fn a_plan_with_which_less_is_read_per_second_ends() {
        for (with, least, most, expected) in
            [(250, 3.9, 4.1, true), (2000, 0.48, 0.52, false), (1100, 0.88, 0.92, true)]
        {
            let (measured, goes_on) = judged(1000, with);
            assert!((least..most).contains(&measured), "{with}: {measured}");
            assert_eq!(goes_on, expected, "{with}: a small loss may be chance");
        }
    }
}
