//! Selects the action with the best predicted outcome for an open file that is read in runs.

use std::sync::Arc;

use units::{Nanos, Pages};

use crate::tuning::Tuning;
use crate::what_if::{Candidate, DeviceTimes, FileView, PastAccess, PredictedOutcome, predict};

/// Replays that fit the service times.
const FITTING_REPLAYS: u64 = 2;

/// A recorded run: consecutive pages that a reader read in calls of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PastRun {
    pub first: u64,
    pub pages: u64,
    /// Pages per read call.
    pub call: u64,
    /// Time from its first miss to that of the next run, and how much of it the reader waited: in
    /// all, and for its first miss.
    pub elapsed: Nanos,
    pub waited: Nanos,
    pub waited_first: Nanos,
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
    all.extend(usual.into_iter().map(|run| Candidate::after_miss(Pages::new(run), tuning)));
    all
}

/// Returns the service times with which the readers of these runs, if they had the candidate
/// `current`, would have waited as long as they did. Means over all reads of a device are too short
/// for a disk that seeks between runs, and do not show what a read within a run takes.
fn fitted(
    runs: &[PastRun],
    current: Candidate,
    file: &FileView,
    device: &DeviceTimes,
    tuning: &Arc<Tuning>,
) -> DeviceTimes {
    let count = runs.len().max(1) as u64;
    let sum = |of: fn(&PastRun) -> Nanos| runs.iter().map(of).sum::<Nanos>();
    let transfers = device.page * runs.iter().map(|run| run.call.min(run.pages)).sum();
    let fixed = Nanos::new(sum(|run| run.waited_first).saturating_sub(transfers).get() / count);
    let waited = |adjacent| {
        let times = DeviceTimes { fixed, adjacent, ..*device };
        predict(runs.iter().flat_map(PastRun::accesses), file, &times, current, tuning).waited
    };
    let (least, most) = (waited(Nanos::ZERO), waited(fixed));
    let [part, all] = [sum(|run| run.waited), most].map(|sum| sum.saturating_sub(least));
    let share = part.as_secs_f64() / all.as_secs_f64().max(1e-9);
    DeviceTimes { fixed, adjacent: fixed.scaled(share.min(1.0)), ..*device }
}

/// Returns whether the readers of these runs, with the original window, soon read the whole file
/// into the cache. What is read beyond the end of a run is then used by later runs.
pub(super) fn is_soon_cached<'a>(
    runs: impl ExactSizeIterator<Item = &'a PastRun>,
    original: Pages,
    file: &FileView,
    tuning: &Tuning,
) -> bool {
    let count = runs.len().max(1) as f64;
    let windows = file.pages.get() as f64 / original.get().max(1) as f64;
    let elapsed: Nanos = runs.map(|run| run.elapsed).sum();
    file.pages <= file.cache && elapsed.scaled(windows / count) < tuning.min_pass_time
}

/// Returns the best candidate for the most recent runs, which were read with the candidate
/// `current`; `None` if too few runs are recorded.
pub(super) fn choose<'a>(
    runs: impl DoubleEndedIterator<Item = &'a PastRun>,
    current: Candidate,
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
    let device = fitted(&lately, current, file, device, tuning);
    let candidates = candidates(&lately, original, most, tuning);
    let replays = FITTING_REPLAYS + candidates.len() as u64;
    let replayed = replays * (tuning.max_history - left);
    let outcome = |candidate: &Candidate| {
        predict(lately.iter().flat_map(PastRun::accesses), file, &device, *candidate, tuning)
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
    use crate::what_if::Extra;

    const ORIGINAL: Pages = Pages::new(32);
    const LARGE_FILE: FileView = FileView {
        pages: Pages::new(1 << 20),
        folio_limit: Some(9),
        max_request: Pages::new(320),
        cache: Pages::new(1 << 20),
    };

    /// Returns runs at random places, without waits.
    fn runs_of(pages: u64, call: u64) -> Vec<PastRun> {
        let run = |number: u64| PastRun {
            first: number * 7919 % 1000 * 1000,
            pages,
            call,
            elapsed: Nanos::from_millis(1),
            waited: Nanos::ZERO,
            waited_first: Nanos::ZERO,
        };
        (0..40).map(run).collect()
    }

    /// Adds the waits for a device, with this candidate.
    fn waited_for(
        device: &DeviceTimes,
        current: Candidate,
        mut runs: Vec<PastRun>,
    ) -> Vec<PastRun> {
        let accesses = runs.iter().flat_map(PastRun::accesses);
        let all = predict(accesses, &LARGE_FILE, device, current, &Arc::default()).waited;
        let waited = all.scaled(1.0 / runs.len() as f64);
        for run in &mut runs {
            run.waited = waited;
            run.waited_first = device.fixed + device.page * run.call;
            run.elapsed += waited;
        }
        runs
    }

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
        let (fixed, page) = (Nanos::from_micros(fixed_us), Nanos::from_micros(page_us));
        let device = DeviceTimes { fixed, adjacent: fixed, page, parallel: 4 };
        let current = Candidate::window(original);
        let runs = waited_for(&device, current, runs_of(pages, call));
        let (most, tuning) = (Pages::new(2048), Arc::default());
        let choice = choose(runs.iter(), current, original, most, &LARGE_FILE, &device, &tuning);
        let candidate = choice.expect("a choice").candidate;
        (candidate.window.get(), candidate.extra)
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
        let at_once = PastRun { first: 0, ..runs_of(4, 4)[0] };
        let windows = |original: u64| {
            let all = candidates(&[at_once], Pages::new(original), Pages::new(8), &Tuning::DEFAULT);
            all.iter().map(|candidate| candidate.window.get()).collect::<Vec<_>>()
        };
        assert_eq!(windows(0), [0, 1, 2, 4, 8]);
        assert_eq!(windows(3), [3, 6]);
        assert_eq!(windows(100), [100], "nothing is larger than the most");
    }

    #[test]
    fn service_times_are_those_that_the_readers_waited_for() {
        let [fixed, short, page] = [8000, 1500, 100].map(Nanos::from_micros);
        let current = Candidate::window(ORIGINAL);
        let learned = DeviceTimes { fixed: short, adjacent: short, page, parallel: 1 };
        for adjacent in [Nanos::ZERO, Nanos::from_millis(2), fixed] {
            let disk = DeviceTimes { fixed, adjacent, ..learned };
            let runs = waited_for(&disk, current, runs_of(16, 1));
            let got = fitted(&runs, current, &LARGE_FILE, &learned, &Arc::default());
            assert_eq!((got.fixed, got.page), (fixed, page));
            assert!(
                (got.adjacent.as_millis_f64() - adjacent.as_millis_f64()).abs() < 0.1,
                "{got:?}"
            );
        }
        let at_once = fitted(&runs_of(16, 1), current, &LARGE_FILE, &learned, &Arc::default());
        assert_eq!(at_once.fixed, Nanos::ZERO, "nobody waited");
    }

    #[test]
    fn a_file_is_soon_cached_if_its_windows_come_in_two_seconds_and_fit() {
        // 1000 windows of the original size.
        let file = FileView { pages: Pages::new(32_000), ..LARGE_FILE };
        let is_soon = |file: &FileView, elapsed_us| {
            let elapsed = Nanos::from_micros(elapsed_us);
            let runs = runs_of(16, 1).into_iter().map(|run| PastRun { elapsed, ..run });
            let runs: Vec<PastRun> = runs.collect();
            is_soon_cached(runs.iter(), ORIGINAL, file, &Tuning::DEFAULT)
        };
        assert!(is_soon(&file, 1900) && !is_soon(&file, 2100));
        assert!(!is_soon(&FileView { cache: Pages::new(31_000), ..file }, 1900), "it does not fit");
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
