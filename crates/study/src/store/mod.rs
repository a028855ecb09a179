//! The record: one SQLite file with all runs and trials.

mod claim;
mod owner;
mod recording;
mod rows;
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, params};
use serde::{Deserialize, Serialize};
use units::Kib;
use workload::Workload;

use crate::error::StoreError;
use crate::plan::Plan;
use crate::run_id::RunId;
use crate::session::TargetFacts;
use crate::trial::{Trial, TrialRecord};

pub(crate) use claim::{ClaimOutcome, RunClaim};
pub use recording::RunRecording;

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunCommand {
    Sweep,
    Tune,
    Pg,
    /// Not measured by foreread.
    Import,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// The run is being measured, or was killed.
    Running,
    /// Stopped on request; the same command resumes it.
    Interrupted,
    Complete,
    Failed,
}

/// One line of `foreread runs`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    #[serde(rename = "run")]
    pub id: RunId,
    /// Start time in seconds since 1970-01-01 UTC.
    pub created_unix_s: f64,
    pub command: RunCommand,
    /// The target, as on the command line.
    pub target: String,
    /// State of the run; a run whose process was killed is reported as interrupted.
    pub status: RunStatus,
    pub trials: u32,
    pub error: Option<String>,
    /// The version of foreread that started the run.
    pub version: String,
}

/// A run with all its trials.
#[derive(Clone, Debug)]
pub struct Run {
    pub summary: RunSummary,
    pub plan: Plan,
    pub seed: u64,
    /// The settings to measure, ascending.
    pub grid: Vec<Kib>,
    pub found: Option<Kib>,
    /// The plan's workloads, with the sizes of the created files.
    pub workloads: Vec<Workload>,
    /// Factor by which a virtual disk ran slower than its model; 1 for other targets.
    pub dilation: f64,
    /// The identity of the target, which a resumed run must match.
    pub identity: serde_json::Value,
    /// The description of the machine.
    pub machine: serde_json::Value,
    /// The storage and all its tunables before the run.
    pub device_before: serde_json::Value,
    /// The same after the run; null if it was killed.
    pub device_after: serde_json::Value,
    /// All trials in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// The properties of a run before its first trial.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    pub command: RunCommand,
    pub plan: &'a Plan,
    pub seed: u64,
    pub facts: &'a TargetFacts,
}

/// The record: one SQLite file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens the record in this file; creates the file and its directory if missing.
    ///
    /// # Errors
    ///
    /// If the file is not a record, was written by a later version, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        owner::refuse_foreign(path)?;
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)
                .map_err(|source| StoreError::NoDirectory { path: dir.to_owned(), source })?;
        }
        let connection = Connection::open(path).map_err(sqlite(path))?;
        let mut store = Self { path: path.to_owned(), connection };
        store.prepare()?;
        Ok(store)
    }

    /// Opens an existing record for changes; `None` if missing.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if !owner::is_there(path)? {
            return Ok(None);
        }
        Self::open(path).map(Some)
    }

    /// Opens an existing record read-only, without creation or migration; `None` if missing. The
    /// file and its directory need not be writable.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>, StoreError> {
        if !owner::is_there(path)? {
            return Ok(None);
        }
        owner::refuse_foreign(path)?;
        let connection = owner::connect_read_only(path, false)?;
        let connection = if schema::is_blank(&connection, path)? {
            // The first run creates the tables; until then, there are none to read.
            let mut empty = Connection::open_in_memory().map_err(sqlite(path))?;
            schema::migrate(&mut empty, path)?;
            empty
        } else {
            connection
        };
        Ok(Some(Self { path: path.to_owned(), connection }))
    }

    fn prepare(&mut self) -> Result<(), StoreError> {
        let connection = &self.connection;
        // Another foreread process may be writing a trial.
        connection.busy_timeout(Duration::from_secs(10)).map_err(sqlite(&self.path))?;
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL")] {
            connection.pragma_update(None, name, value).map_err(sqlite(&self.path))?;
        }
        schema::migrate(&mut self.connection, &self.path)?;
        // Last, because a migration may recreate a table, which must not delete the rows that refer
        // to it.
        self.connection.pragma_update(None, "foreign_keys", true).map_err(sqlite(&self.path))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        let sql = format!("{} ORDER BY run.id DESC", rows::SUMMARY);
        rows::each(&self.connection, &self.path, &sql, [], |row| rows::summary(row, &self.path))
    }

    /// Loads a run with all its trials.
    pub fn load(&self, run: RunId) -> Result<Run, StoreError> {
        self.load_with(run, |_, _| {})
    }

    /// Loads a run with all its trials. `look` receives the full record of each trial, with its
    /// histograms and counters; imported trials have none.
    pub fn load_with(
        &self,
        run: RunId,
        mut look: impl FnMut(&Trial, &TrialRecord),
    ) -> Result<Run, StoreError> {
        rows::load(&self.connection, &self.path, run, &mut look)
    }

    /// Deletes a run with all its trials, unless a process is measuring it.
    pub fn delete(&mut self, run: RunId) -> Result<(), StoreError> {
        let _claim = match RunClaim::take(&self.path, run)? {
            ClaimOutcome::Acquired(claim) => claim,
            ClaimOutcome::Busy(pid) => return Err(StoreError::InUse { run, pid }),
        };
        let sql = "DELETE FROM run WHERE id = ?1";
        match self.connection.execute(sql, params![run.0]).map_err(sqlite(&self.path))? {
            0 => Err(StoreError::NoRun { path: self.path.clone(), run }),
            _ => Ok(()),
        }
    }

    /// Returns the latest run of the same command and plan; `None` if that run is complete.
    pub(crate) fn resumable(
        &self,
        command: RunCommand,
        plan: &Plan,
    ) -> Result<Option<RunId>, StoreError> {
        let sql = "SELECT id, status FROM run WHERE command = ?1 AND plan = ?2 ORDER BY id DESC \
                   LIMIT 1";
        let found = self.connection.query_row(
            sql,
            params![rows::word(&command), rows::json(plan)],
            |row| Ok((RunId(row.get(0)?), row.get::<_, String>(1)?)),
        );
        match found {
            Ok((run, status)) => Ok((status != rows::word(&RunStatus::Complete)).then_some(run)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(source) => Err(sqlite(&self.path)(source)),
        }
    }

    /// Records the start of a run.
    pub(crate) fn begin(&mut self, new: &NewRun<'_>) -> Result<RunId, StoreError> {
        rows::insert_run(&self.connection, new).map_err(sqlite(&self.path))?;
        Ok(RunId(self.connection.last_insert_rowid()))
    }

    /// Stores a run that was measured elsewhere, atomically.
    pub(crate) fn import(
        &mut self,
        plan: &Plan,
        grid: &[Kib],
        found: Option<Kib>,
        machine: &serde_json::Value,
        trials: &[Trial],
    ) -> Result<RunId, StoreError> {
        let facts = TargetFacts {
            workloads: plan.workloads.iter().map(|planned| planned.workload.clone()).collect(),
            grid: grid.to_vec(),
            found,
            dilation: 1.0,
            machine: machine.clone(),
            device: serde_json::Value::Null,
            identity: serde_json::Value::Null,
        };
        let new = NewRun { command: RunCommand::Import, plan, seed: 0, facts: &facts };
        let transaction = self.connection.transaction().map_err(sqlite(&self.path))?;
        rows::insert_run(&transaction, &new).map_err(sqlite(&self.path))?;
        let run = RunId(transaction.last_insert_rowid());
        for trial in trials {
            rows::insert_import(&transaction, run, trial).map_err(sqlite(&self.path))?;
        }
        let complete = "UPDATE run SET status = 'complete' WHERE id = ?1";
        transaction.execute(complete, params![run.0]).map_err(sqlite(&self.path))?;
        transaction.commit().map_err(sqlite(&self.path))?;
        Ok(run)
    }

    /// Records that a run is resumed.
    pub(crate) fn resume(&mut self, run: RunId) -> Result<(), StoreError> {
        let sql = "UPDATE run SET status = 'running', error = NULL WHERE id = ?1";
        self.connection.execute(sql, params![run.0]).map_err(sqlite(&self.path))?;
        Ok(())
    }

    /// Stores a trial; it is on stable storage when this function returns.
    pub(crate) fn add_trial(
        &mut self,
        run: RunId,
        trial: &Trial,
        record: &TrialRecord,
    ) -> Result<(), StoreError> {
        rows::insert_trial(&self.connection, run, trial, record).map_err(sqlite(&self.path))
    }

    /// Records the end of a run.
    pub(crate) fn finish(
        &mut self,
        run: RunId,
        status: RunStatus,
        error: Option<&str>,
        device_after: &serde_json::Value,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE run SET status = ?2, error = ?3, device_after = ?4 WHERE id = ?1";
        self.connection
            .execute(sql, params![run.0, rows::word(&status), error, device_after.to_string()])
            .map_err(sqlite(&self.path))?;
        Ok(())
    }
}

fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
    let path = path.to_owned();
    move |source| {
        let path = path.clone();
        match source.sqlite_error_code() {
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::NotWritable { path, source }
            }
            _ => StoreError::Sqlite { path, source },
        }
    }
}
