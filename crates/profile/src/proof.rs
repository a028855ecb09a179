//! Whether a fix wins what was predicted: the command runs again, cold, with and without it.
//!
//! A fix is applied from outside. The program's own advice is dropped by a seccomp filter; a file
//! is read into the page cache before a run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use stats::Estimate;
use sys::advice_filter::{MutedAdvice, mute_advice};
use sys::cachestat::cachestat;
use units::{Bytes, Nanos};

use crate::analysis::{PredictedGain, ProfileAnalysis};
use crate::error::ProfileError;
use crate::recording::ProfileRecording;
use crate::text::time;

/// The share of a file that may stay in memory for it to be cold: other processes map some pages.
const MAX_WARM_SHARE: f64 = 0.01;
/// The share of a file that must be in memory for it to be cached.
const MIN_CACHED_SHARE: f64 = 0.99;
/// How often the command is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const READ_BYTES: usize = 1 << 20;

/// What is different in the second run of each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofChange {
    /// The program gives none of this advice.
    Muted(MutedAdvice),
    /// This file is in memory.
    Cached(PathBuf),
}

impl ProofChange {
    /// The advice that diagnoses say to delete, with the gain predicted for all of them if it is
    /// predictable, and their names; `None` if there is no such advice.
    pub fn of_diagnoses(
        analysis: &ProfileAnalysis,
    ) -> Option<(Self, Option<Nanos>, Vec<&'static str>)> {
        let mut muted = MutedAdvice::default();
        let (mut predicted, mut rules) = (Some(Nanos::ZERO), Vec::new());
        let (mut fadvise, mut madvise) = (BTreeSet::new(), BTreeSet::new());
        for one in &analysis.diagnoses {
            match one.rule.name {
                "needless-random" => fadvise.insert(advice_value::RANDOM_VALUE),
                "self-eviction" => fadvise.insert(advice_value::DONTNEED_VALUE),
                "mapped-sequential" => madvise.insert(advice_value::RANDOM_VALUE),
                _ => continue,
            };
            predicted = match &one.gain {
                PredictedGain::Predicted { saved, .. } => predicted.map(|sum| sum + *saved),
                PredictedGain::NotPredictable(_) => None,
            };
            if !rules.contains(&one.rule.name) {
                rules.push(one.rule.name);
            }
        }
        muted.fadvise.extend(fadvise);
        muted.madvise.extend(madvise);
        (!muted.is_empty()).then_some((Self::Muted(muted), predicted, rules))
    }
}

/// Values of `posix_fadvise(2)` and `madvise(2)`, the same on all machines but s390.
mod advice_value {
    pub(super) const RANDOM_VALUE: u32 = 1;
    pub(super) const DONTNEED_VALUE: u32 = 4;
}

/// How long the command took, run by run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProofRuns {
    pub plain: Vec<Duration>,
    pub changed: Vec<Duration>,
    /// Files that other processes keep in memory, so that no run was cold for them.
    pub warm: Vec<PathBuf>,
}

impl ProofRuns {
    /// Seconds saved: the median of the differences of the pairs.
    pub fn saved(&self) -> Option<Estimate> {
        let pairs = self.plain.iter().zip(&self.changed);
        let saved: Vec<f64> = pairs.map(|(a, b)| a.as_secs_f64() - b.as_secs_f64()).collect();
        Estimate::of(&saved)
    }
}

/// What a proof is about, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FixProof {
    /// What was different, for people.
    pub title: String,
    /// The gain that the diagnoses predict, if they do.
    pub predicted: Option<Nanos>,
    pub runs: ProofRuns,
}

impl FixProof {
    /// Predicted beside measured.
    pub fn text(&self) -> String {
        let runs = &self.runs;
        let mut text = format!(
            "\nproof: {} cold runs each, in random order, {}\n",
            runs.plain.len(),
            self.title
        );
        if let Some(predicted) = self.predicted {
            let _ = writeln!(text, "  predicted  {} saved", time(predicted));
        }
        let seconds =
            |runs: &[Duration]| -> Vec<f64> { runs.iter().map(Duration::as_secs_f64).collect() };
        let (plain, changed) = (seconds(&runs.plain), seconds(&runs.changed));
        if let (Some(saved), Some(plain), Some(changed)) =
            (runs.saved(), stats::median(&plain), stats::median(&changed))
        {
            let shown = |seconds: f64| match seconds {
                seconds if seconds.abs() >= 1.0 => format!("{seconds:.2} s"),
                seconds => format!("{:.1} ms", 1e3 * seconds),
            };
            let kind = if saved.is_interval() { "95 % CI" } else { "range" };
            let bounds = if saved.is_bounded() {
                format!(" ({kind} {} to {})", shown(saved.low()), shown(saved.high()))
            } else {
                String::new()
            };
            let _ = writeln!(text, "  measured   {} saved{bounds}", shown(saved.median));
            let _ = writeln!(
                text,
                "  a run      {} as it is, {} with it",
                shown(plain),
                shown(changed)
            );
        }
        for path in &runs.warm {
            let path = units::text::plain(&path.display().to_string());
            let _ = writeln!(text, "  not cold   {path}: other processes keep it in memory");
        }
        text
    }
}

/// Files that the recording waited for: what a cold run must find on the device.
pub fn cold_files(recording: &ProfileRecording) -> Vec<PathBuf> {
    let waited: BTreeSet<u32> = recording.waits.iter().filter_map(|wait| wait.inode).collect();
    let paths = waited.iter().map(|inode| Path::new(&recording.files[*inode as usize].path));
    paths.filter(|path| path.is_absolute() && path.is_file()).map(Path::to_owned).collect()
}

/// Runs the command `pairs` times as it is and `pairs` times with the change, each cold, in random
/// order within each pair. Its output is discarded.
///
/// # Errors
///
/// If the command cannot be started or fails, if a file cannot be read into memory, or if `stop`
/// returns a signal, which the command gets.
pub fn prove(
    command: &[String],
    change: &ProofChange,
    files: &[PathBuf],
    pairs: u32,
    mut stop: impl FnMut() -> Option<Signal>,
) -> Result<ProofRuns, ProfileError> {
    let mut runs = ProofRuns::default();
    for _ in 0..pairs {
        let first = RandomState::new().build_hasher().finish() & 1 == 0;
        for is_changed in [first, !first] {
            for path in files {
                if !cool(path) && !runs.warm.contains(path) {
                    runs.warm.push(path.clone());
                }
            }
            let change = is_changed.then_some(change);
            if let Some(ProofChange::Cached(path)) = change {
                warm(path)?;
            }
            let elapsed = run(command, change, &mut stop)?;
            if is_changed { runs.changed.push(elapsed) } else { runs.plain.push(elapsed) }
        }
    }
    Ok(runs)
}

fn run(
    command: &[String],
    change: Option<&ProofChange>,
    stop: &mut impl FnMut() -> Option<Signal>,
) -> Result<Duration, ProfileError> {
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let failed = |source| ProfileError::NotStarted { program: program.to_owned(), source };
    let mut prepared = Command::new(program);
    prepared.args(arguments).stdout(Stdio::null());
    if let Some(ProofChange::Muted(muted)) = change {
        mute_advice(&mut prepared, muted).map_err(failed)?;
    }
    let start = Instant::now();
    let mut child = prepared.spawn().map_err(failed)?;
    let mut is_stopping = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|source| ProfileError::Wait { source })? {
            break status;
        }
        if let Some(signal) = stop().filter(|_| !is_stopping) {
            is_stopping = true;
            let _ = kill_process(Pid::from_child(&child), signal);
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let elapsed = start.elapsed();
    if is_stopping {
        return Err(ProfileError::Interrupted);
    }
    if !status.success() {
        return Err(ProfileError::Failed { program: program.to_owned(), status });
    }
    Ok(elapsed)
}

/// The share of a file that is in memory.
fn cached_share(path: &Path) -> Option<f64> {
    let file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let stat = cachestat(file.as_fd(), Bytes::ZERO, Bytes::ZERO).ok()?;
    let pages = size.div_ceil(sys::page_size().bytes().get()).max(1);
    Some(stat.cached.get() as f64 / pages as f64)
}

/// Drops a file from the page cache; whether that worked.
fn cool(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return true };
    // Dirty pages stay.
    let _ = file.sync_data();
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    cached_share(path).is_none_or(|share| share <= MAX_WARM_SHARE)
}

/// Reads a file into the page cache.
fn warm(path: &Path) -> Result<(), ProfileError> {
    let failed = |source| ProfileError::Cache { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; READ_BYTES];
    while file.read(&mut buffer).map_err(failed)? > 0 {}
    match cached_share(path) {
        Some(share) if share < MIN_CACHED_SHARE => {
            Err(ProfileError::NotCached { path: path.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_pair_has_a_run_with_and_one_without_the_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::write(&file, [1; 5000]).unwrap();
        let change = ProofChange::Cached(file.clone());
        let runs = prove(&words("true"), &change, &[file], 2, || None).unwrap();
        assert_eq!((runs.plain.len(), runs.changed.len()), (2, 2));
        assert!(runs.saved().is_some());
    }

    #[test]
    fn failing_and_interrupted_commands_prove_nothing() {
        let change = ProofChange::Muted(MutedAdvice { fadvise: vec![1], madvise: Vec::new() });
        let failed = prove(&words("false"), &change, &[], 1, || None);
        assert!(matches!(failed, Err(ProfileError::Failed { .. })), "{failed:?}");
        let stopped = prove(&words("sleep 100"), &change, &[], 1, || Some(Signal::TERM));
        assert!(matches!(stopped, Err(ProfileError::Interrupted)), "{stopped:?}");
        let missing = ProofChange::Cached(PathBuf::from("/no/such/file"));
        let missing = prove(&words("true"), &missing, &[], 1, || None);
        assert!(matches!(missing, Err(ProfileError::Cache { .. })), "{missing:?}");
    }
}
