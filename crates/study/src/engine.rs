//! Runs what a strategy chooses, one trial after another, each committed before the next begins.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use workload::Workload;

use crate::error::StudyError;
use crate::progress::{Progress, Step};
use crate::store::{RunId, Store};
use crate::strategy::{ATTEMPTS_MAX, Next, Strategy};
use crate::trial::{Trial, TrialRequest, TrialStatus, Trials};
use bench::Cancel;

/// How a drive ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drive {
    /// The strategy knows enough.
    Complete,
    /// Somebody asked to stop.
    Cancelled,
}

/// A run being measured.
pub(crate) struct Driver<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) run: RunId,
    pub(crate) seed: u64,
    pub(crate) workloads: &'a [Workload],
    pub(crate) cancel: &'a Cancel,
}

impl Driver<'_> {
    /// Runs trials until the strategy has enough. `done` is the record so far, and grows.
    pub(crate) fn drive(
        &mut self,
        strategy: &mut dyn Strategy,
        trials: &mut dyn Trials,
        done: &mut Vec<Trial>,
        progress: &mut dyn Progress,
    ) -> Result<Drive, StudyError> {
        let mut spent = Duration::ZERO;
        let mut ended = 0;
        while let Some(next) = strategy.next(done) {
            if self.cancel.is_cancelled() {
                return Ok(Drive::Cancelled);
            }
            let left = strategy.expected(done).max(1);
            progress.step(&Step::TrialStarted {
                number: done.len() + 1,
                expected: done.len() + left,
                settings: next.cell.settings,
                workload: self.workloads[next.cell.workload].name.clone(),
                eta: (ended > 0).then(|| spent / ended * u32::try_from(left).unwrap_or(u32::MAX)),
            });
            let begun = Instant::now();
            match self.one(next, trials, done) {
                // A trial that was cut short measured nothing and is not in the record.
                Err(_) if self.cancel.is_cancelled() => return Ok(Drive::Cancelled),
                other => other?,
            }
            spent += begun.elapsed();
            ended += 1;
            if let Some(trial) = done.last() {
                report(trial, done, progress);
            }
        }
        Ok(Drive::Complete)
    }

    fn one(
        &mut self,
        next: Next,
        trials: &mut dyn Trials,
        done: &mut Vec<Trial>,
    ) -> Result<(), StudyError> {
        let workload = &self.workloads[next.cell.workload];
        let request = TrialRequest {
            settings: next.cell.settings,
            workload,
            seed: trial_seed(self.seed, next.block, next.cell.workload),
        };
        let started_unix_s = unix_seconds();
        let record = trials.trial(&request)?;
        let disturbances = record.disturbances();
        let clean = disturbances.is_empty();
        let trial = Trial {
            block: next.block,
            order: u32::try_from(done.len()).unwrap_or(u32::MAX),
            settings: next.cell.settings,
            workload: workload.name.clone(),
            started_unix_s,
            status: if clean { TrialStatus::Clean } else { TrialStatus::Disturbed },
            disturbances,
            figures: record.figures(),
        };
        self.store.add_trial(self.run, &trial, &record)?;
        done.push(trial);
        Ok(())
    }
}

fn report(trial: &Trial, done: &[Trial], progress: &mut dyn Progress) {
    let number = trial.order as usize + 1;
    if trial.status == TrialStatus::Clean {
        let (settings, workload) = (trial.settings, trial.workload.clone());
        let figures = trial.figures.clone();
        progress.step(&Step::TrialDone { number, settings, workload, figures });
        return;
    }
    let same = |t: &&Trial| {
        t.block == trial.block && t.settings == trial.settings && t.workload == trial.workload
    };
    let attempts = done.iter().filter(same).count();
    progress.step(&Step::TrialSpoiled {
        number,
        reasons: trial.disturbances.clone(),
        again: attempts < ATTEMPTS_MAX as usize,
    });
}

/// The same for every setting of a block, so that pairs read the same places; another for each
/// block and workload. The steps are those of SplitMix64.
pub(crate) fn trial_seed(seed: u64, block: u32, workload: usize) -> u64 {
    let mut z = seed ^ (u64::from(block) << 32) ^ workload as u64;
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The time of day, in seconds since 1970.
pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
