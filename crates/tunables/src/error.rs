//! What may go wrong with a tunable.

use std::io;
use std::path::PathBuf;

use host::{BdiId, HostError};
use thiserror::Error;
use units::{Bytes, Classified, ErrorKind, ParseUnitError};

use crate::Value;

/// Why a setting could not be understood, made or undone.
#[derive(Debug, Error)]
pub enum TunableError {
    #[error("there is no tunable {name:?}{hint}")]
    Unknown {
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A text that is no `NAME=VALUE[,VALUE…]`.
    #[error("{text:?} is no setting: {problem}")]
    Syntax {
        text: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A value that is no amount, or has no unit.
    #[error("{tunable}: {source}")]
    Amount { tunable: &'static str, source: ParseUnitError },
    /// Less than a page, which the kernel would silently take for none at all.
    #[error(
        "{tunable}={value} is less than a memory page ({page}), and the kernel would make it 0: \
         use {page} or more, or 0 to turn it off"
    )]
    BelowPage {
        tunable: &'static str,
        value: Bytes,
        /// The size of a page here.
        page: Bytes,
    },
    #[error("{tunable}={value} is too much: the most that foreread sets is {most}")]
    TooLarge { tunable: &'static str, value: Bytes, most: Bytes },
    #[error("{tunable} cannot be {value}: it is between {least} and {most}")]
    OutOfRange { tunable: &'static str, value: Value, least: Value, most: Value },
    /// More memory than may be spent on it.
    #[error(
        "{tunable}={value} would take {needs} of memory, more than a quarter of the {available} \
         that is available: choose less", needs = needs.rounded(), available = available.rounded()
    )]
    Memory { tunable: &'static str, value: Value, needs: Bytes, available: Bytes },
    #[error(
        "{tunable} is a tunable of {system}: it can be checked and emitted here (persist --emit \
         freebsd), not set"
    )]
    OtherSystem { tunable: &'static str, system: &'static str },
    /// A value of another sort than the tunable takes.
    #[error("{tunable} cannot be {value}")]
    WrongSort { tunable: &'static str, value: Value },
    /// This storage does not have the tunable.
    #[error("{tunable} cannot be set on bdi {bdi}: {why}")]
    Absent {
        tunable: &'static str,
        bdi: BdiId,
        /// What is missing: the file looked for, or the kind of storage that has it.
        why: String,
    },
    /// Not allowed to write it.
    #[error("may not write {path}: {need}", path = path.display())]
    NotPermitted {
        path: PathBuf,
        /// Which right is missing, and how to have it.
        need: &'static str,
        source: io::Error,
    },
    /// The kernel does not take this value here.
    #[error("the kernel does not take {value} as {tunable} in {path}{hint}", path = path.display())]
    Rejected {
        tunable: &'static str,
        value: Value,
        path: PathBuf,
        /// What it would take, where it says so.
        hint: String,
    },
    #[error("cannot set {tunable} to {value} in {path}", path = path.display())]
    Write { tunable: &'static str, value: Value, path: PathBuf, source: io::Error },
    /// The kernel took the value and has another now.
    #[error("{path} was set to {wanted} but reads back as {found}", path = path.display())]
    DidNotStick { path: PathBuf, wanted: Value, found: Value },
    /// Somebody else changed the value while foreread was at work; it is left as they have it.
    #[error(
        "{tunable} of bdi {bdi} was changed to {found} by somebody else (foreread had set \
         {expected}): it is left so"
    )]
    ChangedByOther {
        tunable: &'static str,
        bdi: BdiId,
        /// What foreread had set or found at the start.
        expected: Value,
        found: Value,
    },
    /// Another foreread works on the bdi.
    #[error("another foreread{} is at work on {}: wait for it or end it",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), place(bdi))]
    Busy { bdi: BdiId, pid: Option<u32> },
    /// The guard process could not be started, or has gone.
    #[error("the guard process ({program}) {problem}; nothing is changed without it",
        program = program.display())]
    Guard { program: PathBuf, problem: String },
    /// The run whose settings were to be undone still runs.
    #[error("process {pid}, which owns {journal}, is still at work: it restores when it ends",
        journal = journal.display())]
    OwnerAlive { journal: PathBuf, pid: u32 },
    /// Nothing tells the device of a journal from another that looks like it.
    #[error(
        "bdi {bdi}: more than one disk here may be the one that {journal} is about, as the machine \
         was booted since and they have neither serial number nor WWN nor UUID: nothing is undone; \
         where it belongs set {tunable} to {original} by hand, then remove the journal",
        journal = journal.display()
    )]
    Ambiguous { bdi: BdiId, journal: PathBuf, tunable: &'static str, original: Value },
    /// There is nothing of this name to undo.
    #[error("there is no journal {name:?}: what it had changed has been put back, or it never was")]
    NoSuchJournal { name: String },
    /// A directory or lock of foreread's own cannot be used.
    #[error("cannot use {path}{hint}", path = path.display())]
    Own { path: PathBuf, hint: &'static str, source: io::Error },
    /// The journal cannot be read, written or believed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The machine could not be looked at.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Classified for TunableError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. }
            | Self::Syntax { .. }
            | Self::Amount { .. }
            | Self::BelowPage { .. }
            | Self::TooLarge { .. }
            | Self::WrongSort { .. }
            | Self::OutOfRange { .. }
            | Self::Rejected { .. }
            | Self::NoSuchJournal { .. } => ErrorKind::Usage,
            Self::NotPermitted { .. } => ErrorKind::NotPermitted,
            Self::Absent { .. } | Self::OtherSystem { .. } => ErrorKind::Unsupported,
            Self::ChangedByOther { .. } | Self::DidNotStick { .. } => ErrorKind::Drift,
            Self::Busy { .. }
            | Self::OwnerAlive { .. }
            | Self::Ambiguous { .. }
            | Self::Memory { .. } => ErrorKind::Refused,
            Self::Host(error) => error.kind(),
            Self::Own { source, .. } | Self::Write { source, .. } => ErrorKind::from_io(source),
            Self::Journal(error) => error.kind(),
            Self::Guard { .. } => ErrorKind::Failed,
        }
    }
}

/// What a lock is of, in words.
fn place(bdi: &BdiId) -> String {
    match bdi.as_str() {
        "machine" => "settings of the whole machine".to_owned(),
        bdi => format!("bdi {bdi}"),
    }
}

/// Why a journal cannot be read, written or believed.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A line that foreread would not have written: nothing is undone by such a journal.
    #[error(
        "journal {path}, line {line}: {problem}; nothing is undone by it (remove it once the \
         settings are as they should be)",
        path = path.display()
    )]
    Refused {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        problem: String,
    },
    /// The file is not one of foreread's own.
    #[error("journal {path} {problem}; nothing is undone by it", path = path.display())]
    NotOurs { path: PathBuf, problem: &'static str },
    /// The apply that wrote it died before it was done, or the end of the file is lost.
    #[error(
        "journal {path} has no end: the apply that wrote it died, or the file was cut; \
         `foreread rollback` undoes what it says", path = path.display()
    )]
    Unfinished { path: PathBuf },
    /// The file cannot be read or written.
    #[error("cannot {doing} journal {path}", path = path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl units::Classified for JournalError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Refused { .. } | Self::NotOurs { .. } | Self::Unfinished { .. } => {
                ErrorKind::Failed
            }
        }
    }
}
