//! Runs the trials that a strategy chooses. Each one is committed before the next one starts.

use std::time::{Duration, Instant};

use workload::Workload;

use crate::error::StudyError;
use crate::progress::{Progress, ProgressEvent};
use crate::run_id::RunId;
use crate::seed::{trial_seed, unix_seconds};
use crate::store::Store;
use crate::strategy::{ATTEMPTS_MAX, Next, Strategy};
use crate::trial::{Trial, TrialRequest, TrialRunner, TrialStatus};
use bench::Cancel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    Complete,
    /// Stopped on request.
    Cancelled,
}

pub(crate) struct TrialLoop<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) run: RunId,
    pub(crate) seed: u64,
    pub(crate) workloads: &'a [Workload],
    pub(crate) cancel: &'a Cancel,
}

impl TrialLoop<'_> {
    /// Runs trials until the strategy returns no more. `done` holds the recorded trials and grows.
    pub(crate) fn run(
        &mut self,
        strategy: &mut dyn Strategy,
        trials: &mut dyn TrialRunner,
        done: &mut Vec<Trial>,
        progress: &mut dyn Progress,
    ) -> Result<LoopEnd, StudyError> {
        let mut spent = Duration::ZERO;
        let mut ended = 0;
        while let Some(next) = strategy.next(done) {
            if self.cancel.is_cancelled() {
                return Ok(LoopEnd::Cancelled);
            }
            let left = strategy.expected(done).max(1);
            progress.step(&ProgressEvent::TrialStarted {
                number: done.len() + 1,
                expected: done.len() + left,
                settings: next.cell.settings.clone(),
                workload: self.workloads[next.cell.workload].name.clone(),
                eta: (ended > 0).then(|| spent / ended * u32::try_from(left).unwrap_or(u32::MAX)),
            });
            let begun = Instant::now();
            match self.one(&next, trials, done) {
                // An interrupted trial has no result and is not recorded.
                Err(_) if self.cancel.is_cancelled() => return Ok(LoopEnd::Cancelled),
                other => other?,
            }
            spent += begun.elapsed();
            ended += 1;
            if let Some(trial) = done.last() {
                report(trial, done, progress);
            }
        }
        Ok(LoopEnd::Complete)
    }

    fn one(
        &mut self,
        next: &Next,
        trials: &mut dyn TrialRunner,
        done: &mut Vec<Trial>,
    ) -> Result<(), StudyError> {
        let workload = &self.workloads[next.cell.workload];
        let request = TrialRequest {
            settings: &next.cell.settings,
            workload,
            seed: trial_seed(self.seed, next.block, next.cell.workload),
        };
        let started_unix_s = unix_seconds();
        let record = trials.trial(&request)?;
        let settings = next.cell.settings.clone();
        let trial = Trial {
            order: u32::try_from(done.len()).unwrap_or(u32::MAX),
            ..Trial::new(next.block, settings, started_unix_s, &record)
        };
        self.store.add_trial(self.run, &trial, &record)?;
        done.push(trial);
        Ok(())
    }
}

fn report(trial: &Trial, done: &[Trial], progress: &mut dyn Progress) {
    let number = trial.order as usize + 1;
    if trial.status == TrialStatus::Clean {
        let (settings, workload) = (trial.settings.clone(), trial.workload.clone());
        let figures = trial.figures.clone();
        progress.step(&ProgressEvent::TrialDone { number, settings, workload, figures });
        return;
    }
    let same = |t: &&Trial| {
        t.block == trial.block && t.settings == trial.settings && t.workload == trial.workload
    };
    let attempts = done.iter().filter(same).count();
    progress.step(&ProgressEvent::TrialSpoiled {
        number,
        reasons: trial.disturbances.clone(),
        again: attempts < ATTEMPTS_MAX as usize,
    });
}
