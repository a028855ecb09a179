//! Errors of measurements with PostgreSQL.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use units::{Classified, ErrorKind};

/// An error that prevented a measurement of PostgreSQL. All changes have been restored by then.
#[derive(Debug, Error)]
pub enum PgError {
    #[error("{program} was not found: install the package {package}")]
    NotInstalled {
        program: &'static str,
        /// The Debian and Ubuntu package that contains it.
        package: &'static str,
    },
    /// PostgreSQL refuses to run as root, and no other user is available.
    #[error(
        "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody"
    )]
    NoUser,
    /// The server's user cannot access the directory.
    #[error(
        "the user {user} cannot access {path}: allow it to enter the directories above it (chmod \
         o+x)", path = path.display()
    )]
    Unreachable { user: String, path: PathBuf },
    /// A directory with foreread's name that foreread did not create.
    #[error("{path} was not created by foreread, so it is not used", path = path.display())]
    Foreign { path: PathBuf },
    /// Another process runs a server there.
    #[error(
        "{path} is in use by another foreread process: wait until it exits",
        path = path.display()
    )]
    Busy { path: PathBuf },
    /// A system call on a path failed.
    #[error("cannot {action} {path}", path = path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{program} failed ({status}): {message}")]
    Failed {
        program: String,
        status: String,
        /// The end of the program's output.
        message: String,
    },
    /// A program did not finish in time.
    #[error("{program} did not finish within {limit:?} and was stopped")]
    Hangs { program: String, limit: Duration },
    /// A program printed something unexpected.
    #[error("unexpected output of {program}: {text:?}")]
    Garbage { program: String, text: String },
    /// The server's version does not support the setting.
    #[error("{setting} needs PostgreSQL {needed}; this is {found}")]
    TooOld { setting: String, needed: u32, found: String },
    /// The plan is invalid.
    #[error("{0}")]
    Usage(String),
    /// This machine lacks something, or this user lacks a permission, that the plan needs.
    #[error("{0}")]
    NotPossible(String),
    #[error(transparent)]
    Study(#[from] study::StudyError),
    #[error(transparent)]
    Host(#[from] host::HostError),
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    #[error("interrupted")]
    Cancelled,
}

impl Classified for PgError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotInstalled { .. }
            | Self::NoUser
            | Self::Unreachable { .. }
            | Self::TooOld { .. } => ErrorKind::Unsupported,
            Self::Foreign { .. } | Self::Busy { .. } => ErrorKind::Refused,
            Self::Usage(_) => ErrorKind::Usage,
            Self::NotPossible(_) => ErrorKind::Unsupported,
            Self::Study(error) => error.kind(),
            Self::Host(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
            Self::Bench(error) => error.kind(),
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Failed { .. } | Self::Hangs { .. } | Self::Garbage { .. } | Self::Cancelled => {
                ErrorKind::Failed
            }
        }
    }
}

impl PgError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
