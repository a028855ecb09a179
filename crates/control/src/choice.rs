//! Selects the action with the best predicted outcome for an open file that is read in runs.

use std::sync::Arc;

use units::{Nanos, Pages};

use crate::tuning::{SINGLE_PAGE, Tuning};
use crate::what_if::{
    Candidate, DeviceTimes, Extra, FileView, PastAccess, PredictedOutcome, predict,
};

/// A recorded run: consecutive pages that a reader read in calls of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PastRun {
    pub first: u64,
    pub pages: u64,
    /// Pages per read call.
    pub call: u64,
    /// Time from its first miss to that of the next run, and how much of it the reader waited.
    pub elapsed: Nanos,
    pub waited: Nanos,
}

impl PastRun {
    fn calls(&self) -> u64 {
        self.pages.div_ceil(self.call.max(1)).max(1)
    }

    fn accesses(&self) -> impl Iterator<Item = PastAccess> + use<> {
        let (run, calls) = (*self, self.calls());
        let think = run.elapsed.saturating_sub(run.waited).scaled(1.0 / calls as f64);
        (0..calls).map(move |number| {
            let done = number * run.call;
            let pages = run.call.min(run.pages.saturating_sub(done)).max(1);
            PastAccess { first: run.first + done, pages, think, mapped: false }
        })
    }
}

/// The selected candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunsChoice {
    pub candidate: Candidate,
    /// The predicted cost with the original window ÷ that of the candidate; above 1 is faster.
    pub gain: f64,
    /// The number of accesses that were replayed, over all candidates.
    pub replayed: u64,
}

/// Returns the candidates: the original window first, then larger windows, then, for the median and
/// the longest run, miss prefetching of the run with a window of one page.
fn candidates(runs: &[PastRun], original: Pages, most: Pages, tuning: &Tuning) -> Vec<Candidate> {
    // The original window is 0 if read-ahead is off.
    let first = original.get().saturating_mul(2).max(1);
    let larger = std::iter::successors(Some(first), |window| window.checked_mul(2));
    let larger = larger.take_while(|window| *window <= most.get()).map(Pages::new);
    let windows = std::iter::once(original).chain(larger);
    let mut all: Vec<Candidate> = windows.map(Candidate::window).collect();
    let mut lengths: Vec<u64> = runs.iter().map(|run| run.pages).collect();
    lengths.sort_unstable();
    let mut calls: Vec<u64> = runs.iter().map(|run| run.call).collect();
    calls.sort_unstable();
    // If one call reads a whole run, nothing is left to prefetch.
    let call = calls.get(calls.len() / 2).copied().unwrap_or(1);
    let mut usual: Vec<u64> = [lengths.get(lengths.len() / 2), lengths.last()]
        .into_iter()
        .flatten()
        .copied()
        .filter(|run| *run > call)
        .collect();
    usual.dedup();
    all.extend(usual.into_iter().map(|run| Candidate {
        window: SINGLE_PAGE,
        extra: Extra::AfterMiss(Pages::new(run), tuning.wake_time),
    }));
    all
}

/// Returns the best candidate for the most recent runs; `None` if too few runs are recorded.
pub(super) fn choose<'a>(
    runs: impl DoubleEndedIterator<Item = &'a PastRun>,
    original: Pages,
    most: Pages,
    file: &FileView,
    device: &DeviceTimes,
    tuning: &Arc<Tuning>,
) -> Option<RunsChoice> {
    let mut left = tuning.max_history;
    let mut lately: Vec<PastRun> = Vec::new();
    for run in runs.rev() {
        let calls = run.calls();
        if calls > left {
            break;
        }
        left -= calls;
        lately.push(*run);
    }
    if (lately.len() as u64) < tuning.few_samples {
        return None;
    }
    lately.reverse();
    let candidates = candidates(&lately, original, most, tuning);
    let replayed = candidates.len() as u64 * (tuning.max_history - left);
    let outcome = |candidate: &Candidate| {
        predict(lately.iter().flat_map(PastRun::accesses), file, device, *candidate, tuning)
    };
    // Transfer time counts, too: all other users of the device wait during it.
    let cost = |one: &PredictedOutcome| {
        let think = one.elapsed.saturating_sub(one.waited).as_secs_f64();
        think + one.cost(tuning.wake_time) + (device.page * one.read.get()).as_secs_f64()
    };
    let costs: Vec<(Candidate, f64)> =
        candidates.iter().map(|candidate| (*candidate, cost(&outcome(candidate)))).collect();
    let (_, of_original) = *costs.first()?;
    let (candidate, best) = *costs.iter().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(RunsChoice { candidate, gain: of_original / best.max(1e-9), replayed })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: Pages = Pages::new(32);

    fn choice(pages: u64, call: u64, fixed_us: u64, page_us: u64) -> (u64, Extra) {
        choice_from(ORIGINAL, pages, call, fixed_us, page_us)
    }

    fn choice_from(
        original: Pages,
        pages: u64,
        call: u64,
        fixed_us: u64,
        page_us: u64,
    ) -> (u64, Extra) {
        let run = |number: u64| PastRun {
            first: number * 7919 % 1000 * 1000,
            pages,
            call,
            elapsed: Nanos::from_millis(1),
            waited: Nanos::from_micros(900),
        };
        let runs: Vec<PastRun> = (0..40).map(run).collect();
        let (pages, max_request) = (Pages::new(1 << 20), Pages::new(320));
        let file = FileView { pages, folio_limit: Some(9), max_request, cache: pages };
        let fixed = Nanos::from_micros(fixed_us);
        let page = Nanos::from_micros(page_us);
        let device = DeviceTimes { fixed, adjacent: fixed, page, parallel: 4 };
        let most = Pages::new(2048);
        let choice =
            choose(runs.iter(), original, most, &file, &device, &Arc::default()).expect("a choice");
        (choice.candidate.window.get(), choice.candidate.extra)
    }

    #[test]
    fn short_runs_are_completed_after_their_first_miss() {
        let rest = Extra::AfterMiss(Pages::new(16), Tuning::DEFAULT.wake_time);
        assert_eq!(choice(16, 1, 100, 20), (1, rest), "the rest of the window would be wasted");
        let whole = choice(16, 16, 100, 20);
        assert_eq!(whole.1, Extra::Nothing, "its reader asks for the whole run at once");
    }

    #[test]
    fn a_file_without_read_ahead_has_candidates_too() {
        let (window, extra) = choice_from(Pages::ZERO, 60, 1, 700, 8);
        assert!(window > 0 || extra != Extra::Nothing, "each page is a request");
        let (elapsed, waited) = (Nanos::ZERO, Nanos::ZERO);
        let at_once = PastRun { first: 0, pages: 4, call: 4, elapsed, waited };
        let windows = |original: u64| {
            let all = candidates(&[at_once], Pages::new(original), Pages::new(8), &Tuning::DEFAULT);
            all.iter().map(|candidate| candidate.window.get()).collect::<Vec<_>>()
        };
        assert_eq!(windows(0), [0, 1, 2, 4, 8]);
        assert_eq!(windows(3), [3, 6]);
        assert_eq!(windows(100), [100], "nothing is larger than the most");
    }

    #[test]
    fn long_runs_get_larger_windows_where_requests_cost() {
        assert!(choice(1000, 1000, 700, 8).0 > 32, "it is asked for at once");
        assert_eq!(
            choice(60, 8, 100, 100).1,
            Extra::AfterMiss(Pages::new(60), Tuning::DEFAULT.wake_time)
        );
    }
}
