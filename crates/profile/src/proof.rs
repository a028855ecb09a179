//! Measures the gain of a fix: the command runs again, cold, with and without the fix.
//!
//! A fix is applied from outside: a seccomp filter drops the program's own advice, a run has
//! another window of its bdi, a recorded list is prefetched while the command starts, a file is
//! read into the page cache before a run, or the command runs under `foreread run`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::{Dirs, Root};
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use stats::Estimate;
use sys::advice_filter::mute_advice;
use sys::cachestat::cachestat;
use tunables::{BdiLease, GuardCommand};
use units::{Bytes, Nanos};

use crate::error::ProfileError;
use crate::proof_plan::ProofChange;
use crate::recording::ProfileRecording;
use crate::text::time;

/// Maximum share of a cold file in the page cache: other processes map some pages.
const MAX_WARM_SHARE: f64 = 0.01;
/// Minimum share of a cached file in the page cache.
const MIN_CACHED_SHARE: f64 = 0.99;
/// Share of the profiled run's time below which a run without the change did less: some commands
/// need files that their first run removes.
const MIN_REPEATED_SHARE: f64 = 0.5;
/// Interval between checks whether the command has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const READ_BYTES: usize = 1 << 20;

/// Elapsed time of the command in each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProofRuns {
    pub plain: Vec<Duration>,
    pub changed: Vec<Duration>,
    /// Files that other processes keep in memory, so that no run was cold for them.
    pub warm: Vec<PathBuf>,
}

impl ProofRuns {
    /// Returns the seconds saved: the median of the differences of the pairs.
    pub fn saved(&self) -> Option<Estimate> {
        let pairs = self.plain.iter().zip(&self.changed);
        let saved: Vec<f64> = pairs.map(|(a, b)| a.as_secs_f64() - b.as_secs_f64()).collect();
        Estimate::from_values(&saved)
    }
}

/// A proof and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct FixProof {
    /// Description of the change, for output.
    pub title: String,
    /// Gain that the diagnoses predict; `None` if they predict none.
    pub predicted: Option<Nanos>,
    /// Elapsed time of the profiled run.
    pub profiled: Nanos,
    pub runs: ProofRuns,
}

impl FixProof {
    /// Formats the predicted and the measured gain.
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
                "  each run   {} unchanged, {} changed",
                shown(plain),
                shown(changed)
            );
        }
        if stats::median(&plain)
            .is_some_and(|plain| plain < MIN_REPEATED_SHARE * self.profiled.as_secs_f64())
        {
            let _ = writeln!(
                text,
                "  doubtful   the profiled run took {}: the command did not do the same again",
                time(self.profiled)
            );
        }
        for path in &runs.warm {
            let path = units::text::plain(&path.display().to_string());
            let _ = writeln!(text, "  not cold   {path}: other processes keep it in memory");
        }
        text
    }
}

/// Returns the files that the recording waited for, or all files if only stretches were kept: a
/// cold run must read these from the device.
pub fn cold_files(recording: &ProfileRecording) -> Vec<PathBuf> {
    let waited: BTreeSet<u32> = match recording.kept_of {
        None => recording.waits.iter().filter_map(|wait| wait.inode).collect(),
        Some(_) => (0..recording.files.len() as u32).collect(),
    };
    let paths = waited.iter().map(|inode| Path::new(&recording.files[*inode as usize].path));
    paths.filter(|path| path.is_absolute() && path.is_file()).map(Path::to_owned).collect()
}

/// Environment of a proof, to set the window of a bdi and to execute `foreread run`.
#[derive(Clone, Debug)]
pub struct ProofStage {
    pub dirs: Dirs,
    pub root: Root,
    pub guard: GuardCommand,
    /// Path of this program, for `foreread run`.
    pub foreread: PathBuf,
}

/// Records the start and the exit of the command: loading probes takes longer than some commands.
const TIMED: &str = "clock=$1; shift; date +%s.%N > \"$clock\"; \"$@\"; status=$?; \
                     date +%s.%N >> \"$clock\"; exit $status";

impl ProofStage {
    /// Runs the command under `foreread run` and returns the command's own elapsed time.
    fn run_adaptive(
        &self,
        command: &[String],
        stop: &mut impl FnMut() -> Option<Signal>,
    ) -> Result<Duration, ProfileError> {
        // Only root gets here, and this directory belongs to root.
        let clock = self.dirs.runtime.join(format!("proof-{}", std::process::id()));
        let [foreread, file] = [&self.foreread, &clock].map(|path| path.display().to_string());
        let timed = [&foreread, "run", "--", "sh", "-c", TIMED, "sh", &file];
        let timed = timed.iter().map(|word| (*word).to_owned());
        let ran = run(&timed.chain(command.iter().cloned()).collect::<Vec<_>>(), None, stop);
        let text = std::fs::read_to_string(&clock).unwrap_or_default();
        let _ = std::fs::remove_file(&clock);
        let whole = ran?;
        let times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(match times[..] {
            [start, end] if end >= start => Duration::from_secs_f64(end - start),
            _ => whole,
        })
    }

    /// Acquires the lease of the bdi whose window the change sets; `None` for other changes.
    fn lease(&self, change: &ProofChange) -> Result<Option<BdiLease>, ProfileError> {
        let ProofChange::Window { path, .. } = change else { return Ok(None) };
        let storage = host::resolve(&self.root, path)?;
        Ok(Some(BdiLease::begin(&self.dirs, &self.root, &storage, &self.guard)?))
    }
}

/// Runs the command `pairs` times unchanged and `pairs` times with the change, each time cold, in
/// random order within each pair. Its standard output is discarded.
///
/// # Errors
///
/// If the command cannot be started or fails, if a file cannot be read into memory, if the window
/// cannot be set, or if `stop` returns a signal, which is sent to the command.
pub fn prove(
    command: &[String],
    change: &ProofChange,
    files: &[PathBuf],
    pairs: u32,
    stage: &ProofStage,
    mut stop: impl FnMut() -> Option<Signal>,
) -> Result<ProofRuns, ProfileError> {
    let mut runs = ProofRuns::default();
    let mut lease = stage.lease(change)?;
    for _ in 0..pairs {
        let first = RandomState::new().build_hasher().finish() & 1 == 0;
        for is_changed in [first, !first] {
            for path in files {
                if !drop_cached(path) && !runs.warm.contains(path) {
                    runs.warm.push(path.clone());
                }
            }
            let change = is_changed.then_some(change);
            if let Some(ProofChange::Cached(path)) = change {
                read_into_cache(path)?;
            }
            let elapsed = match (change, &mut lease) {
                (Some(ProofChange::Window { window, .. }), Some(lease)) => {
                    let window = (*window).into();
                    let tunable = tunables::find("read_ahead")?;
                    lease.with_value(tunable, &window, || run(command, change, &mut stop))??
                }
                (Some(ProofChange::Adaptive), _) => stage.run_adaptive(command, &mut stop)?,
                _ => run(command, change, &mut stop)?,
            };
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
    let prefetch = Prefetching::of(change);
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
    drop(prefetch);
    if is_stopping {
        return Err(ProfileError::Interrupted);
    }
    if !status.success() {
        return Err(ProfileError::Failed { program: program.to_owned(), status });
    }
    Ok(elapsed)
}

/// A thread that prefetches a list until this value is dropped.
struct Prefetching {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Prefetching {
    fn of(change: Option<&ProofChange>) -> Option<Self> {
        let Some(ProofChange::Prefetched(list)) = change else { return None };
        let (stop, list) = (Arc::new(AtomicBool::new(false)), list.clone());
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || list.prefetch(&is_over));
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Prefetching {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the share of a file that is in the page cache; `None` if it is unknown.
fn cached_share(path: &Path) -> Option<f64> {
    let file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let stat = cachestat(file.as_fd(), Bytes::ZERO, Bytes::ZERO).ok()?;
    let pages = size.div_ceil(sys::page_size().bytes().get()).max(1);
    Some(stat.cached.get() as f64 / pages as f64)
}

/// Drops a file from the page cache. Returns false if more than 1 % of it stays there.
fn drop_cached(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return true };
    // The advice does not drop dirty pages.
    let _ = file.sync_data();
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    cached_share(path).is_none_or(|share| share <= MAX_WARM_SHARE)
}

/// Reads a file into the page cache.
fn read_into_cache(path: &Path) -> Result<(), ProfileError> {
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
    use sys::advice_filter::MutedAdvice;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    fn stage(dir: &Path) -> ProofStage {
        let guard = GuardCommand { program: "false".into(), args: Vec::new() };
        let foreread = "false".into();
        ProofStage { dirs: Dirs::under(dir), root: Root::system(), guard, foreread }
    }

    #[test]
    fn each_pair_has_a_run_with_and_one_without_the_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::write(&file, [1; 5000]).unwrap();
        let change = ProofChange::Cached(file.clone());
        let runs = prove(&words("true"), &change, &[file], 2, &stage(dir.path()), || None).unwrap();
        assert_eq!((runs.plain.len(), runs.changed.len()), (2, 2));
        assert!(runs.saved().is_some());
    }

    #[test]
    fn a_command_that_does_less_the_second_time_is_doubtful() {
        let runs = ProofRuns {
            plain: vec![Duration::from_millis(7)],
            changed: vec![Duration::from_millis(9)],
            warm: Vec::new(),
        };
        let proof = |millis| FixProof {
            title: "with another window".to_owned(),
            predicted: None,
            profiled: Nanos::from_millis(millis),
            runs: runs.clone(),
        };
        assert!(proof(3850).text().contains("doubtful   the profiled run took 3.85 s"));
        assert!(!proof(8).text().contains("doubtful"));
    }

    #[test]
    fn failing_and_interrupted_commands_prove_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let stage = stage(dir.path());
        let change = ProofChange::Muted(MutedAdvice { fadvise: vec![1], madvise: Vec::new() });
        let failed = prove(&words("false"), &change, &[], 1, &stage, || None);
        assert!(matches!(failed, Err(ProfileError::Failed { .. })), "{failed:?}");
        let stopped = prove(&words("sleep 100"), &change, &[], 1, &stage, || Some(Signal::TERM));
        assert!(matches!(stopped, Err(ProfileError::Interrupted)), "{stopped:?}");
        let missing = ProofChange::Cached(PathBuf::from("/no/such/file"));
        let missing = prove(&words("true"), &missing, &[], 1, &stage, || None);
        assert!(matches!(missing, Err(ProfileError::Cache { .. })), "{missing:?}");
    }
}
