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
    /// From its first miss to that of the next run.
    pub elapsed: Nanos,
    /// Total wait of the reader in that time.
    pub waited: Nanos,
    /// The part of it for the first miss; `None` if nobody waited.
    pub waited_first: Option<Nanos>,
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
    /// The service times that were used.
    pub device: DeviceTimes,
    /// The number of replayed accesses, over all candidates and the fit.
    pub replayed: u64,
}

/// A file that is read in runs, and what may be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunsView {
    pub original: Pages,
    /// The largest window.
    pub most: Pages,
    pub file: FileView,
    /// `adjacent` is that of the last choice.
    pub device: DeviceTimes,
    /// The window with which the runs were read, to fit `device` to their waits; `None` if it has
    /// been fitted.
    pub read_with: Option<Pages>,
    /// Whether miss prefetching may start or go on.
    pub may_prefetch: bool,
}

/// Returns the candidates: the original window first, then larger windows, then, if it is allowed,
/// miss prefetching with a window of one page, for the median and the longest run.
fn candidates(runs: &[PastRun], view: &RunsView, tuning: &Tuning) -> Vec<Candidate> {
    let RunsView { original, most, .. } = *view;
    // The original window is 0 if read-ahead is off.
    let first = original.get().saturating_mul(2).max(1);
    let larger = std::iter::successors(Some(first), |window| window.checked_mul(2));
    let larger = larger.take_while(|window| *window <= most.get()).map(Pages::new);
    let windows = std::iter::once(original).chain(larger);
    let mut all: Vec<Candidate> = windows.map(Candidate::window).collect();
    if !view.may_prefetch {
        return all;
    }
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

/// Returns the service times that reproduce the measured waits of these runs, which were read with
/// this window. Means over all reads of a device are too short for a disk that seeks between runs,
/// and do not show what a read within a run takes.
fn fit_times(
    runs: &[PastRun],
    window: Pages,
    file: &FileView,
    device: &DeviceTimes,
    tuning: &Arc<Tuning>,
) -> DeviceTimes {
    let first_waits = || runs.iter().filter_map(|run| Some((run, run.waited_first?)));
    let count = first_waits().count() as u64;
    if count == 0 {
        return *device;
    }
    let largest = window.max(file.max_request).get();
    let request = |run: &PastRun| run.call.min(run.pages).min(largest);
    let transfers = device.page * first_waits().map(|(run, _)| request(run)).sum();
    let first: Nanos = first_waits().map(|(_, wait)| wait).sum();
    let fixed = Nanos::new(first.saturating_sub(transfers).get() / count);
    let waited = |adjacent| {
        let times = DeviceTimes { fixed, adjacent, ..*device };
        let accesses = runs.iter().flat_map(PastRun::accesses);
        predict(accesses, file, &times, Candidate::window(window), tuning).waited
    };
    let (least, most) = (waited(Nanos::ZERO), waited(fixed));
    if most.saturating_sub(least) < least.scaled(tuning.min_share) {
        // Hardly any read within a run waits, so its waits do not show what it takes. A guess of
        // more than before would make a larger window look faster than it is.
        return DeviceTimes { fixed, ..*device };
    }
    let measured: Nanos = runs.iter().map(|run| run.waited).sum();
    let [part, all] = [measured, most].map(|sum| sum.saturating_sub(least).as_secs_f64());
    DeviceTimes { fixed, adjacent: fixed.scaled((part / all).min(1.0)), ..*device }
}

/// Returns whether the readers of these runs, with a window of this size for each run, soon read
/// the whole file. What is read beyond the end of a run is then used by later runs.
pub(super) fn is_covered_soon<'a>(
    runs: impl ExactSizeIterator<Item = &'a PastRun>,
    window: Pages,
    file: Pages,
    tuning: &Tuning,
) -> bool {
    let count = runs.len().max(1) as f64;
    let windows = file.get() as f64 / window.get().max(1) as f64;
    let elapsed: Nanos = runs.map(|run| run.elapsed).sum();
    elapsed.scaled(windows / count) < tuning.min_pass_time
}

/// Returns the best candidate for the most recent runs; `None` if too few runs are recorded.
pub(super) fn choose<'a>(
    runs: impl DoubleEndedIterator<Item = &'a PastRun>,
    view: &RunsView,
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
    let RunsView { file, device, .. } = view;
    let fitted = |window| fit_times(&lately, window, file, device, tuning);
    let device = view.read_with.map_or(*device, fitted);
    let candidates = candidates(&lately, view, tuning);
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
    Some(RunsChoice { candidate, gain: of_original / best.max(1e-9), device, replayed })
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

    const SLOW: DeviceTimes = DeviceTimes {
        fixed: Nanos::from_micros(1500),
        adjacent: Nanos::from_micros(1500),
        page: Nanos::from_micros(100),
        parallel: 1,
    };

    /// Returns runs at random places, without waits.
    fn runs_of(pages: u64, call: u64) -> Vec<PastRun> {
        let run = |number: u64| PastRun {
            first: number * 7919 % 1000 * 1000,
            pages,
            call,
            elapsed: Nanos::from_millis(1),
            waited: Nanos::ZERO,
            waited_first: None,
        };
        (0..40).map(run).collect()
    }

    /// Adds the waits for a device, with this window.
    fn with_waits(device: &DeviceTimes, window: Pages, mut runs: Vec<PastRun>) -> Vec<PastRun> {
        let waited = |accesses: Vec<PastAccess>| {
            let window = Candidate::window(window);
            predict(accesses, &LARGE_FILE, device, window, &Arc::default()).waited
        };
        let all = waited(runs.iter().flat_map(PastRun::accesses).collect());
        let each = all.scaled(1.0 / runs.len() as f64);
        // The first run may start at page 0, where the kernel reads ahead at once.
        let first = waited(runs[1].accesses().take(1).collect());
        for run in &mut runs {
            (run.waited, run.waited_first) = (each, Some(first));
            run.elapsed += each;
        }
        runs
    }

    fn view_of(original: Pages, device: DeviceTimes) -> RunsView {
        RunsView {
            original,
            most: Pages::new(2048),
            file: LARGE_FILE,
            device,
            read_with: Some(original),
            may_prefetch: true,
        }
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
        let runs = with_waits(&device, original, runs_of(pages, call));
        let choice = choose(runs.iter(), &view_of(original, device), &Arc::default());
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
        let view = view_of(Pages::ZERO, SLOW);
        let windows = |original: u64| {
            let (original, most) = (Pages::new(original), Pages::new(8));
            let all =
                candidates(&[at_once], &RunsView { original, most, ..view }, &Tuning::DEFAULT);
            all.iter().map(|candidate| candidate.window.get()).collect::<Vec<_>>()
        };
        assert_eq!(windows(0), [0, 1, 2, 4, 8]);
        assert_eq!(windows(3), [3, 6]);
        assert_eq!(windows(100), [100], "nothing is larger than the most");
    }

    #[test]
    fn service_times_are_those_that_the_readers_waited_for() {
        let fixed = Nanos::from_millis(8);
        let fit = |runs: &[PastRun]| fit_times(runs, ORIGINAL, &LARGE_FILE, &SLOW, &Arc::default());
        for adjacent in [Nanos::ZERO, Nanos::from_millis(2), fixed] {
            let disk = DeviceTimes { fixed, adjacent, ..SLOW };
            let got = fit(&with_waits(&disk, ORIGINAL, runs_of(16, 1)));
            assert_eq!((got.fixed, got.page), (fixed, SLOW.page));
            let error = got.adjacent.as_millis_f64() - adjacent.as_millis_f64();
            assert!(error.abs() < 0.1, "{got:?}");
        }
        // The first request of a large call is the largest of the device.
        let waited_first = Some(fixed + SLOW.page * LARGE_FILE.max_request.get());
        let large = runs_of(400, 400).into_iter().map(|run| PastRun { waited_first, ..run });
        assert_eq!(fit(&large.collect::<Vec<_>>()).fixed, fixed);
        assert_eq!(fit(&runs_of(16, 1)), SLOW, "nobody waited");
    }

    #[test]
    fn times_that_have_been_fitted_are_kept() {
        let disk = DeviceTimes { fixed: Nanos::from_millis(8), ..SLOW };
        let runs = with_waits(&disk, ORIGINAL, runs_of(16, 1));
        let used = |read_with| {
            let view = RunsView { read_with, ..view_of(ORIGINAL, SLOW) };
            choose(runs.iter(), &view, &Arc::default()).expect("a choice").device
        };
        assert_eq!(used(Some(ORIGINAL)).fixed, disk.fixed);
        assert_eq!(used(None), SLOW);
    }

    #[test]
    fn without_miss_prefetching_windows_are_left() {
        let view = RunsView { may_prefetch: false, ..view_of(ORIGINAL, SLOW) };
        let all = candidates(&runs_of(16, 1), &view, &Tuning::DEFAULT);
        assert!(all.len() > 1 && all.iter().all(|one| one.extra == Extra::Nothing), "{all:?}");
    }

    #[test]
    fn a_file_is_covered_soon_if_its_windows_take_less_than_two_seconds() {
        let is_soon = |elapsed_us| {
            let elapsed = Nanos::from_micros(elapsed_us);
            let runs = runs_of(16, 1).into_iter().map(|run| PastRun { elapsed, ..run });
            let runs: Vec<PastRun> = runs.collect();
            // 1000 windows.
            is_covered_soon(runs.iter(), ORIGINAL, Pages::new(32_000), &Tuning::DEFAULT)
        };
        assert!(is_soon(1900) && !is_soon(2100));
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
