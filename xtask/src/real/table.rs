//! Formats the results as a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;
use stats::Estimate;

use super::programs::{Half, Program};
use super::samples::{Arm, ProgramRun, ProgramSample, Simulated};

/// Requirement: minimum ratio of the times without and with `auto`.
pub const WORST_ALLOWED: f64 = 0.97;
/// Minimum ratio of the best setting; below it, the share of hindsight is meaningless.
const MIN_HINDSIGHT_RATIO: f64 = 1.1;

/// Maximum relative error of a simulated ratio that counts as right.
const SIMULATED_TOLERANCE: f64 = 0.15;
/// Name of the setting in simulations.
const AUTO: &str = "auto";

const HEADER: &str = "\
| program | disk | pairs | s without | ratio | interval | device time | simulated | best window \
| MiB | reads |
|---|---|---:|---:|---:|---|---:|---|---|---|---|";

/// A run with a static window.
#[derive(Clone, Copy, Debug)]
struct WindowRun {
    kib: u64,
    /// Also the seed of the run without `auto` that it is compared with.
    seed: u64,
    sample: ProgramSample,
}

/// The runs of one program on one disk.
#[derive(Debug)]
pub struct ProgramCell {
    pub program: Program,
    pub disk: String,
    /// Samples without and with `auto`: undisturbed pairs, or all pairs if each was disturbed.
    pairs: Vec<(ProgramSample, ProgramSample)>,
    /// Number of pairs that ran, disturbed or not.
    attempts: u64,
    windows: Vec<WindowRun>,
    /// The last run without `auto` by seed, with any commit of `foreread`.
    without_auto: BTreeMap<u64, ProgramSample>,
    simulated: Option<Simulated>,
    /// Times of runs without `auto`, with any commit of `foreread`, in seconds.
    seconds: Vec<f64>,
}

impl ProgramCell {
    /// Collects the pairs of this commit, and the runs with static windows of any commit.
    pub fn from_runs(
        program: Program,
        disk: &str,
        operations: u64,
        commit: &str,
        runs: &[ProgramRun],
    ) -> Self {
        let here: Vec<&ProgramRun> = runs
            .iter()
            .filter(|run| run.program == program.name && run.disk == disk)
            .filter(|run| run.operations == operations)
            .collect();
        let mine = |arm| here.iter().filter(move |run| run.commit == commit && run.arm == arm);
        let pairs = mine(Arm::Default).filter_map(|without| {
            let with = mine(Arm::Auto).find(|with| with.seed == without.seed)?;
            Some((without.sample, with.sample))
        });
        let mut pairs: Vec<(ProgramSample, ProgramSample)> = pairs.collect();
        let attempts = pairs.len() as u64;
        if pairs.iter().any(|pair| !is_disturbed(pair)) {
            pairs.retain(|pair| !is_disturbed(pair));
        }
        let windows = here.iter().filter_map(|run| match run.arm {
            Arm::Static(kib) => Some(WindowRun { kib, seed: run.seed, sample: run.sample }),
            Arm::Default | Arm::Auto | Arm::Profile => None,
        });
        let plain = here.iter().filter(|run| run.arm == Arm::Default);
        let seconds = plain.clone().map(|run| run.sample.seconds);
        Self {
            program,
            disk: disk.to_owned(),
            pairs,
            attempts,
            windows: windows.collect(),
            without_auto: plain.map(|run| (run.seed, run.sample)).collect(),
            simulated: mine(Arm::Profile).find_map(|run| run.simulated.clone()),
            seconds: seconds.collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.attempts == 0 && self.windows.is_empty() && self.simulated.is_none()
    }

    /// Returns the number of pairs that ran, disturbed or not; also the seed of the last pair.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    pub fn undisturbed_pairs(&self) -> u64 {
        self.pairs.iter().filter(|pair| !is_disturbed(pair)).count() as u64
    }

    /// Returns the number of runs with a static window: the undisturbed ones, and all.
    pub fn window_runs(&self, kib: u64) -> (u64, u64) {
        let runs = self.windows.iter().filter(|run| run.kib == kib);
        let undisturbed = runs.clone().filter(|run| !run.sample.is_disturbed());
        (undisturbed.count() as u64, runs.count() as u64)
    }

    /// Returns the program's median time on this disk without `auto`, in seconds of model time.
    pub fn seconds(&self) -> Option<f64> {
        let seconds = median(self.seconds.iter().copied());
        seconds.is_finite().then_some(seconds)
    }

    /// Returns the time without ÷ with `auto` of each pair.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.pairs.iter().map(|(without, with)| without.seconds / with.seconds)
    }

    /// Returns the time without ÷ with `auto`: the median of the pairs, and its interval.
    pub fn ratio(&self) -> Option<Estimate> {
        Estimate::from_values(&self.ratios().collect::<Vec<f64>>())
    }

    /// Returns whether more pairs could still show whether the requirement is met.
    pub fn is_undecided(&self) -> bool {
        let is_allowed = |ratio: f64| ratio >= WORST_ALLOWED;
        self.ratios().any(is_allowed) && !self.ratios().all(is_allowed)
    }

    /// Returns whether the pairs are insufficient: too slow, contradictory, or all of them
    /// disturbed.
    pub fn needs_pairs(&self) -> bool {
        let is_slow = self.ratio().is_some_and(|ratio| ratio.median < WORST_ALLOWED);
        self.undisturbed_pairs() == 0 || self.is_undecided() || is_slow
    }

    fn without(&self, of: impl Fn(&ProgramSample) -> f64) -> f64 {
        median(self.pairs.iter().map(|(without, _)| of(without)))
    }

    fn with(&self, of: impl Fn(&ProgramSample) -> f64) -> f64 {
        median(self.pairs.iter().map(|(_, with)| of(with)))
    }

    pub fn simulated(&self) -> Option<&Simulated> {
        self.simulated.as_ref()
    }

    /// Returns the simulated ratio of the times without and with `auto`.
    fn simulated_ratio(&self) -> Option<f64> {
        self.simulated.as_ref()?.ratios.get(AUTO).copied()
    }

    /// Returns the speed-up with a static window, the median of its runs.
    fn window_ratio(&self, kib: u64) -> f64 {
        let is_clean = self.window_runs(kib).0 > 0;
        let counts = |run: &&WindowRun| run.kib == kib && !(is_clean && run.sample.is_disturbed());
        median(self.windows.iter().filter(counts).map(|run| {
            let before = self.without_auto.get(&run.seed).map(|sample| sample.seconds);
            before.unwrap_or_else(|| self.without(|s| s.seconds)) / run.sample.seconds
        }))
    }

    /// Returns the measured static window with the largest speed-up, in KiB, and that speed-up.
    pub fn best_measured_window(&self) -> Option<(u64, f64)> {
        let ratios = self.windows.iter().map(|run| (run.kib, self.window_ratio(run.kib)));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the fastest static window and its speed-up: measured, or simulated if no window was
    /// measured.
    fn best_window(&self) -> Option<(String, f64)> {
        let measured = self.best_measured_window().map(|(kib, ratio)| (window_name(kib), ratio));
        measured.or_else(|| {
            let windows = self.simulated.iter().flat_map(|it| &it.ratios);
            let windows = windows.filter(|(setting, _)| *setting != AUTO);
            let best = windows.max_by(|a, b| a.1.total_cmp(b.1));
            best.map(|(window, ratio)| (format!("{window}, simulated"), *ratio))
        })
    }

    /// Returns the simulated and the measured speed-up of each static window that was both
    /// simulated and measured.
    fn windows(&self) -> impl Iterator<Item = (f64, f64)> {
        let simulated = |kib| self.simulated.as_ref()?.ratios.get(&window_name(kib)).copied();
        let kibs: BTreeSet<u64> = self.windows.iter().map(|run| run.kib).collect();
        kibs.into_iter().filter_map(move |kib| Some((simulated(kib)?, self.window_ratio(kib))))
    }

    /// Returns the time saved by `auto` as a share of the most that it or a window saves.
    fn share_of_hindsight(&self) -> Option<f64> {
        let ratio = self.ratio()?.median;
        let best = self.best_window()?.1.max(ratio);
        (best >= MIN_HINDSIGHT_RATIO).then(|| (1.0 - 1.0 / ratio) / (1.0 - 1.0 / best))
    }

    pub fn row(&self) -> String {
        let ratio = self.ratio();
        let value = ratio.map_or(f64::NAN, |ratio| ratio.median);
        let interval = ratio.filter(|ratio| ratio.low().is_finite()).map_or_else(
            || "–".to_owned(),
            |ratio| {
                // A loss in a few runs does not show in the interval of the median.
                let lowest = self.ratios().fold(ratio.low(), f64::min);
                let is_hidden = lowest < WORST_ALLOWED && lowest < ratio.low();
                let also = if is_hidden { format!(", lowest {lowest:.2}") } else { String::new() };
                format!("{:.2}–{:.2}{also}", ratio.low(), ratio.high())
            },
        );
        let window = self
            .best_window()
            .map_or_else(|| "–".to_owned(), |(window, ratio)| format!("{ratio:.2} ({window})"));
        let simulated = match (self.simulated_ratio(), &self.simulated) {
            (Some(ratio), _) => format!("{ratio:.2}"),
            (None, Some(_)) => "not predictable".to_owned(),
            (None, None) => "–".to_owned(),
        };
        let mib = |sample: &ProgramSample| sample.device_bytes as f64 / f64::from(1 << 20);
        let reads = |sample: &ProgramSample| sample.device_reads as f64;
        let disturbed = if self.pairs.iter().any(is_disturbed) { ", disturbed" } else { "" };
        let start =
            format!("| {} | {} | {}{disturbed} |", self.program.name, self.disk, self.pairs.len());
        let device = self.without(|s| s.busy_seconds) / self.with(|s| s.busy_seconds);
        format!(
            "{start} {:.2} | {value:.2} | {interval} | {device:.2} | {simulated} | {window} | {} \
             | {} |",
            self.without(|sample| sample.seconds),
            format_args!("{:.0} → {:.0}", self.without(mib), self.with(mib)),
            format_args!("{:.0} → {:.0}", self.without(reads), self.with(reads)),
        )
    }
}

/// Returns the summary, and a table for each half of the programs.
pub fn document(cells: &[ProgramCell], commit: &str) -> Result<String> {
    let mut text = format!("Measured with `foreread` of commit {commit}.\n\n");
    text += "| disk | programs | number | geometric mean | slowest | below 0.97 | of hindsight \
             | simulated within 15 % | windows within 15 % |\n";
    text += "|---|---|---:|---:|---|---|---|---|---|\n";
    let mut disks: Vec<&str> = cells.iter().map(|cell| cell.disk.as_str()).collect();
    disks.dedup();
    for disk in disks {
        for half in Half::BOTH {
            let some = |cell: &&ProgramCell| cell.disk == disk && cell.program.half() == half;
            let some: Vec<&ProgramCell> = cells.iter().filter(some).collect();
            if !some.is_empty() {
                writeln!(text, "| {disk} | {} | {} |", half.name(), summary(&some))?;
            }
        }
    }
    for half in Half::BOTH {
        writeln!(text, "\n### Programs of the {}\n\n{HEADER}", half.name())?;
        for cell in cells.iter().filter(|cell| cell.program.half() == half) {
            writeln!(text, "{}", cell.row())?;
        }
    }
    text += "\n### What each program does\n\n| program | half | what it does |\n|---|---|---|\n";
    let mut described: Vec<&str> = Vec::new();
    for ProgramCell { program, .. } in cells {
        if !described.contains(&program.name) {
            described.push(program.name);
            let half = program.half().name();
            writeln!(text, "| {} | {half} | {} |", program.name, program.description)?;
        }
    }
    Ok(text)
}

/// Returns number, mean, slowest, those below the requirement, and the share of hindsight.
fn summary(cells: &[&ProgramCell]) -> String {
    let mut ratios: Vec<(&str, f64)> =
        cells.iter().filter_map(|cell| Some((cell.program.name, cell.ratio()?.median))).collect();
    ratios.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mean = ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len() as f64;
    let worst = ratios
        .first()
        .map_or_else(|| "–".to_owned(), |(program, ratio)| format!("{program} {ratio:.2}"));
    let below: Vec<String> = ratios
        .iter()
        .filter(|(_, ratio)| *ratio < WORST_ALLOWED)
        .map(|(program, ratio)| format!("{program} {ratio:.2}"))
        .collect();
    let below = if below.is_empty() { "none".to_owned() } else { below.join(", ") };
    let shares: Vec<f64> = cells.iter().filter_map(|cell| cell.share_of_hindsight()).collect();
    let share = shares.iter().sum::<f64>() / shares.len() as f64 * 100.0;
    let hindsight = if shares.is_empty() {
        "–".to_owned()
    } else {
        format!("{share:.0} % of {} programs", shares.len())
    };
    let simulated = simulated_summary(cells);
    let mean = mean.exp();
    format!("{} | {mean:.2} | {worst} | {below} | {hindsight} | {simulated}", ratios.len())
}

/// Returns in how many cells the simulated ratio of `auto` is near the measured one, and the same
/// for all static windows.
fn simulated_summary(cells: &[&ProgramCell]) -> String {
    let is_near = |(simulated, measured): &(f64, f64)| {
        (simulated / measured - 1.0).abs() <= SIMULATED_TOLERANCE
    };
    let counted = |pairs: &[(f64, f64)]| {
        format!("{} of {}", pairs.iter().filter(|pair| is_near(pair)).count(), pairs.len())
    };
    let profiled = cells.iter().filter(|cell| cell.simulated.is_some()).count();
    if profiled == 0 {
        return "– | –".to_owned();
    }
    let auto = |cell: &&ProgramCell| Some((cell.simulated_ratio()?, cell.ratio()?.median));
    let auto: Vec<(f64, f64)> = cells.iter().filter_map(auto).collect();
    let refused = |cell: &&&ProgramCell| {
        cell.simulated.as_ref().is_some_and(|one| !one.ratios.contains_key(AUTO))
    };
    let refused = cells.iter().filter(refused).count();
    let windows: Vec<(f64, f64)> = cells.iter().flat_map(|cell| cell.windows()).collect();
    let windows = if windows.is_empty() { "–".to_owned() } else { counted(&windows) };
    format!("{}, {refused} not predictable | {windows}", counted(&auto))
}

/// Returns the name of a window as in profiles.
fn window_name(kib: u64) -> String {
    units::Bytes::new(kib * 1024).to_string()
}

fn is_disturbed((without, with): &(ProgramSample, ProgramSample)) -> bool {
    without.is_disturbed() || with.is_disturbed()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::programs::programs;

    fn run(seed: u64, arm: Arm, seconds: f64, commit: &str) -> ProgramRun {
        let sample = ProgramSample {
            seconds,
            device_bytes: 1 << 20,
            device_reads: 1,
            busy_seconds: seconds / 2.0,
            other_processors: None,
        };
        let (disk, commit) = ("ssd-sata".to_owned(), commit.to_owned());
        let (program, simulated) = ("tar".to_owned(), None);
        ProgramRun { program, disk, commit, seed, operations: 0, arm, sample, simulated }
    }

    #[test]
    fn a_cell_has_the_pairs_of_one_commit_and_the_windows_of_all() {
        let runs = [
            run(1, Arm::Default, 4.0, "new"),
            run(1, Arm::Auto, 2.0, "new"),
            run(2, Arm::Auto, 2.0, "new"),
            run(1, Arm::Static(512), 1.0, "old"),
            run(1, Arm::Static(16), 8.0, "old"),
            run(3, Arm::Default, 9.0, "old"),
        ];
        let tar = programs().find(|program| program.name == "tar").unwrap();
        let cell = ProgramCell::from_runs(tar, "ssd-sata", 0, "new", &runs);
        assert_eq!(cell.undisturbed_pairs(), 1);
        assert!((cell.ratio().unwrap().median - 2.0).abs() < 1e-9);
        assert_eq!(cell.best_window(), Some(("512 KiB".to_owned(), 4.0)));
        // Half of the time is saved; three quarters were possible.
        assert!((cell.share_of_hindsight().unwrap() - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!([16, 32].map(|kib| cell.window_runs(kib)), [(1, 1), (0, 0)]);
        assert!(!cell.is_undecided());
        let text = document(&[cell], "new").unwrap();
        assert!(
            text.contains("| 1 | 2.00 | tar 2.00 | none | 67 % of 1 programs | – | – |"),
            "{text}"
        );
    }

    #[test]
    fn what_was_simulated_stands_beside_what_was_measured() {
        let ratios = [("auto", 1.9), ("64 KiB", 0.5), ("1 MiB", 2.5)];
        let ratios = ratios.map(|(setting, ratio)| (setting.to_owned(), ratio)).into();
        let simulated = Some(Simulated { ratios, not_predictable: None });
        let profile = ProgramRun { simulated, ..run(1, Arm::Profile, 4.0, "c") };
        let runs = [run(1, Arm::Default, 4.0, "c"), run(1, Arm::Auto, 2.0, "c"), profile];
        let tar = programs().find(|program| program.name == "tar").unwrap();
        let cell = ProgramCell::from_runs(tar, "ssd-sata", 0, "c", &runs);
        assert!(cell.row().contains("| 1.90 | 2.50 (1 MiB, simulated) |"), "{}", cell.row());
        let fixed = run(1, Arm::Static(1024), 1.5, "c");
        let measured: Vec<ProgramRun> = runs.iter().cloned().chain([fixed]).collect();
        let measured = ProgramCell::from_runs(tar, "ssd-sata", 0, "c", &measured);
        assert_eq!(simulated_summary(&[&measured]), "1 of 1, 0 not predictable | 1 of 1");
        // Half of the time is saved; three fifths were possible.
        assert!((cell.share_of_hindsight().unwrap() - 0.5 / 0.6).abs() < 1e-9);
        assert_eq!(simulated_summary(&[&cell]), "1 of 1, 0 not predictable | –");
    }

    #[test]
    fn pairs_on_both_sides_of_the_limit_decide_nothing() {
        let mut runs = vec![run(1, Arm::Default, 1.0, "c"), run(1, Arm::Auto, 1.0, "c")];
        let tar = programs().find(|program| program.name == "tar").unwrap();
        let cell = |runs: &[ProgramRun]| ProgramCell::from_runs(tar, "ssd-sata", 0, "c", runs);
        assert!(!cell(&runs).is_undecided());
        runs.extend([run(2, Arm::Default, 0.9, "c"), run(2, Arm::Auto, 1.0, "c")]);
        assert!(cell(&runs).is_undecided());
    }

    #[test]
    fn a_loss_in_one_of_many_pairs_is_shown() {
        let tar = programs().find(|program| program.name == "tar").unwrap();
        let row = |slowest: f64| {
            let pair = |seed: u64| {
                let with = if seed == 1 { slowest } else { 1.0 };
                [run(seed, Arm::Default, 1.0, "c"), run(seed, Arm::Auto, with, "c")]
            };
            let runs: Vec<ProgramRun> = (1..=12).flat_map(pair).collect();
            ProgramCell::from_runs(tar, "ssd-sata", 0, "c", &runs).row()
        };
        assert!(row(1.6).contains("| 1.00 | 1.00–1.00, lowest 0.62 |"), "{}", row(1.6));
        assert!(row(1.02).contains("| 1.00 | 1.00–1.00 |"), "{}", row(1.02));
    }

    #[test]
    fn disturbed_pairs_count_only_where_there_are_no_others() {
        let beside = |mut run: ProgramRun| {
            run.sample.other_processors = Some(0.5);
            run
        };
        let tar = programs().find(|program| program.name == "tar").unwrap();
        let cell = |runs: &[ProgramRun]| ProgramCell::from_runs(tar, "ssd-sata", 0, "c", runs);
        let mut runs = vec![run(1, Arm::Default, 4.0, "c"), beside(run(1, Arm::Auto, 4.0, "c"))];
        let disturbed = cell(&runs);
        assert_eq!((disturbed.undisturbed_pairs(), disturbed.attempts()), (0, 1));
        assert!(disturbed.needs_pairs());
        assert!(disturbed.row().contains("| 1, disturbed |"), "{}", disturbed.row());
        runs.extend([run(2, Arm::Default, 4.0, "c"), run(2, Arm::Auto, 2.0, "c")]);
        let repeated = cell(&runs);
        assert_eq!((repeated.undisturbed_pairs(), repeated.attempts()), (1, 2));
        assert!((repeated.ratio().unwrap().median - 2.0).abs() < 1e-9);
        assert!(!repeated.needs_pairs());
    }
}
