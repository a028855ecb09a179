//! Runs one study, from opening the target to the last record. `sweep` and `tune` differ only in
//! their strategy.

#[cfg(test)]
mod tests;

use crate::analyse::{Analysis, analyse};
use crate::error::StudyError;
use crate::factors;
use crate::plan::Plan;
use crate::progress::{Progress, ProgressEvent, StudyPhase};
use crate::run_id::RunId;
use crate::seed::unix_seconds;
use crate::session::{Opener, TargetFacts, TargetSession};
use crate::settings::CellSettings;
use crate::store::{ClaimOutcome, NewRun, Run, RunClaim, RunCommand, RunStatus, Store};
use crate::strategy::{Strategy, StrategyInput};
use crate::trial::Trial;
use crate::trial_loop::{LoopEnd, TrialLoop};

#[derive(Clone, Debug)]
pub struct StudyOutcome {
    pub run: RunId,
    /// Whether all planned trials were measured. If not, the study was cancelled, and the same
    /// command resumes it.
    pub complete: bool,
    pub analysis: Analysis,
}

/// A study that is ready to run.
pub(crate) struct Study<'a> {
    pub(crate) command: RunCommand,
    pub(crate) plan: &'a Plan,
    pub(crate) fresh: bool,
    pub(crate) cancel: &'a bench::Cancel,
}

/// An open run, to which trials are added.
struct Open {
    run: RunId,
    seed: u64,
    trials: Vec<Trial>,
    _claim: RunClaim,
}

impl Study<'_> {
    /// Runs the study, and closes the target even after an error.
    pub(crate) fn conduct(
        &self,
        store: &mut Store,
        open: &mut Opener<'_>,
        strategy: &dyn Fn(&StrategyInput) -> Box<dyn Strategy>,
        progress: &mut dyn Progress,
    ) -> Result<StudyOutcome, StudyError> {
        self.plan.check()?;
        progress.step(&ProgressEvent::Phase(StudyPhase::Preparing));
        let prior = self.prior(store)?;
        let workloads = prior.as_ref().map(|(run, _)| run.workloads.as_slice());
        let mut site = open(workloads, progress).map_err(|error| self.unless_cancelled(error))?;
        let facts = site.facts().clone();
        let mut run = None;
        let measured = self.open_run(store, prior, &facts, progress).and_then(|open| {
            let open = run.insert(open);
            self.measure(store, open, &facts, site.as_mut(), strategy, progress)
        });
        progress.step(&ProgressEvent::Phase(StudyPhase::Restoring));
        let closed = site.close(progress);
        if let (Err(_), Err(second)) = (&measured, &closed) {
            progress.step(&ProgressEvent::Note(format!("and while restoring settings: {second}")));
        }
        let ended = measured.and_then(|drive| closed.map(|after| (drive, after)));
        self.end(store, run.map(|open| open.run), ended, progress)
    }

    /// Turns an error caused by cancellation into [`StudyError::Cancelled`].
    fn unless_cancelled(&self, error: StudyError) -> StudyError {
        if self.cancel.is_cancelled() { StudyError::Cancelled } else { error }
    }

    /// Returns the run to resume, claimed; `None` if a new run should start.
    fn prior(&self, store: &Store) -> Result<Option<(Run, RunClaim)>, StudyError> {
        if self.fresh {
            return Ok(None);
        }
        let Some(run) = store.resumable(self.command, self.plan)? else { return Ok(None) };
        match RunClaim::take(store.path(), run)? {
            ClaimOutcome::Acquired(claim) => Ok(Some((self.with_traces(store.load(run)?), claim))),
            ClaimOutcome::Busy(pid) => Err(StudyError::RunBusy { run, pid }),
        }
    }

    /// Adds the plan's traces to the run, because the record contains only their names.
    fn with_traces(&self, mut run: Run) -> Run {
        for workload in &mut run.workloads {
            self.plan.workloads.iter().for_each(|planned| workload.adopt_trace(&planned.workload));
        }
        run
    }

    /// Resumes the prior run if it used the same storage; otherwise starts a new one.
    fn open_run(
        &self,
        store: &mut Store,
        prior: Option<(Run, RunClaim)>,
        facts: &TargetFacts,
        progress: &mut dyn Progress,
    ) -> Result<Open, StudyError> {
        if let Some((run, claim)) = prior {
            let id = run.summary.id;
            if run.identity == facts.identity && run.grid == facts.grid {
                store.resume(id)?;
                progress.step(&ProgressEvent::Resumed { run: id, trials: run.trials.len() });
                return Ok(Open { run: id, seed: run.seed, trials: run.trials, _claim: claim });
            }
            progress.step(&ProgressEvent::Note(format!(
                "run {id} was interrupted, but the storage or the machine has changed since: \
                 starting a new run"
            )));
        }
        let seed = self.plan.seed.unwrap_or_else(|| (unix_seconds() * 1e3) as u64);
        let run = store.begin(&NewRun { command: self.command, plan: self.plan, seed, facts })?;
        match RunClaim::take(store.path(), run)? {
            ClaimOutcome::Acquired(claim) => {
                Ok(Open { run, seed, trials: Vec::new(), _claim: claim })
            }
            ClaimOutcome::Busy(pid) => Err(StudyError::RunBusy { run, pid }),
        }
    }

    fn measure(
        &self,
        store: &mut Store,
        open: &mut Open,
        facts: &TargetFacts,
        site: &mut dyn TargetSession,
        strategy: &dyn Fn(&StrategyInput) -> Box<dyn Strategy>,
        progress: &mut dyn Progress,
    ) -> Result<LoopEnd, StudyError> {
        let settings = self.settings(facts, &site.baseline())?;
        let field = StrategyInput {
            workloads: self.plan.roles(),
            settings,
            found: facts
                .found
                .map(CellSettings::read_ahead)
                .filter(|_| self.plan.factors.is_empty()),
            seed: open.seed,
            purpose: self.plan.purpose,
            streams: self.plan.streams(),
            trial_seconds: self.plan.trial.as_secs_f64() * facts.dilation,
        };
        progress.step(&ProgressEvent::Phase(StudyPhase::Measuring));
        let mut trial_loop = TrialLoop {
            store,
            run: open.run,
            seed: open.seed,
            workloads: &facts.workloads,
            cancel: self.cancel,
        };
        trial_loop.run(strategy(&field).as_mut(), site, &mut open.trials, progress)
    }

    fn settings(
        &self,
        facts: &TargetFacts,
        baseline: &tunables::TunableValues,
    ) -> Result<Vec<CellSettings>, StudyError> {
        let Plan { factors, design, .. } = self.plan;
        if factors.is_empty() {
            return Ok(facts.grid.iter().copied().map(CellSettings::read_ahead).collect());
        }
        let found = facts.found.ok_or_else(|| {
            StudyError::Plan(
                "this target has no tunables: vary them on real storage or virtual disks"
                    .to_owned(),
            )
        })?;
        let baseline = tunables::TunableValues::read_ahead(found.to_bytes())
            .iter()
            .chain(baseline.iter())
            .fold(tunables::TunableValues::default(), |all, setting| all.with(setting.clone()));
        let field = factors::FactorSpace::new(factors, &facts.grid, *design, &baseline)?;
        field.cells(*design, found)
    }

    /// Records the end of the study and analyses it.
    fn end(
        &self,
        store: &mut Store,
        run: Option<RunId>,
        ended: Result<(LoopEnd, serde_json::Value), StudyError>,
        progress: &mut dyn Progress,
    ) -> Result<StudyOutcome, StudyError> {
        let Some(run) = run else {
            // Without a run there are no measurements; the error gives the reason.
            return Err(ended.err().unwrap_or(StudyError::Cancelled));
        };
        match ended {
            Ok((drive, after)) => {
                let complete = drive == LoopEnd::Complete;
                let status = if complete { RunStatus::Complete } else { RunStatus::Interrupted };
                store.finish(run, status, None, &after)?;
                Ok(StudyOutcome { run, complete, analysis: analyse(&store.load(run)?) })
            }
            Err(error) => {
                let text = error.to_string();
                let null = serde_json::Value::Null;
                // Report the first error; a full disk may cause both.
                if let Err(second) = store.finish(run, RunStatus::Failed, Some(&text), &null) {
                    let second = format!("and while recording the end of run {run}: {second}");
                    progress.step(&ProgressEvent::Note(second));
                }
                Err(error)
            }
        }
    }
}
