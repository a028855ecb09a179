//! The record: one SQLite file with every run and every trial in it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::Kib;

use crate::plan::Plan;
use crate::trial::Trial;

/// The number of a run in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which verb made a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// The whole grid.
    Sweep,
    /// What it chose itself.
    Tune,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Being measured, or killed while it was.
    Running,
    /// Stopped on request; the same command goes on with it.
    Interrupted,
    /// All measured.
    Complete,
    /// Ended by an error.
    Failed,
}

/// A line of `foreread runs`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its number.
    pub id: RunId,
    /// When it began, in seconds since 1970.
    pub created_unix_s: f64,
    /// Which verb made it.
    pub command: Command,
    /// What was measured, as the command line had it.
    pub target: String,
    /// How far it is; a run whose process died shows as interrupted.
    pub status: RunStatus,
    /// The error that ended it.
    pub error: Option<String>,
    /// Trials finished, spoiled ones included.
    pub trials: u32,
    /// Version of foreread that began it.
    pub version: String,
}

/// A run with all its trials.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its line in the list.
    pub summary: RunSummary,
    /// What was intended.
    pub plan: Plan,
    /// Its seed, chosen or drawn.
    pub seed: u64,
    /// The settings that were to be tried, ascending.
    pub grid: Vec<Kib>,
    /// What the device had.
    pub found: Option<Kib>,
    /// How many times slower than its model the virtual disk ran; 1 for real storage.
    pub dilation: f64,
    /// The machine, as it described itself.
    pub machine: serde_json::Value,
    /// The storage and all its tunables before.
    pub device_before: serde_json::Value,
    /// The same after; null if the run died.
    pub device_after: serde_json::Value,
    /// Every trial in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// Why the record cannot be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// SQLite says no.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The directory cannot be made.
    #[error("{path}: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Made by a later foreread.
    #[error("{path} was written by a later foreread (schema {found}, this one knows {known})")]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The latest one known here.
        known: i64,
    },
    /// No such run.
    #[error("{path} has no run {run}: `foreread runs` lists them")]
    NoRun {
        /// The file.
        path: PathBuf,
        /// The run asked for.
        run: RunId,
    },
    /// What is in the file is not what this program wrote.
    #[error("{path}: run {run}: {what}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The run.
        run: RunId,
        /// What is wrong.
        what: String,
    },
}

/// The record: one SQLite file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Opens the record in this file, making it and its directory where there is none.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let _ = path;
        todo!("open")
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All runs, latest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        todo!("runs")
    }

    /// One run with all its trials.
    pub fn load(&self, run: RunId) -> Result<Run, StoreError> {
        let _ = run;
        todo!("load")
    }
}
