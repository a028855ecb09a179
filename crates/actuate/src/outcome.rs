//! Results and errors of actions on open files.

use std::fmt;
use std::io;

use observe::ObserveError;
use rustix::io::Errno;
use serde::Serialize;
use thiserror::Error;
use tunables::TunableError;
use units::{Bytes, Classified, ErrorKind};

use crate::rule::AccessRule;

/// An error that affects all open files. A failure on one file is an [`ActuateFailure`].
#[derive(Debug, Error)]
pub enum ActuateError {
    /// Open files cannot be listed, so none can be identified.
    #[error("cannot list open files")]
    Observe(#[from] ObserveError),
    /// The bdi could not be set or restored.
    #[error(transparent)]
    Tunable(#[from] TunableError),
}

impl Classified for ActuateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Observe(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
        }
    }
}

/// The result of an action on one open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    /// The action succeeded and was read back.
    Done { before: Bytes, after: Bytes },
    /// The file already had this window.
    AsWanted { window: Bytes },
    /// The kernel accepted the advice, but the file has another window: another process has changed
    /// it since.
    DidNotStick { wanted: Bytes, found: Bytes },
    /// The file could not be changed.
    #[serde(rename = "missed")]
    Failed(ActuateFailure),
}

impl ActionOutcome {
    /// Returns whether the open file now has the intended state.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::AsWanted { .. })
    }
}

/// Prints one line: `window 128 KiB → 1088 KiB`.
impl fmt::Display for ActionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { before, after } if before == after => {
                write!(f, "window {after} (unchanged)")
            }
            Self::Done { before, after } => write!(f, "window {before} → {after}"),
            Self::AsWanted { window } => write!(f, "window is already {window}"),
            Self::DidNotStick { wanted, found } => {
                write!(f, "window was set to {wanted} but reads back as {found}")
            }
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

/// Why an open file could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActuateFailure {
    /// The file was closed, or its processes have exited, since it was listed.
    #[error("already closed")]
    Gone,
    /// A rule of the deny list excludes it.
    #[error("left alone: denied by {0}")]
    Denied(AccessRule),
    /// No rule of the allow list includes it.
    #[error("left alone: no rule allows it")]
    NotAllowed,
    /// A process or a remote server provides its file system. A system call on it may block without
    /// a limit.
    #[error("left alone: it is on {fstype}; allow its mount (mount:PATH) to include it")]
    Remote { fstype: String },
    #[error("not permitted to access the files of process {pid}: CAP_SYS_PTRACE is required")]
    NotPermitted { pid: u32 },
    #[error(
        "not permitted to open the mapped files of process {pid}: CAP_CHECKPOINT_RESTORE or \
         CAP_SYS_ADMIN is required"
    )]
    MappingNotPermitted { pid: u32 },
    /// The process has mapped the file and closed its descriptor.
    #[error("its window cannot be changed: it is mapped and has no descriptor")]
    OnlyMapped,
    /// A system call failed.
    #[error("{doing} failed: {reason}")]
    Kernel { doing: &'static str, reason: String },
}

impl ActuateFailure {
    pub(crate) fn kernel(doing: &'static str, reason: impl fmt::Display) -> Self {
        Self::Kernel { doing, reason: reason.to_string() }
    }

    pub(crate) fn from_errno(doing: &'static str, pid: u32, errno: Errno) -> Self {
        match errno {
            Errno::SRCH | Errno::BADF | Errno::NOENT => Self::Gone,
            Errno::PERM | Errno::ACCESS => Self::NotPermitted { pid },
            errno => Self::kernel(doing, io::Error::from(errno)),
        }
    }
}
