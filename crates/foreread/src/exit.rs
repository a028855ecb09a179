//! Exit codes, and which error gets which. docs/exit-codes.md tells users.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use actuate::ActuateError;
use bench::BenchError;
use experiment::ExperimentError;
use host::HostError;
use observe::ObserveError;
use postgres::PostgresError;
use rustix::io::Errno;
use study::{StoreError, StudyError, TargetError};
use sys::input::InputError;
use trace::TraceFileError;
use tunables::persist::PersistError;
use tunables::{JournalError, TunableError};
use vdisk::VdiskError;

use crate::output::{StdoutClosed, TerminalGone};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Fine,
    /// The operation failed.
    Failed,
    /// The command line makes no sense.
    Usage,
    /// A setting is not what it should be.
    Drift,
    /// Doing it could do harm, so it was not done.
    Refused,
    /// The measurements decide nothing.
    Inconclusive,
    /// This user or this machine cannot.
    NotPossible,
    /// As a command that was run ended.
    Command(u8),
    /// Ended by this signal, after everything was put back.
    Signal(i32),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error of the command line that clap could not see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// A command that was to be run does not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {program}")]
pub struct NotStarted {
    /// Its first word.
    pub program: String,
    /// The system's reason.
    pub source: io::Error,
}

impl Exit {
    /// As a command exited, as the shell says it: 128 and the signal if one ended it.
    pub fn of_command(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Command(u8::try_from(code).unwrap_or(1)),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Failed,
        }
    }

    /// As the shell says it: 127 if there is no such program, 126 if it cannot be run.
    fn not_started(problem: io::ErrorKind) -> Self {
        Self::Command(if problem == io::ErrorKind::NotFound { 127 } else { 126 })
    }

    /// The number that the shell sees.
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

    /// What an error means: the first error of the chain that has a meaning of its own decides.
    pub fn of(error: &anyhow::Error) -> Self {
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Failed)
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(error) = cause.downcast_ref() {
            return of_study(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_tunable(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_journal(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_persist(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_vdisk(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_host(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_bench(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_store(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_trace(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_observe(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_actuate(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_experiment(error);
        }
        if let Some(error) = cause.downcast_ref() {
            return of_input(error);
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            return of_io(error);
        }
        if cause.is::<StdoutClosed>() {
            return Some(Self::Fine);
        }
        if cause.is::<TerminalGone>() {
            return Some(Self::Signal(signal_hook::consts::SIGHUP));
        }
        if let Some(NotStarted { source, .. }) = cause.downcast_ref() {
            return Some(Self::not_started(source.kind()));
        }
        let usage = cause.is::<Usage>()
            || cause.is::<study::ImportError>()
            || cause.is::<TargetError>()
            || cause.is::<sim::SimError>()
            || cause.is::<model::SpecError>()
            || cause.is::<model::score::ScoreError>()
            || cause.is::<reproduce::ReproduceError>()
            || cause.is::<workload::WorkloadError>()
            || cause.is::<units::ParseUnitError>();
        usage.then_some(Self::Usage)
    }
}

fn of_study(error: &StudyError) -> Option<Exit> {
    match error {
        StudyError::Target(_) | StudyError::Plan(_) | StudyError::Simulation(_) => {
            Some(Exit::Usage)
        }
        StudyError::RunBusy { .. } => Some(Exit::Refused),
        StudyError::Store(error) => of_store(error),
        StudyError::Host(error) => of_host(error),
        StudyError::Tunable(error) => of_tunable(error),
        StudyError::Bench(error) => of_bench(error),
        StudyError::VirtualDisk(error) => of_vdisk(error),
        StudyError::Cancelled => Some(Exit::Failed),
    }
}

fn of_experiment(error: &ExperimentError) -> Option<Exit> {
    match error {
        ExperimentError::Usage(_)
        | ExperimentError::Simulated { .. }
        | ExperimentError::TooSmall { .. } => Some(Exit::Usage),
        ExperimentError::NotPossible(_) | ExperimentError::NotDirect { .. } => {
            Some(Exit::NotPossible)
        }
        ExperimentError::Io { source, .. } => of_io(source),
        ExperimentError::Study(error) => of_study(error),
        ExperimentError::Host(error) => of_host(error),
        ExperimentError::Tunable(error) => of_tunable(error),
        ExperimentError::Bench(error) => of_bench(error),
        ExperimentError::VirtualDisk(error) => of_vdisk(error),
        ExperimentError::Postgres(error) => of_postgres(error),
        ExperimentError::Cancelled => Some(Exit::Failed),
    }
}

fn of_postgres(error: &PostgresError) -> Option<Exit> {
    match error {
        PostgresError::NotInstalled { .. }
        | PostgresError::NoUser
        | PostgresError::Unreachable { .. }
        | PostgresError::TooOld { .. } => Some(Exit::NotPossible),
        PostgresError::Foreign { .. } | PostgresError::Busy { .. } => Some(Exit::Refused),
        PostgresError::Io { source, .. } => of_io(source),
        PostgresError::Failed { .. }
        | PostgresError::Hangs { .. }
        | PostgresError::Garbage { .. }
        | PostgresError::Cancelled => Some(Exit::Failed),
    }
}

fn of_store(error: &StoreError) -> Option<Exit> {
    match error {
        StoreError::NoRun { .. } => Some(Exit::Usage),
        StoreError::TooNew { .. } => Some(Exit::NotPossible),
        StoreError::InUse { .. } | StoreError::Foreign { .. } => Some(Exit::Refused),
        StoreError::Io { source, .. } => of_named(source),
        StoreError::Sqlite { .. } | StoreError::Corrupt { .. } => Some(Exit::Failed),
    }
}

// The matches below name every error, so that a new one cannot be forgotten here.

fn of_tunable(error: &TunableError) -> Option<Exit> {
    match error {
        TunableError::Unknown { .. }
        | TunableError::Syntax { .. }
        | TunableError::Amount { .. }
        | TunableError::BelowPage { .. }
        | TunableError::TooLarge { .. }
        | TunableError::WrongSort { .. }
        | TunableError::OutOfRange { .. }
        | TunableError::Rejected { .. }
        | TunableError::NoSuchJournal { .. } => Some(Exit::Usage),
        TunableError::Absent { .. }
        | TunableError::NotPermitted { .. }
        | TunableError::OtherSystem { .. } => Some(Exit::NotPossible),
        TunableError::ChangedByOther { .. } | TunableError::DidNotStick { .. } => Some(Exit::Drift),
        TunableError::Busy { .. }
        | TunableError::OwnerAlive { .. }
        | TunableError::Ambiguous { .. }
        | TunableError::Memory { .. } => Some(Exit::Refused),
        TunableError::Host(error) => of_host(error),
        TunableError::Own { source, .. } | TunableError::Write { source, .. } => of_io(source),
        TunableError::Journal(error) => of_journal(error),
        TunableError::Guard { .. } => Some(Exit::Failed),
    }
}

fn of_journal(error: &JournalError) -> Option<Exit> {
    match error {
        JournalError::Io { source, .. } => of_io(source),
        JournalError::Refused { .. }
        | JournalError::NotOurs { .. }
        | JournalError::Unfinished { .. } => Some(Exit::Failed),
    }
}

fn of_actuate(error: &ActuateError) -> Option<Exit> {
    match error {
        ActuateError::Observe(error) => of_observe(error),
        ActuateError::Tunable(error) => of_tunable(error),
    }
}

fn of_observe(error: &ObserveError) -> Option<Exit> {
    match error {
        ObserveError::NotBuilt | ObserveError::NotPermitted { .. } | ObserveError::NoTypes => {
            Some(Exit::NotPossible)
        }
        ObserveError::Trial { source, .. } | ObserveError::Read { source, .. } => of_io(source),
        ObserveError::Untrue { .. } | ObserveError::Refused { .. } => Some(Exit::Failed),
    }
}

fn of_persist(error: &PersistError) -> Option<Exit> {
    match error {
        PersistError::Owned { .. } | PersistError::Edited { .. } | PersistError::Foreign { .. } => {
            Some(Exit::Refused)
        }
        PersistError::Unfit { .. } => Some(Exit::Usage),
        PersistError::NoIdentity { .. }
        | PersistError::NoTuned
        | PersistError::OtherSystem { .. } => Some(Exit::NotPossible),
        PersistError::Io { source, .. } => of_io(source),
        PersistError::Record { .. } | PersistError::Program { .. } => Some(Exit::Failed),
        PersistError::Tunable(error) => of_tunable(error),
    }
}

fn of_vdisk(error: &VdiskError) -> Option<Exit> {
    match error {
        VdiskError::Unavailable(_) => Some(Exit::NotPossible),
        VdiskError::Model(_)
        | VdiskError::ModelFile { .. }
        | VdiskError::BadValue { .. }
        | VdiskError::BadSize { .. }
        | VdiskError::BadName { .. }
        | VdiskError::NameTaken { .. }
        | VdiskError::NoSuchDisk { .. } => Some(Exit::Usage),
        VdiskError::Busy { .. } | VdiskError::Held { .. } | VdiskError::Memory { .. } => {
            Some(Exit::Refused)
        }
        VdiskError::Io { source, .. } | VdiskError::System { source, .. } => of_io(source),
        VdiskError::ModelUnread(error) => of_input(error),
        VdiskError::Dead { .. }
        | VdiskError::Server { .. }
        | VdiskError::Control { .. }
        | VdiskError::Program { .. } => Some(Exit::Failed),
    }
}

fn of_host(error: &HostError) -> Option<Exit> {
    match error {
        HostError::NotFound { .. }
        | HostError::NotStorage { .. }
        | HostError::Unresolvable { .. } => Some(Exit::Usage),
        HostError::NoBackingDevice { .. } | HostError::NoBdi { .. } => Some(Exit::NotPossible),
        HostError::Read { source, .. } => of_io(source),
        HostError::Malformed { .. } | HostError::DeviceGone { .. } => Some(Exit::Failed),
    }
}

fn of_bench(error: &BenchError) -> Option<Exit> {
    match error {
        BenchError::Workload(_)
        | BenchError::BadOption { .. }
        | BenchError::NotReadable { .. }
        | BenchError::Empty { .. }
        | BenchError::Holes { .. }
        | BenchError::TooSmall { .. }
        | BenchError::Jobs(_)
        | BenchError::OutOfMemory { .. }
        | BenchError::OnlyRead { .. }
        | BenchError::NotLaidOut { .. } => Some(Exit::Usage),
        BenchError::ReadOnly { .. }
        | BenchError::ToolMissing { .. }
        | BenchError::NoMemoryLimit { .. } => Some(Exit::NotPossible),
        BenchError::Busy { .. } | BenchError::Foreign { .. } | BenchError::NoSpace { .. } => {
            Some(Exit::Refused)
        }
        BenchError::Host(error) => of_host(error),
        BenchError::Io { source, .. } | BenchError::Read { source, .. } => of_io(source),
        BenchError::Shrank { .. }
        | BenchError::DeviceGone { .. }
        | BenchError::Stuck { .. }
        | BenchError::Tool { .. }
        | BenchError::Cancelled => Some(Exit::Failed),
    }
}

fn of_trace(error: &TraceFileError) -> Option<Exit> {
    match error {
        TraceFileError::Io { source, .. } => of_named(source),
        TraceFileError::Input(error) => of_input(error),
        TraceFileError::Empty { .. }
        | TraceFileError::TooLarge { .. }
        | TraceFileError::UnknownFormat { .. }
        | TraceFileError::NoFormat(_)
        | TraceFileError::Workload(_)
        | TraceFileError::Words { .. } => Some(Exit::Usage),
        TraceFileError::NotStarted { problem, .. } => Some(Exit::not_started(*problem)),
        TraceFileError::NoMeans { .. } => Some(Exit::NotPossible),
        TraceFileError::Packed { .. }
        | TraceFileError::Broken { .. }
        | TraceFileError::Subject { .. } => Some(Exit::Failed),
    }
}

/// What the system refused for want of a right is not possible; the rest has failed.
fn of_io(error: &io::Error) -> Option<Exit> {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some(Exit::NotPossible)
        }
        _ => Some(Exit::Failed),
    }
}

/// An input that was named is no file, has no end or cannot be read.
fn of_input(error: &InputError) -> Option<Exit> {
    match error {
        InputError::Io { reason, .. } => of_named(reason),
        InputError::NoFile { .. }
        | InputError::TooLarge { .. }
        | InputError::NotText { .. }
        | InputError::StdinTaken { .. } => Some(Exit::Usage),
    }
}

/// A file that somebody named cannot be read: if it is not there, is no file, or its name leads
/// nowhere, the name is wrong.
fn of_named(error: &io::Error) -> Option<Exit> {
    let nowhere = [Errno::LOOP, Errno::NAMETOOLONG];
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidData => Some(Exit::Usage),
        _ if nowhere.iter().any(|one| error.raw_os_error() == Some(one.raw_os_error())) => {
            Some(Exit::Usage)
        }
        _ => of_io(error),
    }
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
        assert_eq!(Exit::of(&error), Exit::NotPossible);
        let error = anyhow::Error::new(TargetError::Empty).context("reading the target");
        assert_eq!(Exit::of(&error), Exit::Usage);
        assert_eq!(Exit::of(&anyhow::anyhow!("something")), Exit::Failed);
    }
}
