//! Tests of runs that succeed, fail or are interrupted, on storage that is a formula.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bench::{Cancel, ColdProof, DeviceDelta, ReaderSample, ResidencyMethod};
use bench::{Disturbance, Sample};
use proptest::prelude::*;
use tempfile::TempDir;
use units::{Bytes, Kib, Nanos};
use workload::Workload;

use super::*;
use crate::error::StoreError;
use crate::grid::Grid;
use crate::plan::{PlannedWorkload, Repeats, Role};
use crate::progress::Silent;
use crate::sweep::BlockStrategy;
use crate::target::Target;
use crate::trial::{TrialRecord, TrialRequest, TrialRunner};

const GRID: [u64; 3] = [4, 128, 1088];
const ALL: usize = 3 * 2 * 2;

/// Events of the next trials of a target, and the state of the target afterwards.
#[derive(Default)]
struct Fate {
    trials: usize,
    cancel_at: Option<usize>,
    fail_at: Option<usize>,
    /// Path of a store that becomes unwritable when the trial fails.
    break_store: Option<PathBuf>,
    spoil_at: Option<usize>,
    /// Whether restoring the settings fails.
    fail_close: bool,
    closed: bool,
}

struct FormulaSite {
    facts: TargetFacts,
    fate: Rc<RefCell<Fate>>,
    cancel: Cancel,
}

fn failure(what: &'static str) -> StudyError {
    let source = std::io::Error::other(what);
    bench::BenchError::Io { action: "read", path: "/dev/formula".into(), source }.into()
}

fn sample(request: &TrialRequest<'_>, disturbances: Vec<Disturbance>) -> Sample {
    let kib = request.settings.read_ahead.get();
    let useful = Bytes::from_kib(100 * kib);
    let elapsed = Nanos::from_secs(1);
    let cold = ColdProof { evictions: 1, ..ColdProof::new(ResidencyMethod::Mincore) };
    Sample {
        elapsed,
        readers: vec![ReaderSample { requests: kib, useful, elapsed }],
        device: Some(DeviceDelta { requests: 7, bytes: useful * 2, ..DeviceDelta::default() }),
        settled: elapsed,
        disturbances,
        ..Sample::new(&request.workload.name, request.seed, 1.0, cold)
    }
}

impl TrialRunner for FormulaSite {
    fn trial(&mut self, request: &TrialRequest<'_>) -> Result<TrialRecord, StudyError> {
        let mut fate = self.fate.borrow_mut();
        fate.trials += 1;
        if fate.cancel_at == Some(fate.trials) {
            self.cancel.cancel();
            return Err(bench::BenchError::Cancelled.into());
        }
        if fate.fail_at == Some(fate.trials) {
            if let Some(path) = &fate.break_store {
                let store = rusqlite::Connection::open(path).expect("the store");
                store
                    .execute_batch(
                        "CREATE TRIGGER full BEFORE UPDATE ON run
                         BEGIN SELECT RAISE(FAIL, 'the record is full'); END",
                    )
                    .expect("a trigger");
            }
            return Err(failure("the storage is gone"));
        }
        let spoilt = fate.spoil_at == Some(fate.trials);
        let disturbances = spoilt.then_some(Disturbance::CacheDropped { times: 1 });
        let sample = sample(request, disturbances.into_iter().collect());
        Ok(TrialRecord { sample, virtual_disk: None, spoiled: Vec::new() })
    }
}

impl TargetSession for FormulaSite {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    fn close(
        self: Box<Self>,
        progress: &mut dyn Progress,
    ) -> Result<serde_json::Value, StudyError> {
        progress.step(&ProgressEvent::Note("left at 256 KiB".to_owned()));
        let mut fate = self.fate.borrow_mut();
        fate.closed = true;
        if fate.fail_close { Err(failure("it would not go back")) } else { Ok("after".into()) }
    }
}

fn plan() -> Plan {
    let named = |name| PlannedWorkload::goal(Workload::named(name).expect("of the suite"));
    Plan {
        read_ahead: Grid::Values(GRID.map(Kib::new).to_vec()),
        workloads: vec![named("seq-1"), named("seq-8")],
        repeats: Repeats::exactly(2),
        seed: Some(7),
        ..Plan::new(Target::Path("/data".into()))
    }
}

struct Bench {
    dir: TempDir,
    store: Store,
    plan: Plan,
    fresh: bool,
    identity: &'static str,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("state/runs.sqlite")).expect("a store");
        Self { dir, store, plan: plan(), fresh: false, identity: "disk" }
    }

    /// Conducts the study once; returns its outcome and the state of the target.
    fn go(&mut self, fate: Fate) -> (Result<StudyOutcome, StudyError>, Fate) {
        self.go_telling(fate, &mut Silent)
    }

    fn go_telling(
        &mut self,
        fate: Fate,
        progress: &mut dyn Progress,
    ) -> (Result<StudyOutcome, StudyError>, Fate) {
        let cancel = Cancel::new();
        let fate = Rc::new(RefCell::new(fate));
        let (plan, fresh) = (&self.plan, self.fresh);
        let study = Study { command: RunCommand::Sweep, plan, fresh, cancel: &cancel };
        let mut open = |workloads: Option<&[Workload]>, _: &mut dyn Progress| {
            let own = || plan.workloads.iter().map(|planned| planned.workload.clone()).collect();
            let facts = TargetFacts {
                workloads: workloads.map_or_else(own, <[Workload]>::to_vec),
                grid: GRID.map(Kib::new).to_vec(),
                found: Some(Kib::new(128)),
                dilation: 1.0,
                machine: "machine".into(),
                device: "before".into(),
                identity: self.identity.into(),
            };
            let (fate, cancel) = (Rc::clone(&fate), cancel.clone());
            Ok(Box::new(FormulaSite { facts, fate, cancel }) as Box<dyn TargetSession>)
        };
        let blocks = |field: &StrategyInput| -> Box<dyn crate::strategy::Strategy> {
            Box::new(BlockStrategy::new(field, plan.repeats))
        };
        let outcome = study.conduct(&mut self.store, &mut open, &blocks, progress);
        let fate = fate.take();
        (outcome, fate)
    }

    fn load(&self, run: RunId) -> Run {
        self.store.load(run).expect("the run")
    }
}

fn order(run: &Run) -> Vec<(u32, String, u64)> {
    let trials = run.trials.iter();
    trials.map(|t| (t.block, t.workload.clone(), t.settings.read_ahead.get())).collect()
}

#[test]
fn a_whole_run_is_in_the_record() {
    let mut bench = Bench::new();
    let (outcome, fate) = bench.go(Fate::default());
    let outcome = outcome.expect("an outcome");
    assert!(outcome.complete && fate.closed && fate.trials == ALL);
    let run = bench.load(outcome.run);
    assert_eq!(run.summary.status, RunStatus::Complete);
    assert_eq!((run.summary.trials as usize, run.trials.len()), (ALL, ALL));
    assert_eq!((run.seed, run.found, run.plan), (7, Some(Kib::new(128)), plan()));
    assert_eq!((run.device_before, run.device_after), ("before".into(), "after".into()));
    // The formula: 100 times the window per second, and twice as much from the device.
    let figures = &run.trials[0].figures;
    let kib = run.trials[0].settings.read_ahead.get() as f64;
    assert!((figures.throughput_mib_s - kib * 100.0 / 1024.0).abs() < 1e-6);
    assert_eq!((figures.amplification, figures.device_requests), (Some(2.0), Some(7)));
    assert_eq!(bench.store.runs().expect("runs").len(), 1);
}

#[test]
fn what_closing_found_is_told() {
    struct Notes(Vec<String>);
    impl Progress for Notes {
        fn step(&mut self, step: &ProgressEvent) {
            self.0.extend(if let ProgressEvent::Note(note) = step {
                Some(note.clone())
            } else {
                None
            });
        }
    }
    let mut notes = Notes(Vec::new());
    let outcome = Bench::new().go_telling(Fate::default(), &mut notes).0;
    assert!(outcome.is_ok());
    assert_eq!(notes.0, ["left at 256 KiB"]);
}

#[test]
fn a_complete_run_is_not_gone_on_with() {
    let mut bench = Bench::new();
    let first = bench.go(Fate::default()).0.expect("an outcome").run;
    let second = bench.go(Fate::default()).0.expect("an outcome").run;
    assert_ne!(first, second);
}

#[test]
fn a_failing_trial_ends_the_run_with_its_error_and_the_site_closed() {
    let mut bench = Bench::new();
    let (outcome, fate) = bench.go(Fate { fail_at: Some(4), ..Fate::default() });
    assert!(outcome.expect_err("an error").to_string().contains("/dev/formula"));
    assert!(fate.closed);
    let summary = bench.store.runs().expect("runs").remove(0);
    assert_eq!((summary.status, summary.trials), (RunStatus::Failed, 3));
    assert!(summary.error.expect("an error").contains("/dev/formula"));
    // The storage works again: the same command continues the run.
    let (outcome, fate) = bench.go(Fate::default());
    let outcome = outcome.expect("an outcome");
    assert_eq!((outcome.run, fate.trials), (summary.id, ALL - 3));
    assert_eq!(bench.load(outcome.run).summary.error, None);
}

#[test]
fn an_end_that_cannot_be_written_down_does_not_hide_why_it_came() {
    let mut bench = Bench::new();
    let break_store = Some(bench.store.path().to_owned());
    let (outcome, _) = bench.go(Fate { fail_at: Some(4), break_store, ..Fate::default() });
    let error = outcome.expect_err("an error");
    assert!(error.to_string().contains("/dev/formula"), "{error}");
    let summary = bench.store.runs().expect("runs").remove(0);
    assert_eq!((summary.error, summary.status), (None, RunStatus::Interrupted));
}

#[test]
fn what_could_not_be_put_back_is_an_error() {
    let mut bench = Bench::new();
    let (outcome, _) = bench.go(Fate { fail_close: true, ..Fate::default() });
    assert!(outcome.is_err());
    let summary = bench.store.runs().expect("runs").remove(0);
    assert_eq!((summary.status, summary.trials as usize), (RunStatus::Failed, ALL));
}

#[test]
fn other_storage_or_another_plan_begins_another_run() {
    let mut bench = Bench::new();
    let cut = || Fate { cancel_at: Some(3), ..Fate::default() };
    let first = bench.go(cut()).0.expect("an outcome");
    assert!(!first.complete);
    bench.identity = "another disk";
    let second = bench.go(cut()).0.expect("an outcome").run;
    bench.plan.repeats = Repeats::exactly(1);
    let third = bench.go(cut()).0.expect("an outcome").run;
    bench.fresh = true;
    let fourth = bench.go(Fate::default()).0.expect("an outcome").run;
    assert_eq!([second.0, third.0, fourth.0], [first.run.0 + 1, first.run.0 + 2, first.run.0 + 3]);
}

#[test]
fn a_run_that_somebody_measures_is_left_to_him() {
    let mut bench = Bench::new();
    let run = bench.go(Fate { cancel_at: Some(3), ..Fate::default() }).0.expect("an outcome").run;
    let claim = RunClaim::take(bench.store.path(), run).expect("a claim");
    let (outcome, fate) = bench.go(Fate::default());
    let pid = Some(std::process::id());
    assert!(matches!(outcome, Err(StudyError::RunBusy { run: r, pid: p }) if r == run && p == pid));
    assert_eq!(fate.trials, 0);
    drop(claim);
    assert!(bench.go(Fate::default()).0.expect("an outcome").complete);
}

/// A killed process leaves the run unchanged and its lock free.
#[test]
fn a_killed_run_shows_as_interrupted() {
    let mut bench = Bench::new();
    let run = bench.go(Fate { cancel_at: Some(3), ..Fate::default() }).0.expect("an outcome").run;
    bench.store.resume(run).expect("as if running");
    assert_eq!(bench.load(run).summary.status, RunStatus::Interrupted);
    let claim = RunClaim::take(bench.store.path(), run).expect("a claim");
    assert_eq!(bench.load(run).summary.status, RunStatus::Running);
    drop(claim);
}

#[test]
fn spoiled_trials_are_in_the_record_and_repeated() {
    let mut bench = Bench::new();
    let (outcome, fate) = bench.go(Fate { spoil_at: Some(2), ..Fate::default() });
    assert_eq!(fate.trials, ALL + 1);
    let run = bench.load(outcome.expect("an outcome").run);
    let spoiled = &run.trials[1];
    assert_eq!(spoiled.status, crate::trial::TrialStatus::Disturbed);
    assert!(spoiled.disturbances[0].contains("dropped"), "{:?}", spoiled.disturbances);
    assert_eq!(order(&run)[1], order(&run)[2], "the same cell again at once");
}

#[test]
fn senseless_plans_are_refused_before_anything_is_opened() {
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut bench = Bench::new();
        change(&mut bench.plan);
        let (outcome, fate) = bench.go(Fate::default());
        assert!(matches!(outcome, Err(StudyError::Plan(_))), "{outcome:?}");
        assert!(!fate.closed && bench.store.runs().expect("runs").is_empty());
    };
    refused(&|plan| plan.workloads.clear());
    refused(&|plan| plan.workloads[1] = plan.workloads[0].clone());
    refused(&|plan| plan.repeats = Repeats { min: 3, max: 2 });
    refused(&|plan| plan.trial = Nanos::from_micros(1));
    refused(&|plan| plan.workloads.iter_mut().for_each(|w| w.role = Role::Cost));
}

#[test]
fn what_is_not_there_or_not_ours_is_named() {
    let bench = Bench::new();
    let error = bench.store.load(RunId(99)).expect_err("no such run");
    assert!(matches!(error, StoreError::NoRun { run: RunId(99), .. }));
    let text = bench.dir.path().join("text");
    std::fs::write(&text, "this is no database, whatever its name is\n".repeat(40))
        .expect("a file");
    assert!(Store::open(&text).expect_err("no database").to_string().contains("text"));
    assert!(Store::open_existing(Path::new("/nowhere/at.all")).expect("fine").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// After any number of interruptions, no finished trial is lost or measured again, and the
    /// order equals that of an uninterrupted run.
    #[test]
    fn a_run_stopped_anywhere_ends_as_if_it_had_not(
        stops in prop::collection::vec(1usize..7, 0..5),
    ) {
        let mut whole = Bench::new();
        let run = whole.go(Fate::default()).0.expect("an outcome").run;
        let expected = order(&whole.load(run));
        let mut bench = Bench::new();
        let mut measured = 0;
        for stop in stops {
            let (outcome, fate) = bench.go(Fate { cancel_at: Some(stop), ..Fate::default() });
            let outcome = outcome.expect("an outcome");
            prop_assert!(fate.closed);
            measured += if outcome.complete { fate.trials } else { fate.trials - 1 };
            prop_assert_eq!(order(&bench.load(outcome.run)), &expected[..measured]);
            if outcome.complete {
                return Ok(());
            }
        }
        let (outcome, fate) = bench.go(Fate::default());
        prop_assert_eq!(fate.trials, ALL - measured);
        prop_assert_eq!(order(&bench.load(outcome.expect("an outcome").run)), expected);
    }
}
