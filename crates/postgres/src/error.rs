//! Why a server does not do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a server does not do.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// A program is missing.
    #[error("{program} was not found: install the package {package}")]
    NotInstalled {
        /// The program.
        program: &'static str,
        /// The Debian and Ubuntu package that has it.
        package: &'static str,
    },
    /// Root cannot run a server, and there is no user that could.
    #[error(
        "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody"
    )]
    NoUser,
    /// The server's user cannot get to the directory.
    #[error(
        "the user {user} cannot get to {path}: allow it to pass the directories above it \
         (chmod o+x)", path = path.display()
    )]
    Unreachable {
        /// The user.
        user: String,
        /// The directory.
        path: PathBuf,
    },
    /// What stands in the place of our directory is not ours.
    #[error("{path} was not made by foreread, so it is left alone", path = path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
    },
    /// Another process has a server there.
    #[error("{path} is in use by another foreread: wait for it to end", path = path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
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
    /// A program failed.
    #[error("{program} failed ({status}): {message}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The last of what it said.
        message: String,
    },
    /// A program was not done in time.
    #[error("{program} was not done after {limit:?}, so it was ended")]
    Hangs {
        /// The program.
        program: String,
        /// The time it had.
        limit: Duration,
    },
    /// A program said what cannot be understood.
    #[error("{program} said what cannot be understood: {text:?}")]
    Garbage {
        /// The program.
        program: String,
        /// What it said.
        text: String,
    },
    /// The server's version does not have what is asked for.
    #[error("{setting} needs PostgreSQL {needed}; this is {found}")]
    TooOld {
        /// The setting.
        setting: String,
        /// The version that has it.
        needed: u32,
        /// The version that is there.
        found: String,
    },
    /// Stopped on request.
    #[error("interrupted")]
    Cancelled,
}

impl PostgresError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
