//! Records runs whose trials are not executed by a study. Trials are recorded one by one, too, and
//! the run is marked as running until its end.

use units::Kib;

use super::{ClaimOutcome, NewRun, RunClaim, RunCommand, RunStatus, Store};
use crate::error::StoreError;
use crate::plan::Plan;
use crate::run_id::RunId;
use crate::session::TargetFacts;
use crate::trial::{Trial, TrialRecord};

/// The properties of such a run before its first trial.
#[derive(Clone, Debug)]
pub struct RunHeader<'a> {
    pub command: RunCommand,
    pub plan: &'a Plan,
    pub seed: u64,
    /// The read-ahead values to measure, ascending.
    pub grid: Vec<Kib>,
    pub found: Option<Kib>,
    /// Factor by which a virtual disk runs slower than its model; 1 for other targets.
    pub dilation: f64,
    /// Descriptions of the machine and of other conditions.
    pub machine: serde_json::Value,
    pub device: serde_json::Value,
}

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
    pub fn record(&mut self, beginning: &RunHeader<'_>) -> Result<RunRecording<'_>, StoreError> {
        let RunHeader { command, plan, seed, dilation, .. } = *beginning;
        let facts = TargetFacts {
            workloads: plan.workloads.iter().map(|planned| planned.workload.clone()).collect(),
            grid: beginning.grid.clone(),
            found: beginning.found,
            dilation,
            machine: beginning.machine.clone(),
            device: beginning.device.clone(),
            identity: serde_json::Value::Null,
        };
        let run = self.begin(&NewRun { command, plan, seed, facts: &facts })?;
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
