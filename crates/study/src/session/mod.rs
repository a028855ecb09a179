//! One study from its first look at the target to its last word in the record: the same for
//! `sweep` and `tune`, which differ in their strategy alone.

#[cfg(test)]
mod tests;

use units::Kib;
use workload::Workload;

use crate::analyse::analyse;
use crate::engine::{Drive, Driver, unix_seconds};
use crate::error::StudyError;
use crate::factors;
use crate::plan::{Plan, Purpose, Role};
use crate::progress::{Phase, Progress, Step};
use crate::settings::Settings;
use crate::store::{Claim, Claimed, Command, NewRun, Run, RunId, RunStatus, Store};
use crate::strategy::Strategy;
use crate::sweep::Outcome;
use crate::trial::{Trial, Trials};

/// The target at hand, ready for trials.
pub(crate) trait Site: Trials {
    /// What is known of it.
    fn facts(&self) -> &SiteFacts;

    /// What the tunables have that the plan varies besides read-ahead.
    fn baseline(&self) -> tunables::Settings {
        tunables::Settings::default()
    }

    /// Puts everything back as it was found, tells what could not be, removes what was made, and
    /// describes the storage as it is then.
    fn close(self: Box<Self>, progress: &mut dyn Progress)
    -> Result<serde_json::Value, StudyError>;
}

/// What is known of a target before the first trial.
#[derive(Clone, Debug)]
pub(crate) struct SiteFacts {
    /// The workloads with the sizes of their files.
    pub(crate) workloads: Vec<Workload>,
    /// The values of the plan's grid, as the kernel will have them.
    pub(crate) grid: Vec<Kib>,
    /// What the device has.
    pub(crate) found: Option<Kib>,
    /// How many times slower than its model it runs.
    pub(crate) dilation: f64,
    /// The machine.
    pub(crate) machine: serde_json::Value,
    /// The storage and its tunables.
    pub(crate) device: serde_json::Value,
    /// What makes it the same target as in another run.
    pub(crate) identity: serde_json::Value,
}

/// Opens the target; gets the workloads of the run that goes on, if one does.
pub(crate) type Opener<'a> =
    dyn FnMut(Option<&[Workload]>, &mut dyn Progress) -> Result<Box<dyn Site>, StudyError> + 'a;

/// What a strategy is made from.
pub(crate) struct Field<'a> {
    pub(crate) workloads: &'a [(String, Role)],
    pub(crate) settings: &'a [Settings],
    pub(crate) found: Option<Settings>,
    pub(crate) seed: u64,
    pub(crate) purpose: Purpose,
    /// Streams of the largest goal.
    pub(crate) streams: u32,
    /// How long a trial is meant to take on the wall.
    pub(crate) trial_seconds: f64,
}

/// A study about to be conducted.
pub(crate) struct Study<'a> {
    pub(crate) command: Command,
    pub(crate) plan: &'a Plan,
    pub(crate) fresh: bool,
    pub(crate) cancel: &'a bench::Cancel,
}

/// A run to write trials into.
struct Open {
    run: RunId,
    seed: u64,
    trials: Vec<Trial>,
    _claim: Claim,
}

impl Study<'_> {
    /// Conducts the study; whatever happens, the target is closed.
    pub(crate) fn conduct(
        &self,
        store: &mut Store,
        open: &mut Opener<'_>,
        strategy: &dyn Fn(&Field<'_>) -> Box<dyn Strategy>,
        progress: &mut dyn Progress,
    ) -> Result<Outcome, StudyError> {
        self.plan.check()?;
        progress.step(&Step::Phase(Phase::Preparing));
        let prior = self.prior(store)?;
        let workloads = prior.as_ref().map(|(run, _)| run.workloads.as_slice());
        let mut site = open(workloads, progress).map_err(|error| self.unless_cancelled(error))?;
        let facts = site.facts().clone();
        let mut run = None;
        let measured = self.open_run(store, prior, &facts, progress).and_then(|open| {
            let open = run.insert(open);
            self.measure(store, open, &facts, site.as_mut(), strategy, progress)
        });
        progress.step(&Step::Phase(Phase::Restoring));
        let closed = site.close(progress);
        if let (Err(_), Err(second)) = (&measured, &closed) {
            progress.step(&Step::Note(format!("and when putting things back: {second}")));
        }
        let ended = measured.and_then(|drive| closed.map(|after| (drive, after)));
        self.end(store, run.map(|open| open.run), ended, progress)
    }

    /// An error that comes of stopping is none of the storage's.
    fn unless_cancelled(&self, error: StudyError) -> StudyError {
        if self.cancel.is_cancelled() { StudyError::Cancelled } else { error }
    }

    /// The run to go on with, claimed.
    fn prior(&self, store: &Store) -> Result<Option<(Run, Claim)>, StudyError> {
        if self.fresh {
            return Ok(None);
        }
        let Some(run) = store.resumable(self.command, self.plan)? else { return Ok(None) };
        match Claim::take(store.path(), run)? {
            Claimed::Ours(claim) => Ok(Some((self.with_traces(store.load(run)?), claim))),
            Claimed::Theirs(pid) => Err(StudyError::RunBusy { run, pid }),
        }
    }

    /// The record names traces, the plan has them.
    fn with_traces(&self, mut run: Run) -> Run {
        for workload in &mut run.workloads {
            self.plan.workloads.iter().for_each(|planned| workload.adopt_trace(&planned.workload));
        }
        run
    }

    /// Goes on with the prior run if it was on the same storage, or begins another.
    fn open_run(
        &self,
        store: &mut Store,
        prior: Option<(Run, Claim)>,
        facts: &SiteFacts,
        progress: &mut dyn Progress,
    ) -> Result<Open, StudyError> {
        if let Some((run, claim)) = prior {
            let id = run.summary.id;
            if run.identity == facts.identity && run.grid == facts.grid {
                store.resume(id)?;
                progress.step(&Step::Resumed { run: id, trials: run.trials.len() });
                return Ok(Open { run: id, seed: run.seed, trials: run.trials, _claim: claim });
            }
            progress.step(&Step::Note(format!(
                "run {id} was interrupted, but the storage or the machine is not what it was: \
                 a new run begins"
            )));
        }
        let seed = self.plan.seed.unwrap_or_else(|| (unix_seconds() * 1e3) as u64);
        let run = store.begin(&NewRun { command: self.command, plan: self.plan, seed, facts })?;
        match Claim::take(store.path(), run)? {
            Claimed::Ours(claim) => Ok(Open { run, seed, trials: Vec::new(), _claim: claim }),
            Claimed::Theirs(pid) => Err(StudyError::RunBusy { run, pid }),
        }
    }

    fn measure(
        &self,
        store: &mut Store,
        open: &mut Open,
        facts: &SiteFacts,
        site: &mut dyn Site,
        strategy: &dyn Fn(&Field<'_>) -> Box<dyn Strategy>,
        progress: &mut dyn Progress,
    ) -> Result<Drive, StudyError> {
        let settings = self.settings(facts, &site.baseline())?;
        let workloads = self.plan.roles();
        let field = Field {
            workloads: &workloads,
            settings: &settings,
            found: facts.found.map(Settings::read_ahead).filter(|_| self.plan.factors.is_empty()),
            seed: open.seed,
            purpose: self.plan.purpose,
            streams: self.plan.streams(),
            trial_seconds: self.plan.trial.as_secs_f64() * facts.dilation,
        };
        progress.step(&Step::Phase(Phase::Measuring));
        let mut driver = Driver {
            store,
            run: open.run,
            seed: open.seed,
            workloads: &facts.workloads,
            cancel: self.cancel,
        };
        driver.drive(strategy(&field).as_mut(), site, &mut open.trials, progress)
    }

    /// Every combination that is measured.
    fn settings(
        &self,
        facts: &SiteFacts,
        baseline: &tunables::Settings,
    ) -> Result<Vec<Settings>, StudyError> {
        let Plan { factors, design, .. } = self.plan;
        if factors.is_empty() {
            return Ok(facts.grid.iter().copied().map(Settings::read_ahead).collect());
        }
        let found = facts.found.ok_or_else(|| {
            StudyError::Plan("tunables are varied on real storage and virtual disks".to_owned())
        })?;
        let baseline = tunables::Settings::read_ahead(found.to_bytes())
            .iter()
            .chain(baseline.iter())
            .fold(tunables::Settings::default(), |all, setting| all.with(setting.clone()));
        let field = factors::Field::new(factors, &facts.grid, *design, &baseline)?;
        field.cells(*design, found)
    }

    /// Writes down how it ended and works out what it shows.
    fn end(
        &self,
        store: &mut Store,
        run: Option<RunId>,
        ended: Result<(Drive, serde_json::Value), StudyError>,
        progress: &mut dyn Progress,
    ) -> Result<Outcome, StudyError> {
        let Some(run) = run else {
            // Without a run nothing was measured: the error says why.
            return Err(ended.err().unwrap_or(StudyError::Cancelled));
        };
        match ended {
            Ok((drive, after)) => {
                let complete = drive == Drive::Complete;
                let status = if complete { RunStatus::Complete } else { RunStatus::Interrupted };
                store.finish(run, status, None, &after)?;
                Ok(Outcome { run, complete, analysis: analyse(&store.load(run)?) })
            }
            Err(error) => {
                let text = error.to_string();
                let null = serde_json::Value::Null;
                // What ended the study is what is to be known; a full disk may well be both.
                if let Err(second) = store.finish(run, RunStatus::Failed, Some(&text), &null) {
                    let second = format!("and when writing down how run {run} ended: {second}");
                    progress.step(&Step::Note(second));
                }
                Err(error)
            }
        }
    }
}
