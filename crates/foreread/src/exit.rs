//! Exit codes of errors. docs/exit-codes.md lists them for users.

use std::error::Error;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use units::{Classified, ErrorKind};

use crate::stdout_error::{StdoutClosed, TerminalGone};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Fine,
    Failed,
    Usage,
    /// A setting has drifted, or a rule is violated.
    Drift,
    /// Refused, because it could do harm.
    Refused,
    Inconclusive,
    /// Not permitted or not supported here.
    NotPossible,
    /// The exit code of the command that was run.
    Command(u8),
    /// Stopped by this signal, after settings were restored.
    Signal(i32),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A usage error that clap does not detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Creates a usage error with a message as for `format!`.
macro_rules! usage {
    ($($message:tt)*) => {
        anyhow::Error::from($crate::exit::Usage(format!($($message)*)))
    };
}

/// Returns a usage error with a message as for `format!`.
macro_rules! bail_usage {
    ($($message:tt)*) => {
        return Err($crate::exit::usage!($($message)*))
    };
}

pub(crate) use {bail_usage, usage};

#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}")]
pub struct NotStarted {
    /// First word of the command.
    pub program: String,
    pub source: io::Error,
}

impl Classified for Usage {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }
}

impl Classified for NotStarted {
    fn kind(&self) -> ErrorKind {
        ErrorKind::from_start(self.source.kind())
    }
}

impl Exit {
    /// Converts the exit status of a command as shells do: 128 + signal after a signal.
    pub fn of_command(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Command(u8::try_from(code).unwrap_or(1)),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Failed,
        }
    }

    /// Returns the code for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Drift => 3,
            Self::Refused => 4,
            Self::Inconclusive => 5,
            Self::NotPossible => 6,
            Self::Command(code) => code,
            Self::Signal(signal) => 128u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
        }
    }

    /// Returns the exit code of an error. The first cause in the chain with a kind decides.
    pub fn from_error(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Failed)
    }

    fn of_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        if cause.is::<StdoutClosed>() {
            return Some(Self::Fine);
        }
        if cause.is::<TerminalGone>() {
            return Some(Self::Signal(signal_hook::consts::SIGHUP));
        }
        if let Some(error) = cause.downcast_ref() {
            return Some(ErrorKind::from_io(error).into());
        }
        KINDS.iter().find_map(|kind_of| kind_of(cause)).map(Self::from)
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Failed => Self::Failed,
            ErrorKind::Usage => Self::Usage,
            ErrorKind::Drift => Self::Drift,
            ErrorKind::Refused => Self::Refused,
            ErrorKind::NotPermitted | ErrorKind::Unsupported => Self::NotPossible,
            // The codes that shells use.
            ErrorKind::CommandNotFound => Self::Command(127),
            ErrorKind::CommandNotExecutable => Self::Command(126),
        }
    }
}

/// Error types that have a kind. A cause in a chain is `dyn Error`, so the trait is reached only by
/// downcasting.
const KINDS: &[fn(&(dyn Error + 'static)) -> Option<ErrorKind>] = &[
    kind_of::<Usage>,
    kind_of::<NotStarted>,
    kind_of::<study::StudyError>,
    kind_of::<study::StoreError>,
    kind_of::<study::ImportError>,
    kind_of::<study::TargetError>,
    kind_of::<tunables::TunableError>,
    kind_of::<tunables::JournalError>,
    kind_of::<tunables::persist::PersistError>,
    kind_of::<vdisk::VdiskError>,
    kind_of::<host::HostError>,
    kind_of::<batch::BatchError>,
    kind_of::<bench::BenchError>,
    kind_of::<trace::TraceFileError>,
    kind_of::<observe::ObserveError>,
    kind_of::<actuate::ActuateError>,
    kind_of::<daemon::DaemonError>,
    kind_of::<daemon::PrimedFilesError>,
    kind_of::<profile::ProfileError>,
    kind_of::<experiment::ExperimentError>,
    kind_of::<pg::PgError>,
    kind_of::<fleet::FleetError>,
    kind_of::<sys::input::InputError>,
    kind_of::<sim::SimError>,
    kind_of::<model::SpecError>,
    kind_of::<model::score::ScoreError>,
    kind_of::<reproduce::ReproduceError>,
    kind_of::<workload::WorkloadError>,
    kind_of::<units::ParseUnitError>,
];

fn kind_of<E: Classified + 'static>(cause: &(dyn Error + 'static)) -> Option<ErrorKind> {
    cause.downcast_ref::<E>().map(|error| error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_documentation() {
        let documented = include_str!("../../../docs/exit-codes.md");
        for exit in [
            Exit::Fine,
            Exit::Failed,
            Exit::Usage,
            Exit::Drift,
            Exit::Refused,
            Exit::Inconclusive,
            Exit::NotPossible,
            Exit::Command(126),
            Exit::Command(127),
            Exit::Signal(1),
            Exit::Signal(2),
            Exit::Signal(15),
        ] {
            let row = format!("| {} |", exit.code());
            assert!(documented.contains(&row), "{row} is not in docs/exit-codes.md");
        }
    }

    #[test]
    fn the_first_cause_with_a_meaning_decides() {
        let missing_right = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = anyhow::Error::new(missing_right).context("creating the store");
        assert_eq!(Exit::from_error(&error), Exit::NotPossible);
        let error = anyhow::Error::new(study::TargetError::Empty).context("reading the target");
        assert_eq!(Exit::from_error(&error), Exit::Usage);
        assert_eq!(Exit::from_error(&anyhow::anyhow!("something")), Exit::Failed);
    }

    #[test]
    fn what_is_missing_for_a_profile_is_an_error_with_a_kind() {
        let error = profile::ProfileError::Observe(observe::ObserveError::NoTypes);
        assert_eq!(Exit::from_error(&error.into()), Exit::NotPossible);
    }

    #[test]
    fn a_record_where_nothing_can_be_written_is_no_failure() {
        let error = study::Store::open(std::path::Path::new("/proc/runs.sqlite")).unwrap_err();
        assert!(error.to_string().contains("--store"), "{error}");
        assert_eq!(Exit::from_error(&error.into()), Exit::NotPossible);
    }
}
