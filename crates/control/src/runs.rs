//! The runs of an open file, and prefetching the rest of a run after its first miss
//! ([`MissPrefetch`](policy::MissPrefetch)).
//!
//! The end of a run is known when the next run starts, because the kernel keeps the end of the last
//! read. A prediction ([`choice`](crate::choice)) selects the length of the runs to complete. A
//! trial then checks the prediction: if throughput falls, the file gets its original window back.

use crate::backoff::Backoff;
use crate::choice::PastRun;
use crate::rates::CountedRate;
use crate::tuning::Tuning;
use std::collections::VecDeque;
use std::sync::Arc;

use units::{Bytes, Nanos, Pages};

/// A change of miss prefetching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RunsChange {
    /// Starts, or continues with another length: completes runs of this many pages.
    Begin(Pages),
    /// Ends, because the reader is slower with it.
    Slower,
    /// Ends, because prefetches arrive too late, or never.
    TooLate,
    /// Ends, because the file no longer qualifies, or another action is predicted to be better.
    Ended,
    /// Measured gain: throughput with it ÷ throughput before.
    Gained(f64),
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Nanos,
    runs: u64,
    pages: u64,
    window: Pages,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    with: Pages,
    /// Pages per second before miss prefetching, and the number of runs.
    before: CountedRate,
    /// Number of runs at which the rate is compared next.
    compared_at: u64,
    /// Counts of runs, and of misses within runs, at the last check for late prefetches.
    last_check: (u64, u64),
}

/// The run that a reader is in.
#[derive(Clone, Copy, Debug)]
struct CurrentRun {
    first: u64,
    /// Last page at which the reader reached a mark; the first page of the run before that.
    last: u64,
    marks: u64,
    call: u64,
    at: Nanos,
    /// Total wait of the readers before this run.
    waited: Nanos,
    /// Wait for its first miss; `None` until that has ended.
    waited_first: Option<Nanos>,
}

/// The runs of one open file.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortRuns {
    current: Option<CurrentRun>,
    log: VecDeque<PastRun>,
    /// Number of runs that have ended, and their pages.
    runs: u64,
    pages: u64,
    within: u64,
    /// Total wait of the readers.
    waited: Nanos,
    /// Start of the current measurement of the reader's rate.
    mark: Option<Mark>,
    answered: Option<Answered>,
    backoff: Backoff,
    tuning: Arc<Tuning>,
}

impl ShortRuns {
    pub fn new(tuning: Arc<Tuning>) -> Self {
        Self { tuning, ..Self::default() }
    }

    /// Records a miss at page `index` in a call of `pages` pages. The previous read ended before
    /// page `behind`; `is_of_run` means in the current run, not in the run of another reader.
    pub fn miss(
        &mut self,
        at: Nanos,
        index: u64,
        pages: u64,
        behind: Option<u64>,
        is_of_run: bool,
    ) {
        let Some(behind) = behind else { return };
        let waited = self.waited;
        let call = pages.max(1);
        let waited_first = None;
        let next =
            CurrentRun { first: index, last: index, marks: 0, call, at, waited, waited_first };
        let Some(run) = self.current else {
            self.current = Some(next);
            return;
        };
        // The miss is within the run, or continues it.
        if is_of_run && (run.first..=behind).contains(&index) {
            self.within += 1;
            return;
        }
        self.current = Some(next);
        let length = behind.saturating_sub(run.first);
        if !is_of_run || !(1..=self.tuning.max_run_pages()).contains(&length) {
            return;
        }
        if self.log.len() == self.tuning.max_remembered {
            self.log.pop_front();
        }
        self.log.push_back(PastRun {
            first: run.first,
            pages: length,
            call: run.call,
            elapsed: at.saturating_sub(run.at),
            waited: waited.saturating_sub(run.waited),
            waited_first: run.waited_first,
        });
        self.runs += 1;
        self.pages += length;
    }

    /// Returns the first page of the current run.
    pub fn current(&self) -> Option<u64> {
        self.current.map(|run| run.first)
    }

    /// Records that a reader reached the mark at this page.
    pub fn mark(&mut self, index: u64) {
        // A run that starts with cached pages has no miss: its mark is far from the current run.
        let near = |run: &&mut CurrentRun| {
            (run.last..=run.last.saturating_add(self.tuning.max_run_pages())).contains(&index)
        };
        if let Some(run) = self.current.as_mut().filter(near) {
            (run.last, run.marks) = (index, run.marks + 1);
        }
    }

    /// Returns the last runs, and the number of runs so far; `None` while the current run is longer
    /// than the last runs together, because the access pattern has changed.
    pub fn lately(&self) -> Option<(&VecDeque<PastRun>, u64)> {
        let known: u64 = self.log.iter().map(|run| run.pages).sum();
        let streams = |run: CurrentRun| {
            run.marks >= self.tuning.min_repeats() && run.last - run.first > known
        };
        (!self.current.is_some_and(streams)).then_some((&self.log, self.runs))
    }

    /// Adds a wait of a reader.
    pub fn waited(&mut self, wait: Nanos) {
        self.waited += wait;
        if let Some(run) = &mut self.current {
            run.waited_first.get_or_insert(wait);
        }
    }

    /// Ends miss prefetching, and the measurement of the reader's rate.
    pub fn stop(&mut self) {
        (self.answered, self.mark) = (None, None);
    }

    /// Decides after an interval. `short` is the current window, `None` if misses must not trigger
    /// a prefetch; `best` is the length of the runs to complete.
    pub fn step(
        &mut self,
        now: Nanos,
        short: Option<Pages>,
        best: Option<Pages>,
        trials: bool,
    ) -> Option<RunsChange> {
        let Some(window) = short else {
            let over = self.answered.is_some();
            self.stop();
            return over.then_some(RunsChange::Ended);
        };
        let here = self.here(now, window);
        let mark = *self.mark.get_or_insert(here);
        let elapsed = now.saturating_sub(mark.at);
        let rate = (self.pages - mark.pages) as f64 / elapsed.as_secs_f64().max(1e-9);
        let got = CountedRate { per_second: rate, count: self.runs - mark.runs };
        let Some(answered) = self.answered else {
            if mark.window != window {
                self.mark = Some(here);
                return None;
            }
            if got.count < self.tuning.min_runs()
                || elapsed < self.tuning.observation_time
                || !self.backoff.is_over(now)
            {
                return None;
            }
            let with = best?;
            let last_check = (self.runs, self.within);
            let compared_at = self.tuning.min_samples;
            self.begin(here, Answered { with, before: got, compared_at, last_check });
            return Some(RunsChange::Begin(with));
        };
        if self.is_late(answered) && trials {
            self.give_up(now);
            return Some(RunsChange::TooLate);
        }
        if got.count >= answered.compared_at && answered.compared_at <= self.tuning.max_history {
            if trials && got.is_below(&answered.before, &self.tuning) {
                self.give_up(now);
                return Some(RunsChange::Slower);
            }
            let compared_at = 2 * answered.compared_at;
            self.answered = self.answered.map(|answered| Answered { compared_at, ..answered });
            if answered.compared_at == self.tuning.reported_runs() {
                return Some(RunsChange::Gained(
                    got.per_second / answered.before.per_second.max(1e-9),
                ));
            }
        }
        self.fit(here, best)
    }

    /// Ends miss prefetching until a backoff is over.
    fn give_up(&mut self, now: Nanos) {
        self.stop();
        self.backoff.fail(now, &self.tuning);
    }

    /// Returns whether more than half of the runs since the last check missed a prefetched page.
    fn is_late(&mut self, answered: Answered) -> bool {
        let runs = self.runs - answered.last_check.0;
        if runs < self.tuning.min_samples {
            return false;
        }
        let within = (self.within - answered.last_check.1) as f64 / runs as f64;
        let last_check = (self.runs, self.within);
        self.answered = Some(Answered { last_check, ..answered });
        let pieces = |length: &u64| length.div_ceil(answered.with.get().max(1)) - 1;
        let expected: u64 = self.log.iter().map(|run| pieces(&run.pages)).sum();
        within - expected as f64 / self.log.len().max(1) as f64 > self.tuning.majority_share
    }

    fn begin(&mut self, here: Mark, answered: Answered) {
        self.answered = Some(answered);
        self.mark = Some(here);
    }

    fn here(&self, at: Nanos, window: Pages) -> Mark {
        Mark { at, runs: self.runs, pages: self.pages, window }
    }

    /// Adapts to runs that have become longer or shorter.
    fn fit(&mut self, here: Mark, best: Option<Pages>) -> Option<RunsChange> {
        let answered = self.answered?;
        let Some(with) = best else {
            self.stop();
            return Some(RunsChange::Ended);
        };
        let ratio = with.get() as f64 / answered.with.get().max(1) as f64;
        if ratio.max(1.0 / ratio) < self.tuning.min_change_ratio() {
            return None;
        }
        // Rates with different run lengths are not compared.
        self.begin(here, Answered { with, compared_at: u64::MAX, ..answered });
        Some(RunsChange::Begin(with))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadEnd {
    /// Page of the next byte, which is where the kernel reports the end of the call.
    pub at: u64,
    /// Page after the last page that the call read from; equal to `at` if the call ended at a page
    /// boundary.
    pub behind: u64,
}

impl ReadEnd {
    /// Returns the end of a call; `next` is the offset after its last byte.
    pub fn new(next: Bytes, page: Bytes) -> Self {
        let page = page.get().max(1);
        Self { at: next.get() / page, behind: next.get().div_ceil(page) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Nanos = Nanos::from_millis(100);
    const WINDOW: Option<Pages> = Some(Pages::new(32));

    const RUN: Option<Pages> = Some(Pages::new(4));

    /// Reads runs of these lengths, 5000 pages apart.
    fn read(runs: &mut ShortRuns, lengths: impl IntoIterator<Item = u64>) {
        for length in lengths {
            let began = runs.current.map_or(0, |run| run.first);
            runs.miss(Nanos::ZERO, began + 5000, 1, Some(began + length), true);
        }
    }

    fn lengths(runs: &ShortRuns) -> Vec<u64> {
        runs.log.iter().map(|run| run.pages).collect()
    }

    /// Returns the changes over `count` intervals with `each` runs of four pages.
    fn intervals(runs: &mut ShortRuns, now: &mut Nanos, count: u64, each: u64) -> Vec<RunsChange> {
        let mut changes = Vec::new();
        for _ in 0..count {
            *now += STEP;
            read(runs, (0..each).map(|_| 4));
            changes.extend(runs.step(*now, WINDOW, RUN, true));
        }
        changes
    }

    #[test]
    fn places_within_a_run_are_no_runs() {
        let mut runs = ShortRuns::default();
        for (page, previous) in [(10, Some(3)), (11, Some(11)), (12, Some(12)), (90, Some(14))] {
            runs.miss(Nanos::ZERO, page, 1, previous, true);
        }
        assert_eq!(lengths(&runs), [4]);
        assert!(runs.lately().is_some());
        runs.miss(Nanos::ZERO, 50, 1, None, true);
        assert_eq!(lengths(&runs), [4], "where the last read ended is not known");
        (1..=4).for_each(|window| runs.mark(90 + 32 * window));
        assert!(runs.lately().is_none(), "the current run is much longer");
        runs.miss(Nanos::ZERO, 500, 1, Some(400), false);
        assert_eq!(lengths(&runs), [4], "another reader ended there");
    }

    #[test]
    fn a_run_that_ends_within_a_page_counts_that_page() {
        let (page, mut runs) = (Bytes::from_kib(4), ShortRuns::default());
        // Records of 10 KiB, each at the start of a page.
        for record in 0_u64..5 {
            let before = Bytes::new((record * 100).saturating_sub(100) * 4096 + 10 * 1024);
            let behind = ReadEnd::new(before, page).behind;
            runs.miss(Nanos::ZERO, record * 100, 1, Some(behind), true);
        }
        assert_eq!(lengths(&runs), [3; 4]);
        let whole = ReadEnd::new(Bytes::from_kib(8), page);
        assert_eq!((whole.at, whole.behind), (2, 2));
    }

    #[test]
    fn prefetching_that_serves_stays_until_another_action_is_better() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        let begun = intervals(&mut runs, &mut now, 6, 20);
        assert_eq!(begun, [RunsChange::Begin(Pages::new(4))]);
        let changes = intervals(&mut runs, &mut now, 50, 30);
        assert!(
            matches!(changes[..], [RunsChange::Gained(gain)] if (1.4..1.6).contains(&gain)),
            "{changes:?}"
        );
        let longer = Some(Pages::new(9));
        assert_eq!(runs.step(now, WINDOW, longer, true), Some(RunsChange::Begin(Pages::new(9))));
        assert_eq!(runs.step(now, WINDOW, None, true), Some(RunsChange::Ended));
        assert_eq!(runs.step(now, WINDOW, None, true), None);
    }

    #[test]
    fn answers_that_come_too_late_are_given_no_more() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        intervals(&mut runs, &mut now, 10, 20);
        let mut missed = |each: u64| {
            for run in 0..20 {
                read(&mut runs, [4]);
                let began = runs.current.map_or(0, |run| run.first);
                (1..=each).filter(|_| run % 4 != 0).for_each(|page| {
                    runs.miss(now, began + page, 1, Some(began + page), true);
                });
            }
            now += STEP;
            runs.step(now, WINDOW, RUN, true)
        };
        let (few, many) = (missed(0), missed(1));
        assert_ne!(few, Some(RunsChange::TooLate));
        assert_eq!(many, Some(RunsChange::TooLate));
    }

    #[test]
    fn answers_that_harm_are_taken_back_and_tried_later() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        intervals(&mut runs, &mut now, 10, 20);
        let changes = intervals(&mut runs, &mut now, 30, 15);
        assert_eq!(changes.last(), Some(&RunsChange::Slower), "{changes:?}");
        assert_eq!(intervals(&mut runs, &mut now, 100, 20), []);
        let again = intervals(&mut runs, &mut now, 110, 20);
        assert_eq!(again.first(), Some(&RunsChange::Begin(Pages::new(4))), "{again:?}");
    }
}
