//! Errors of experiments.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::{Bytes, Classified, ErrorKind};

/// The reason why an experiment has no result. All changes have been restored by then.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The plan is invalid, or not possible on this target.
    #[error("{0}")]
    Usage(String),
    /// This machine or user lacks a requirement.
    #[error("{0}")]
    NotPossible(String),
    #[error("{path} is {size}: this needs at least {needed}", path = path.display())]
    TooSmall { path: PathBuf, size: Bytes, needed: Bytes },
    /// A system call on a path failed.
    #[error("cannot {action} {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The path does not support direct reads, or not in blocks of this size.
    #[error(
        "{path} cannot be read directly (O_DIRECT): its filesystem does not support it, or not \
         with blocks of {block}", path = path.display()
    )]
    NotDirect { path: PathBuf, block: Bytes, source: io::Error },
    #[error(transparent)]
    Study(#[from] study::StudyError),
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// A tunable cannot be read, set or restored.
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    #[error(transparent)]
    VirtualDisk(#[from] vdisk::VdiskError),
    #[error("interrupted")]
    Cancelled,
}

impl Classified for ExperimentError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_) | Self::TooSmall { .. } => ErrorKind::Usage,
            Self::NotPossible(_) | Self::NotDirect { .. } => ErrorKind::Unsupported,
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Study(error) => error.kind(),
            Self::Host(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
            Self::Bench(error) => error.kind(),
            Self::VirtualDisk(error) => error.kind(),
            Self::Cancelled => ErrorKind::Failed,
        }
    }
}

impl ExperimentError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
