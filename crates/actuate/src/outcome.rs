//! What comes of an act.

use std::fmt;
use std::io;

use observe::ObserveError;
use rustix::io::Errno;
use serde::Serialize;
use thiserror::Error;
use tunables::TunableError;
use units::{Bytes, Classified, ErrorKind};

use crate::rule::AccessRule;

/// What stops all acting, as against one open file that could not be reached ([`ActuateFailure`]).
#[derive(Debug, Error)]
pub enum ActuateError {
    /// Open files cannot be seen, so that none can be told from another.
    #[error("cannot act on open files")]
    Observe(#[from] ObserveError),
    /// The bdi could not be set or put back.
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

/// What came of acting on one open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionOutcome {
    /// It was done, and read back.
    Done { before: Bytes, after: Bytes },
    /// Nothing had to be done.
    AsWanted { window: Bytes },
    /// The kernel took the advice and has another window now: somebody else was at it.
    DidNotStick {
        /// The window that it should have.
        wanted: Bytes,
        found: Bytes,
    },
    /// It was not reached.
    #[serde(rename = "missed")]
    Failed(ActuateFailure),
}

impl ActionOutcome {
    /// Whether the open file is now as it was to be.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::AsWanted { .. })
    }
}

/// One line for people: `window 128 KiB → 1088 KiB`.
impl fmt::Display for ActionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { before, after } if before == after => write!(f, "window stays {after}"),
            Self::Done { before, after } => write!(f, "window {before} → {after}"),
            Self::AsWanted { window } => write!(f, "window is {window} already"),
            Self::DidNotStick { wanted, found } => {
                write!(f, "window was set to {wanted} but reads back as {found}")
            }
            Self::Failed(missed) => missed.fmt(f),
        }
    }
}

/// Why an open file was not reached.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActuateFailure {
    /// It was closed, or its processes have ended, since it was listed.
    #[error("closed meanwhile")]
    Gone,
    /// A rule of the deny list keeps foreread from it.
    #[error("left alone, as {0} is denied")]
    Denied(AccessRule),
    /// No rule of the allow list lets foreread at it.
    #[error("left alone, as no rule allows it")]
    NotAllowed,
    /// Its file system is served by a process or over a network, which may keep whoever touches it
    /// waiting for ever.
    #[error("left alone, as it is on {fstype}: allow its mount by name to reach it")]
    Remote {
        /// The type of its file system.
        fstype: String,
    },
    #[error("not permitted to reach the files of process {pid}: it takes CAP_SYS_PTRACE")]
    NotPermitted { pid: u32 },
    /// The kernel cannot, or will not.
    #[error("{doing} failed: {reason}")]
    Kernel { doing: &'static str, reason: String },
}

impl ActuateFailure {
    /// What an error of the kernel means.
    pub(crate) fn of(doing: &'static str, pid: u32, errno: Errno) -> Self {
        match errno {
            Errno::SRCH | Errno::BADF | Errno::NOENT => Self::Gone,
            Errno::PERM | Errno::ACCESS => Self::NotPermitted { pid },
            errno => Self::Kernel { doing, reason: io::Error::from(errno).to_string() },
        }
    }
}
