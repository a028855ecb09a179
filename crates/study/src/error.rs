//! Errors of a study, its target and its record.

use std::path::PathBuf;

use thiserror::Error;
use units::{Classified, ErrorKind};

use crate::run_id::RunId;

/// The reason why a study failed. Its tunables are already restored.
#[derive(Debug, Error)]
pub enum StudyError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The record cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan is empty or impossible.
    #[error("{0}")]
    Plan(String),
    /// The storage cannot be found or used.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The tunable cannot be read, set or restored, or another process is using the device.
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    /// Files cannot be created or read.
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    #[error(transparent)]
    Simulation(#[from] sim::SimError),
    /// The virtual disk cannot be created.
    #[error(transparent)]
    VirtualDisk(#[from] vdisk::VdiskError),
    /// Another process is measuring the run to resume.
    #[error(
        "run {run} is being measured{}: wait for it, or start another with --fresh",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    RunBusy { run: RunId, pid: Option<u32> },
    /// Simulation cannot show this behaviour of a real kernel.
    #[error(
        "{target} is simulated, but this needs a real kernel: give a path, a device or virtual:…"
    )]
    NeedsKernel { target: String },
    /// Interrupted before there was a run to resume.
    #[error("interrupted before the first trial")]
    Cancelled,
}

impl Classified for StudyError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Target(_) | Self::Plan(_) | Self::Simulation(_) | Self::NeedsKernel { .. } => {
                ErrorKind::Usage
            }
            Self::RunBusy { .. } => ErrorKind::Refused,
            Self::Store(error) => error.kind(),
            Self::Host(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
            Self::Bench(error) => error.kind(),
            Self::VirtualDisk(error) => error.kind(),
            Self::Cancelled => ErrorKind::Failed,
        }
    }
}

/// The reason why a text does not name a target.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// The text is empty.
    #[error("the target is empty: give a path, a device, virtual:MODEL or sim:MODEL")]
    Empty,
    /// The specification of the simulation is invalid.
    #[error("{target:?} cannot be simulated: {reason}")]
    Simulation { target: String, reason: String },
    /// The specification of the virtual disk is invalid.
    #[error("{target:?} is not a virtual disk: {reason}")]
    Virtual { target: String, reason: String },
    /// The path does not exist, and the text resembles another kind of target.
    #[error("there is no file, directory or device {text:?}: did you mean {meant}?")]
    Mistyped { text: String, meant: String },
}

impl units::Classified for TargetError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

/// The reason why the record cannot be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{path}: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("{path}: {source}; name a file that can be written with --store")]
    NotWritable { path: PathBuf, source: rusqlite::Error },
    #[error("cannot create {path}: {source}; name a file that can be written with --store")]
    NoDirectory { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// The file is not a record.
    #[error(
        "{path} is not a record of foreread: {what}; it was not changed, name another file with \
         --store"
    )]
    Foreign { path: PathBuf, what: String },
    #[error(
        "{path} was written by a later version of foreread (schema {found}, this version reads up \
             to {known})"
    )]
    TooNew { path: PathBuf, found: i64, known: i64 },
    #[error("{path} has no run {run}: `foreread runs` lists them")]
    NoRun { path: PathBuf, run: RunId },
    /// Another process is measuring the run.
    #[error("run {run} is being measured{}: wait for it or stop it",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        run: RunId,
        /// The process; `None` if unknown.
        pid: Option<u32>,
    },
    /// The content of the file was not written by this program.
    #[error("{path}: run {run}: {what}")]
    Corrupt { path: PathBuf, run: RunId, what: String },
}

impl units::Classified for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoRun { .. } => ErrorKind::Usage,
            Self::TooNew { .. } => ErrorKind::Unsupported,
            Self::NotWritable { .. } => ErrorKind::NotPermitted,
            Self::InUse { .. } | Self::Foreign { .. } => ErrorKind::Refused,
            Self::Io { source, .. } | Self::NoDirectory { source, .. } => {
                ErrorKind::from_named_file(source)
            }
            Self::Sqlite { .. } | Self::Corrupt { .. } => ErrorKind::Failed,
        }
    }
}
