//! Records runs whose trials are not executed by a study. Trials are recorded one by one, too, and
//! the run is marked as running until its end.

use super::{ClaimOutcome, NewRun, RunClaim, RunStatus, Store};
use crate::error::StoreError;
use crate::run_id::RunId;
use crate::trial::{Trial, TrialRecord};

/// A recorded run to which trials are added. A dropped recording is reported as interrupted.
#[derive(Debug)]
pub struct RunRecording<'a> {
    store: &'a mut Store,
    run: RunId,
    trials: u32,
    _claim: RunClaim,
}

impl Store {
    /// Records the start of a run.
    pub fn record(&mut self, new: &NewRun<'_>) -> Result<RunRecording<'_>, StoreError> {
        let run = self.begin(new)?;
        match RunClaim::take(&self.path, run)? {
            ClaimOutcome::Acquired(claim) => {
                Ok(RunRecording { store: self, run, trials: 0, _claim: claim })
            }
            ClaimOutcome::Busy(pid) => Err(StoreError::InUse { run, pid }),
        }
    }
}

impl RunRecording<'_> {
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Adds a trial; it is on stable storage when this function returns.
    pub fn add(&mut self, trial: &Trial, record: &TrialRecord) -> Result<(), StoreError> {
        let trial = Trial { order: self.trials, ..trial.clone() };
        self.store.add_trial(self.run, &trial, record)?;
        self.trials += 1;
        Ok(())
    }

    /// Ends the run: complete, or failed with this error. `after` describes the final state of the
    /// storage.
    pub fn end(self, error: Option<&str>, after: &serde_json::Value) -> Result<(), StoreError> {
        let status = if error.is_none() { RunStatus::Complete } else { RunStatus::Failed };
        self.store.finish(self.run, status, error, after)
    }

    /// Ends the run on request.
    pub fn interrupt(self) -> Result<(), StoreError> {
        let after = serde_json::Value::Null;
        self.store.finish(self.run, RunStatus::Interrupted, None, &after)
    }
}
