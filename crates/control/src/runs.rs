//! How long the short runs of an open file are, and whether answering their first miss serves its
//! reader ([`MissPrefetch`](policy::MissPrefetch)).
//!
//! Where a run ended is known when the next one begins, as the kernel keeps the place where the
//! last read ended. What a run is to be answered with is the longest piece of which little is read
//! in vain. That it serves its reader is not taken for granted: if it gets less than before, it has
//! its own window back.

use crate::tuning::runs as tuning;
use std::collections::VecDeque;

use units::{Bytes, Nanos, Pages};

/// What is to be done about answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunsChange {
    /// From now on, with runs of so many pages.
    Begin(Pages),
    /// No more: they do not serve.
    Harm,
    /// No more: they come too late, or nobody gives them.
    Late,
    /// No more: its runs are short no longer, or so short that nothing is left to be read.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Nanos,
    runs: u64,
    pages: u64,
    waits: u64,
    waited: Nanos,
    window: Pages,
}

/// What a reader got: pages in a second, over so many runs.
#[derive(Clone, Copy, Debug)]
struct RunsRate {
    rate: f64,
    runs: u64,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    with: Pages,
    before: RunsRate,
    /// How many runs must have been answered when it is compared next.
    compared_at: u64,
    /// The runs and the misses within them up to which it was looked whether answers are late.
    looked: (u64, u64),
}

/// The short runs of one open file.
#[derive(Clone, Debug, Default)]
pub(super) struct ShortRuns {
    /// Where the run began in which its reader is.
    began: Option<u64>,
    lengths: VecDeque<u64>,
    /// Runs that ended so far, and their pages.
    runs: u64,
    pages: u64,
    within: u64,
    /// How often and how long its readers waited so far.
    waits: u64,
    waited: Nanos,
    /// Since when what the reader gets is counted.
    mark: Option<Mark>,
    answered: Option<Answered>,
    not_before: Nanos,
    harmed: u32,
}

impl ShortRuns {
    /// A reader missed this page; the read before ended right before that one.
    pub fn miss(&mut self, index: u64, behind: Option<u64>) {
        let Some(behind) = behind else { return };
        let Some(began) = self.began else {
            self.began = Some(index);
            return;
        };
        // In the run, or where it goes on.
        if (began..=behind).contains(&index) {
            self.within += 1;
            return;
        }
        self.began = Some(index);
        let length = behind.saturating_sub(began);
        if !(1..=tuning::MAX_SHORT_RUN_PAGES).contains(&length) {
            return;
        }
        if self.lengths.len() == tuning::MAX_RUNS_REMEMBERED {
            self.lengths.pop_front();
        }
        self.lengths.push_back(length);
        self.runs += 1;
        self.pages += length;
    }

    /// A reader waited so long.
    pub fn waited(&mut self, wait: Nanos) {
        self.waits += 1;
        self.waited += wait;
    }

    /// Forgets that anything is answered, as nobody does it any more.
    pub fn stop(&mut self) {
        (self.answered, self.mark) = (None, None);
    }

    /// What to do after an interval; `short`: its reader reads in short runs, with this window;
    /// `foreseen`: how long it would wait for a run whose rest is asked for on its first miss.
    pub fn step(
        &mut self,
        now: Nanos,
        short: Option<Pages>,
        foreseen: impl Fn(Pages) -> Nanos,
    ) -> Option<RunsChange> {
        let Some(window) = short else {
            let over = self.answered.is_some();
            self.stop();
            return over.then_some(RunsChange::Over);
        };
        let here = self.here(now, window);
        let mark = *self.mark.get_or_insert(here);
        let elapsed = now.saturating_sub(mark.at);
        let rate = (self.pages - mark.pages) as f64 / elapsed.as_secs_f64().max(1e-9);
        let got = RunsRate { rate, runs: self.runs - mark.runs };
        let Some(answered) = self.answered else {
            if mark.window != window {
                self.mark = Some(here);
                return None;
            }
            if got.runs < tuning::MIN_RUNS
                || elapsed < tuning::MIN_OBSERVATION_TIME
                || now < self.not_before
            {
                return None;
            }
            let with = self.piece()?;
            if !self.would_wait_less(mark, got.runs as f64, foreseen(self.mean_run())) {
                return None;
            }
            let looked = (self.runs, self.within);
            let compared_at = tuning::COMPARISON_RUNS.0;
            self.begin(here, Answered { with, before: got, compared_at, looked });
            return Some(RunsChange::Begin(with));
        };
        if self.is_late(answered) {
            self.give_up(now);
            return Some(RunsChange::Late);
        }
        if got.runs >= answered.compared_at && answered.compared_at <= tuning::COMPARISON_RUNS.1 {
            if is_harmed(answered.before, got) {
                self.give_up(now);
                return Some(RunsChange::Harm);
            }
            let compared_at = 2 * answered.compared_at;
            self.answered = self.answered.map(|answered| Answered { compared_at, ..answered });
        }
        self.fit(here)
    }

    /// Tries it again after some time.
    fn give_up(&mut self, now: Nanos) {
        self.stop();
        self.not_before = now + tuning::BACKOFF_TIME * 2_u64.pow(self.harmed.min(8));
        self.harmed += 1;
    }

    /// Whether more than half of the runs since the last look missed a page that was to be there.
    fn is_late(&mut self, answered: Answered) -> bool {
        let runs = self.runs - answered.looked.0;
        if runs < tuning::COMPARISON_RUNS.0 {
            return false;
        }
        let within = (self.within - answered.looked.1) as f64 / runs as f64;
        let looked = (self.runs, self.within);
        self.answered = Some(Answered { looked, ..answered });
        let pieces = |length: &u64| length.div_ceil(answered.with.get().max(1)) - 1;
        let expected: u64 = self.lengths.iter().map(pieces).sum();
        within - expected as f64 / self.lengths.len().max(1) as f64 > tuning::MAX_LATE_SHARE
    }

    fn begin(&mut self, here: Mark, answered: Answered) {
        self.answered = Some(answered);
        self.mark = Some(here);
    }

    fn here(&self, now: Nanos, window: Pages) -> Mark {
        let Self { runs, pages, waits, waited, .. } = *self;
        Mark { at: now, runs, pages, waits, waited, window }
    }

    /// Whether readers waited for most of these runs more than once, and longer than foreseen: who
    /// asks for a run at once waits for it once anyway.
    fn would_wait_less(&self, since: Mark, runs: f64, foreseen: Nanos) -> bool {
        let waits = (self.waits - since.waits) as f64 / runs;
        let waited = self.waited.saturating_sub(since.waited).as_secs_f64() / runs;
        waits >= tuning::MIN_WAITS_PER_RUN
            && foreseen.as_secs_f64() <= tuning::MAX_FORESEEN_WAIT_RATIO * waited
    }

    fn mean_run(&self) -> Pages {
        Pages::new(self.lengths.iter().sum::<u64>() / (self.lengths.len() as u64).max(1))
    }

    /// Goes along with runs that become longer or shorter.
    fn fit(&mut self, here: Mark) -> Option<RunsChange> {
        let answered = self.answered?;
        if self.serves(answered.with.get()) {
            let best = self.piece()?;
            if (best.get() as f64) < tuning::MIN_CHANGE_RATIO * answered.with.get() as f64 {
                return None;
            }
        }
        let Some(with) = self.piece() else {
            self.stop();
            return Some(RunsChange::Over);
        };
        // What its reader got with other runs says nothing.
        self.begin(here, Answered { with, compared_at: u64::MAX, ..answered });
        Some(RunsChange::Begin(with))
    }

    /// The longest piece of which little is read in vain, if that is more than a page.
    fn piece(&self) -> Option<Pages> {
        let serves = |piece: &u64| self.serves(*piece);
        let best = self.lengths.iter().copied().filter(serves).max()?;
        (best > 1).then(|| Pages::new(best))
    }

    /// Whether little is read in vain if these runs are read in such pieces.
    fn serves(&self, piece: u64) -> bool {
        let wanted: u64 = self.lengths.iter().sum();
        let read: u64 = self.lengths.iter().map(|length| length.next_multiple_of(piece)).sum();
        read as f64 <= (1.0 + tuning::MAX_WASTE_SHARE) * wanted as f64
    }
}

/// Whether a reader gets less than before, and not by chance: what a run takes differs from the
/// next by as much as itself on a disk that seeks.
fn is_harmed(before: RunsRate, now: RunsRate) -> bool {
    let chance = (1.0 / before.runs.max(1) as f64 + 1.0 / now.runs.max(1) as f64).sqrt();
    now.rate < (tuning::REVERT_BELOW_RATIO - chance) * before.rate
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadEnd {
    /// The page that the next byte is in: where a kernel says that the call ended.
    pub at: u64,
    /// The page behind the last one that the call read anything of; the same one, if the call ended
    /// with a page.
    pub behind: u64,
}

impl ReadEnd {
    /// The end of a call; `next` is the byte after its last.
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

    /// The rest of a run is there in a tenth of the time that readers wait for it otherwise.
    fn quick(_: Pages) -> Nanos {
        Nanos::from_micros(100)
    }

    /// A reader that reads runs of these lengths here and there.
    fn read(runs: &mut ShortRuns, lengths: impl IntoIterator<Item = u64>) {
        for length in lengths {
            let began = runs.began.unwrap_or_default();
            runs.miss(began + 5000, Some(began + length));
        }
    }

    /// What comes of so many intervals with so many runs of four pages each.
    fn intervals(runs: &mut ShortRuns, now: &mut Nanos, count: u64, each: u64) -> Vec<RunsChange> {
        let mut changes = Vec::new();
        for _ in 0..count {
            *now += STEP;
            read(runs, (0..each).map(|_| 4));
            (0..2 * each).for_each(|_| runs.waited(Nanos::from_micros(500)));
            changes.extend(runs.step(*now, WINDOW, quick));
        }
        changes
    }

    #[test]
    fn what_serves_is_the_longest_piece_of_which_little_is_read_in_vain() {
        let mut runs = ShortRuns::default();
        let mut piece = |lengths: &[u64]| {
            read(&mut runs, lengths.iter().copied().cycle().take(tuning::MAX_RUNS_REMEMBERED + 1));
            runs.piece().map(Pages::get)
        };
        assert_eq!(piece(&[4]), Some(4));
        assert_eq!(piece(&[1]), None, "single pages need no answer");
        assert_eq!(piece(&[16, 16, 8, 16]), Some(16));
        assert_eq!(piece(&[2, 16]), Some(2), "that of the long ones would be seven times too much");
        assert_eq!(piece(&[5, 4, 5, 5000]), Some(5), "what is not short does not count");
    }

    #[test]
    fn places_within_a_run_are_no_runs() {
        let mut runs = ShortRuns::default();
        for (page, previous) in [(10, Some(3)), (11, Some(11)), (12, Some(12)), (90, Some(14))] {
            runs.miss(page, previous);
        }
        assert_eq!(runs.lengths, [4]);
        runs.miss(50, None);
        assert_eq!(runs.lengths, [4], "where the last read ended is not known");
    }

    #[test]
    fn a_run_that_ends_within_a_page_counts_that_page() {
        let (page, mut runs) = (Bytes::from_kib(4), ShortRuns::default());
        // Records of 10 KiB, each at the beginning of a page.
        for record in 0_u64..5 {
            let before = Bytes::new((record * 100).saturating_sub(100) * 4096 + 10 * 1024);
            runs.miss(record * 100, Some(ReadEnd::new(before, page).behind));
        }
        assert_eq!(runs.lengths, [3; 4]);
        let whole = ReadEnd::new(Bytes::from_kib(8), page);
        assert_eq!((whole.at, whole.behind), (2, 2));
    }

    #[test]
    fn answers_that_serve_stay_until_runs_are_long() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        let begun = intervals(&mut runs, &mut now, 10, 20);
        assert_eq!(begun, [RunsChange::Begin(Pages::new(4))]);
        assert_eq!(intervals(&mut runs, &mut now, 50, 21), []);
        read(&mut runs, [9; tuning::MAX_RUNS_REMEMBERED]);
        assert_eq!(runs.step(now, WINDOW, quick), Some(RunsChange::Begin(Pages::new(9))));
        assert_eq!(runs.step(now, None, quick), Some(RunsChange::Over));
        assert_eq!(runs.step(now, None, quick), None);
    }

    #[test]
    fn nothing_is_answered_that_would_not_come_sooner() {
        let begins = |waits: u64, foreseen: u64, window: &dyn Fn(u64) -> u64| {
            let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
            (0..6).any(|interval| {
                now += STEP;
                read(&mut runs, [4; 40]);
                (0..40 * waits).for_each(|_| runs.waited(Nanos::from_micros(1000 / waits)));
                let foreseen = |_| Nanos::from_micros(foreseen);
                runs.step(now, Some(Pages::new(window(interval))), foreseen).is_some()
            })
        };
        assert!(begins(2, 800, &|_| 32), "it waits twice, and 1 ms in all");
        assert!(!begins(2, 960, &|_| 32), "that would take as long");
        assert!(!begins(1, 100, &|_| 32), "it asks for whole runs");
        assert!(
            !begins(2, 800, &|interval| 32 + interval),
            "waits with other windows do not count"
        );
    }

    #[test]
    fn answers_that_come_too_late_are_given_no_more() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        intervals(&mut runs, &mut now, 10, 20);
        let mut missed = |each: u64| {
            for run in 0..20 {
                read(&mut runs, [4]);
                let began = runs.began.unwrap_or_default();
                (1..=each).filter(|_| run % 4 != 0).for_each(|page| {
                    runs.miss(began + page, Some(began + page));
                });
            }
            now += STEP;
            runs.step(now, WINDOW, quick)
        };
        assert_eq!((missed(0), missed(1)), (None, Some(RunsChange::Late)));
    }

    #[test]
    fn answers_that_harm_are_taken_back_and_tried_later() {
        let (mut runs, mut now) = (ShortRuns::default(), Nanos::ZERO);
        intervals(&mut runs, &mut now, 10, 20);
        assert_eq!(intervals(&mut runs, &mut now, 30, 15), [RunsChange::Harm]);
        assert_eq!(intervals(&mut runs, &mut now, 100, 20), []);
        let again = intervals(&mut runs, &mut now, 110, 20);
        assert_eq!(again, [RunsChange::Begin(Pages::new(4))]);
    }
}
