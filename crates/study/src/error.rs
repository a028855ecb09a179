//! What may go wrong with a study, its target and its record.

use std::path::PathBuf;

use thiserror::Error;
use units::{Classified, ErrorKind};

use crate::run_id::RunId;

/// Why a study ends early. The tunables are restored by then.
#[derive(Debug, Error)]
pub enum StudyError {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The record cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan asks for nothing, or for what cannot be.
    #[error("{0}")]
    Plan(String),
    /// The storage cannot be found or used.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The tunable cannot be read, set or restored, or somebody else is at work on the device.
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    /// Files cannot be laid out or read.
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    #[error(transparent)]
    Simulation(#[from] sim::SimError),
    /// The virtual disk cannot be made.
    #[error(transparent)]
    VirtualDisk(#[from] vdisk::VdiskError),
    /// A run is asked to go on that another process works on.
    #[error(
        "run {run} is being measured{}: wait for it, or begin another with --fresh",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    RunBusy { run: RunId, pid: Option<u32> },
    /// A simulation cannot show what a real kernel does.
    #[error("{target} is simulated: this asks a real kernel; give a path, a device or virtual:…")]
    NeedsKernel { target: String },
    /// Stopped on request before there was a run to go on with.
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

/// Why a word names no target.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TargetError {
    /// No word at all.
    #[error("the target is empty: give a path, a device, virtual:MODEL or sim:MODEL")]
    Empty,
    /// The words of the simulation are wrong.
    #[error("{target:?} cannot be simulated: {reason}")]
    Simulation { target: String, reason: String },
    /// The words of the virtual disk are wrong.
    #[error("{target:?} is no virtual disk: {reason}")]
    Virtual { target: String, reason: String },
    /// Nothing is there, and it looks like another kind of target.
    #[error("there is no file, directory or device {text:?}: did you mean {meant}?")]
    Mistyped { text: String, meant: String },
}

impl units::Classified for TargetError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

/// Why the record cannot be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("{path}: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// The file is not a record.
    #[error(
        "{path} is not a record of foreread: {what}; it is left as it is, name another file with \
         --store"
    )]
    Foreign { path: PathBuf, what: String },
    #[error("{path} was written by a later foreread (schema {found}, this one knows {known})")]
    TooNew { path: PathBuf, found: i64, known: i64 },
    #[error("{path} has no run {run}: `foreread runs` lists them")]
    NoRun { path: PathBuf, run: RunId },
    /// A process is at work on the run.
    #[error("run {run} is being measured{}: wait for it or end it",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        run: RunId,
        /// The process, if it could be told.
        pid: Option<u32>,
    },
    /// What is in the file is not what this program wrote.
    #[error("{path}: run {run}: {what}")]
    Corrupt { path: PathBuf, run: RunId, what: String },
}

impl units::Classified for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoRun { .. } => ErrorKind::Usage,
            Self::TooNew { .. } => ErrorKind::Unsupported,
            Self::InUse { .. } | Self::Foreign { .. } => ErrorKind::Refused,
            Self::Io { source, .. } => ErrorKind::from_named_file(source),
            Self::Sqlite { .. } | Self::Corrupt { .. } => ErrorKind::Failed,
        }
    }
}
