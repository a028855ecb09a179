//! Errors of planning and running a batch.

use std::io;
use std::path::PathBuf;

use parquet::errors::ParquetError;
use sim::SimError;
use sys::input::InputError;
use thiserror::Error;
use trace::TraceFileError;
use units::text::SettingError;
use units::{Classified, ErrorKind};

#[derive(Debug, Error)]
pub enum BatchError {
    #[error(transparent)]
    Trace(#[from] TraceFileError),
    #[error(transparent)]
    Simulation(#[from] SimError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{path}: {source}", path = .path.display())]
    ModelFile { path: PathBuf, source: model::SpecError },
    #[error("invalid plan: {0}")]
    Plan(String),
    #[error("{path}: invalid manifest: {problem}", path = .path.display())]
    Manifest { path: PathBuf, problem: String },
    /// The trace's content is not that of the plan.
    #[error(
        "{trace} has changed since the plan was made: its digest is {found}, not {planned}; make \
         the plan again"
    )]
    TraceChanged { trace: String, planned: String, found: String },
    #[error(
        "the plan was made by version {planned} of the simulator, and this is {own}; run it with \
         that version, or make the plan again"
    )]
    OtherVersion { planned: String, own: &'static str },
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{path}: not a file of results, or damaged: {source}; remove it, and its cells are \
         simulated again",
        path = .path.display()
    )]
    Part { path: PathBuf, source: ParquetError },
}

impl From<SettingError> for BatchError {
    fn from(error: SettingError) -> Self {
        SimError::from(error).into()
    }
}

impl Classified for BatchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Trace(error) => error.kind(),
            Self::Input(error) => error.kind(),
            Self::Write { source, .. } | Self::Read { source, .. } => ErrorKind::from_io(source),
            Self::Part { .. } => ErrorKind::Failed,
            Self::Simulation(_)
            | Self::ModelFile { .. }
            | Self::Plan(_)
            | Self::Manifest { .. }
            | Self::TraceChanged { .. }
            | Self::OtherVersion { .. } => ErrorKind::Usage,
        }
    }
}
