//! What may go wrong with the record.

use std::path::PathBuf;

use thiserror::Error;

use super::RunId;

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
    /// The file is not a record.
    #[error(
        "{path} is not a record of foreread: {what}; it is left as it is, name another file with \
         --store"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
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
    /// A process is at work on the run.
    #[error("run {run} is being measured{}: wait for it or end it",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        /// The run.
        run: RunId,
        /// The process, if it could be told.
        pid: Option<u32>,
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
