//! Why there is no answer.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use units::Bytes;

/// Why there is no answer. Whatever was changed has been put back by then.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// The experiment cannot be made as it was asked for.
    #[error("{0}")]
    Usage(String),
    /// It needs what this machine or this user has not.
    #[error("{0}")]
    NotPossible(String),
    /// Only a kernel can answer.
    #[error("{target} is simulated: this asks a real kernel; give a path, a device or virtual:…")]
    Simulated {
        /// The target.
        target: String,
    },
    /// Too little can be read.
    #[error("{path} has {size}: this needs {needed} at least", path = path.display())]
    TooSmall {
        /// What is to be read.
        path: PathBuf,
        /// Its size.
        size: Bytes,
        /// What it needs.
        needed: Bytes,
    },
    /// A system call on a path did not work.
    #[error("cannot {action} {path}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Reading around the page cache is refused.
    #[error(
        "{path} cannot be read directly (O_DIRECT): its filesystem does not do that, or not in \
         pieces of {block}", path = path.display()
    )]
    NotDirect {
        /// The file.
        path: PathBuf,
        /// The piece.
        block: Bytes,
        /// The system's reason.
        source: io::Error,
    },
    /// The study behind it failed.
    #[error(transparent)]
    Study(#[from] study::StudyError),
    /// The storage cannot be found or used.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// A tunable cannot be read, set or restored.
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    /// Files cannot be laid out or read.
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    /// The virtual disk cannot be made.
    #[error(transparent)]
    VirtualDisk(#[from] vdisk::VdiskError),
    /// The server of PostgreSQL does not do.
    #[error(transparent)]
    Postgres(#[from] ::postgres::PostgresError),
    /// Stopped on request.
    #[error("interrupted")]
    Cancelled,
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
