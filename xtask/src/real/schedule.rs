//! Decides the order of measurements, and estimates their duration.

use std::time::{Duration, Instant};

use super::options::Options;
use super::table::ProgramCell;

/// Time of a run besides the work: remounting, starting Python and, for half of the runs, `auto`
/// (observed: 2 to 4 s).
const RUN_OVERHEAD: Duration = Duration::from_secs(3);
/// Time to create a disk and copy a data set to it (observed: 2 to 10 s).
const DISK_OVERHEAD: Duration = Duration::from_secs(5);
/// Assumed time of a program that has not run on a disk yet, in model time (the median of those
/// that have).
const UNKNOWN_SECONDS: f64 = 2.0;
/// Disturbed pairs are repeated until this multiple of the requested pairs has run.
const MAX_ATTEMPTS: u64 = 2;

/// The next measurement for a program on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// A pair with this seed.
    Pair(u64),
    /// A run with a static window.
    Window {
        kib: u64,
        seed: u64,
    },
    Profile,
}

impl Measurement {
    /// Returns how often the program runs.
    pub fn runs(self) -> u32 {
        match self {
            Self::Pair(_) => 2,
            Self::Window { .. } | Self::Profile => 1,
        }
    }
}

/// A pass over all programs and disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// All missing measurements.
    All,
    /// A pair and a profile of each program.
    First,
    /// One more pair for programs whose pairs are insufficient.
    Needed,
}

/// Returns the passes of a call; with a time limit, the most important come first.
pub fn passes(options: &Options) -> Vec<Pass> {
    if options.minutes.is_none() {
        return vec![Pass::All];
    }
    let further = options.most_pairs.saturating_sub(1) as usize;
    let mut passes = vec![Pass::First];
    passes.extend(std::iter::repeat_n(Pass::Needed, further));
    passes.push(Pass::All);
    passes
}

/// Returns the next measurement for a cell in a pass; `None` if it is complete.
pub fn next_step(pass: Pass, options: &Options, cell: &ProgramCell) -> Option<Measurement> {
    let pair = Measurement::Pair(cell.attempts() + 1);
    let may_run =
        |wanted: u64| cell.undisturbed_pairs() < wanted && cell.attempts() < wanted * MAX_ATTEMPTS;
    let profile =
        (options.what_if.is_some() && cell.simulated().is_none()).then_some(Measurement::Profile);
    match pass {
        Pass::First if options.pairs > 0 && cell.attempts() == 0 => Some(pair),
        Pass::First => profile,
        Pass::Needed if options.pairs == 0 => None,
        Pass::Needed => (cell.needs_pairs() && may_run(options.most_pairs)).then_some(pair),
        Pass::All => {
            let undecided = options.pairs > 0 && cell.is_undecided();
            let wanted = if undecided { options.most_pairs } else { options.pairs };
            if may_run(wanted.max(options.pairs)) {
                return Some(pair);
            }
            next_window(options, cell).or(profile)
        }
    }
}

/// Returns the next run with a static window. The best one is measured as often as there are
/// pairs: the largest of several ratios measured once each is mostly chance.
fn next_window(options: &Options, cell: &ProgramCell) -> Option<Measurement> {
    let next = |kib: u64, wanted: u64| {
        let (undisturbed, all) = cell.window_runs(kib);
        (undisturbed < wanted && all < wanted * MAX_ATTEMPTS)
            .then_some(Measurement::Window { kib, seed: all + 1 })
    };
    let missing = options.windows_kib.iter().find_map(|kib| next(*kib, 1));
    missing.or_else(|| {
        let (best, _) = cell.best_measured_window().filter(|_| !options.windows_kib.is_empty())?;
        next(best, options.pairs)
    })
}

/// Returns how many runs a pass still makes for a cell, if no pair is disturbed.
pub fn missing_runs(pass: Pass, options: &Options, cell: &ProgramCell) -> u32 {
    let pairs = match pass {
        Pass::First => u64::from(options.pairs > 0).saturating_sub(cell.attempts()),
        Pass::Needed => u64::from(next_step(pass, options, cell).is_some()),
        Pass::All => options.pairs.saturating_sub(cell.undisturbed_pairs()),
    };
    let windows = if pass == Pass::All { missing_windows(options, cell) } else { 0 };
    let profile = pass != Pass::Needed && options.what_if.is_some() && cell.simulated().is_none();
    2 * pairs as u32 + windows + u32::from(profile)
}

/// Returns how many runs with static windows are missing: one of each window, and as many of the
/// best one as there are pairs.
fn missing_windows(options: &Options, cell: &ProgramCell) -> u32 {
    let undisturbed = |kib: u64| cell.window_runs(kib).0;
    let once = options.windows_kib.iter().filter(|kib| undisturbed(**kib) == 0).count() as u64;
    let best = cell.best_measured_window().map_or(1, |(kib, _)| undisturbed(kib).max(1));
    let again = if options.windows_kib.is_empty() { 0 } else { options.pairs.saturating_sub(best) };
    (once + again) as u32
}

/// Estimates the duration of these runs from earlier runs of the program on this disk.
pub fn duration(runs: u32, cell: &ProgramCell, dilation: f64, is_mounted: bool) -> Duration {
    let seconds = cell.seconds().unwrap_or(UNKNOWN_SECONDS) * dilation;
    let disk = if is_mounted { Duration::ZERO } else { DISK_OVERHEAD };
    disk + (RUN_OVERHEAD + Duration::from_secs_f64(seconds)) * runs
}

/// The end of the time limit; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub fn new(options: &Options) -> Self {
        let time = options.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
        Self(time.map(|time| Instant::now() + time))
    }

    /// Returns whether a measurement of this duration will be complete in time.
    pub fn allows(&self, duration: Duration) -> bool {
        self.0.is_none_or(|end| Instant::now() + duration <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::programs::programs;
    use crate::real::samples::{Arm, ProgramRun, ProgramSample, Simulated};

    fn options(words: &[&str]) -> Options {
        Options::parse(words).unwrap()
    }

    fn cell(runs: &[(u64, Arm, f64, f64)]) -> ProgramCell {
        let runs = runs.iter().map(|(seed, arm, seconds, other)| ProgramRun {
            program: "tar".to_owned(),
            disk: "ssd-sata".to_owned(),
            commit: "c".to_owned(),
            seed: *seed,
            operations: 0,
            arm: *arm,
            sample: ProgramSample {
                seconds: *seconds,
                device_bytes: 4096,
                device_reads: 1,
                busy_seconds: 1.0,
                other_processors: Some(*other),
            },
            simulated: (*arm == Arm::Profile).then(Simulated::default),
        });
        let runs: Vec<ProgramRun> = runs.collect();
        let tar = programs().find(|program| program.name == "tar").unwrap();
        ProgramCell::from_runs(tar, "ssd-sata", 0, "c", &runs)
    }

    #[test]
    fn with_a_limit_of_time_every_program_comes_first() {
        let options = options(&["--minutes", "25", "--what-if", "auto", "--windows", "16K"]);
        assert_eq!(passes(&options).first(), Some(&Pass::First));
        assert_eq!(passes(&options).last(), Some(&Pass::All));
        let next = |pass, runs: &[_]| next_step(pass, &options, &cell(runs));
        assert_eq!(next(Pass::First, &[]), Some(Measurement::Pair(1)));
        assert_eq!(missing_runs(Pass::First, &options, &cell(&[])), 3);
        let pair = [(1, Arm::Default, 1.0, 0.0), (1, Arm::Auto, 1.0, 0.0)];
        assert_eq!(next(Pass::First, &pair), Some(Measurement::Profile));
        assert_eq!(next(Pass::Needed, &pair), None, "as fast with auto");
        let slow = [(1, Arm::Default, 1.0, 0.0), (1, Arm::Auto, 1.1, 0.0)];
        assert_eq!(next(Pass::Needed, &slow), Some(Measurement::Pair(2)));
        let profiled = [pair[0], pair[1], (1, Arm::Profile, 1.0, 0.0)];
        assert_eq!(next(Pass::First, &profiled), None);
        assert_eq!(next(Pass::All, &profiled), Some(Measurement::Pair(2)));
    }

    #[test]
    fn a_pair_beside_other_work_is_measured_again_but_not_without_end() {
        let options = options(&["--pairs", "1", "--most-pairs", "1"]);
        let disturbed = |seed| [(seed, Arm::Default, 1.0, 0.0), (seed, Arm::Auto, 1.0, 0.9)];
        let once = disturbed(1);
        assert_eq!(next_step(Pass::All, &options, &cell(&once)), Some(Measurement::Pair(2)));
        let twice: Vec<_> = once.into_iter().chain(disturbed(2)).collect();
        assert_eq!(next_step(Pass::All, &options, &cell(&twice)), None);
    }

    #[test]
    fn the_best_window_is_measured_as_often_as_pairs() {
        let options = options(&["--pairs", "2", "--most-pairs", "2", "--windows", "16K,4M"]);
        let mut runs = vec![(1, Arm::Default, 1.0, 0.0), (1, Arm::Auto, 1.0, 0.0)];
        runs.extend([(2, Arm::Default, 1.0, 0.0), (2, Arm::Auto, 1.0, 0.0)]);
        let next = |runs: &[_]| next_step(Pass::All, &options, &cell(runs));
        let window = |kib, seed| Some(Measurement::Window { kib, seed });
        assert_eq!(next(&runs), window(16, 1));
        runs.push((1, Arm::Static(16), 0.8, 0.0));
        assert_eq!(next(&runs), window(4096, 1));
        runs.push((1, Arm::Static(4096), 0.7, 0.0));
        assert_eq!(next(&runs), window(4096, 2));
        // With this, 4 MiB is 1.2 times as fast in the median, and 16 KiB 1.25 times.
        runs.push((2, Arm::Static(4096), 1.03, 0.0));
        assert_eq!(next(&runs), window(16, 2), "another may be the best then");
        runs.push((2, Arm::Static(16), 0.8, 0.0));
        assert_eq!(next(&runs), None);
        let missing = |runs: &[_]| missing_runs(Pass::All, &options, &cell(runs));
        assert_eq!([&runs[..4], &runs[..6], &runs].map(missing), [3, 1, 0]);
    }

    #[test]
    fn what_takes_too_long_is_not_begun() {
        let none = Deadline::new(&options(&[]));
        let some = Deadline::new(&options(&["--minutes", "1"]));
        let long = duration(2, &cell(&[(1, Arm::Default, 40.0, 0.0)]), 1.0, true);
        assert!(long > Duration::from_secs(80));
        assert!(none.allows(long) && !some.allows(long) && some.allows(Duration::from_secs(50)));
    }
}
