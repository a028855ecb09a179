//! Errors about tunables.

use std::io;
use std::path::PathBuf;

use host::{BdiId, HostError};
use thiserror::Error;
use units::{Bytes, Classified, ErrorKind, ParseUnitError};

use crate::Value;

/// Why a setting could not be parsed, applied or undone.
#[derive(Debug, Error)]
pub enum TunableError {
    #[error("there is no tunable {name:?}{hint}")]
    Unknown {
        name: String,
        /// A suggestion: the most similar name, or all names.
        hint: String,
    },
    /// A text that is not `NAME=VALUE[,VALUE…]`.
    #[error("{text:?} is not a setting: {problem}")]
    Syntax {
        text: String,
        /// The problem, and a valid form.
        problem: String,
    },
    /// The value is not an amount or has no unit.
    #[error("{tunable}: {source}")]
    Amount { tunable: &'static str, source: ParseUnitError },
    /// The value is less than a page, so the kernel would silently round it to zero.
    #[error(
        "{tunable}={value} is less than a memory page ({page}), which the kernel rounds to 0: use \
         {page} or more, or 0 to turn it off"
    )]
    BelowPage {
        tunable: &'static str,
        value: Bytes,
        /// The page size of this machine.
        page: Bytes,
    },
    #[error("{tunable}={value} is too large: the maximum is {most}")]
    TooLarge { tunable: &'static str, value: Bytes, most: Bytes },
    #[error("{tunable} cannot be {value}: must be between {least} and {most}")]
    OutOfRange { tunable: &'static str, value: Value, least: Value, most: Value },
    /// The setting would use too much memory.
    #[error(
        "{tunable}={value} would use {needs} of memory, more than a quarter of the available \
         {available}: use a smaller value",
        needs = needs.rounded(),
        available = available.rounded()
    )]
    Memory { tunable: &'static str, value: Value, needs: Bytes, available: Bytes },
    #[error(
        "{tunable} is a tunable of {system}: it can be checked and emitted here (persist --emit \
         freebsd), not set"
    )]
    OtherSystem { tunable: &'static str, system: &'static str },
    /// The value has the wrong type for the tunable.
    #[error("{tunable} cannot be {value}")]
    WrongSort { tunable: &'static str, value: Value },
    /// The storage does not have the tunable.
    #[error("{tunable} cannot be set on bdi {bdi}: {why}")]
    Absent {
        tunable: &'static str,
        bdi: BdiId,
        /// What is missing: the file, or the kind of storage.
        why: String,
    },
    /// The process may not write the file.
    #[error("no permission to write {path}: {need}", path = path.display())]
    NotPermitted {
        path: PathBuf,
        /// The missing permission, and how to get it.
        need: &'static str,
        source: io::Error,
    },
    /// The kernel rejects the value.
    #[error("the kernel rejects {value} as {tunable} in {path}{hint}", path = path.display())]
    Rejected {
        tunable: &'static str,
        value: Value,
        path: PathBuf,
        /// The values that the kernel accepts, if it lists them.
        hint: String,
    },
    #[error("cannot set {tunable} to {value} in {path}", path = path.display())]
    Write { tunable: &'static str, value: Value, path: PathBuf, source: io::Error },
    /// The kernel accepted the value, but the file then has another.
    #[error("{path} was set to {wanted} but reads back as {found}", path = path.display())]
    DidNotStick { path: PathBuf, wanted: Value, found: Value },
    /// Another process changed the value while foreread was running; foreread does not restore it.
    #[error(
        "{tunable} of bdi {bdi} was changed to {found} by another process (foreread had set \
         {expected}): not restored"
    )]
    ChangedByOther {
        tunable: &'static str,
        bdi: BdiId,
        /// The value that foreread had set, or found at the start.
        expected: Value,
        found: Value,
    },
    /// Another foreread process uses the bdi.
    #[error("another foreread process{} is using {}: wait for it or stop it",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), place(bdi))]
    Busy { bdi: BdiId, pid: Option<u32> },
    /// The guard process could not be started, or has exited.
    #[error("the guard process ({program}) {problem}; without it, nothing is changed",
        program = program.display())]
    Guard { program: PathBuf, problem: String },
    /// The process whose settings were to be undone is still running.
    #[error("process {pid}, which owns {journal}, is still running: it restores the settings when \
             it exits",
        journal = journal.display())]
    OwnerAlive { journal: PathBuf, pid: u32 },
    /// A newer journal, which is not undone, has changed the same file.
    #[error(
        "cannot undo {journal} alone: {tunable} of bdi {bdi} was set again later; first undo that \
         with `foreread rollback {newer}`, or all changes with `foreread rollback {bdi}`",
        journal = journal.display()
    )]
    NewerChange {
        journal: PathBuf,
        tunable: &'static str,
        bdi: BdiId,
        /// The name of the newer journal.
        newer: String,
    },
    /// The device of a journal cannot be distinguished from another device.
    #[error(
        "bdi {bdi}: cannot identify the disk of {journal} after a reboot, because several disks \
         have neither serial number nor WWN nor UUID: nothing was undone; set {tunable} to \
         {original} on the right disk by hand, then remove the journal",
        journal = journal.display()
    )]
    Ambiguous { bdi: BdiId, journal: PathBuf, tunable: &'static str, original: Value },
    /// The journal to undo does not exist.
    #[error("there is no journal {name:?}: it was already undone, or never existed")]
    NoSuchJournal { name: String },
    /// foreread cannot use one of its directories or locks.
    #[error("cannot use {path}{hint}", path = path.display())]
    Own { path: PathBuf, hint: &'static str, source: io::Error },
    /// A journal cannot be read or written, or is invalid.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The state of the machine could not be read.
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
            | Self::NewerChange { .. }
            | Self::Ambiguous { .. }
            | Self::Memory { .. } => ErrorKind::Refused,
            Self::Host(error) => error.kind(),
            Self::Own { source, .. } | Self::Write { source, .. } => ErrorKind::from_io(source),
            Self::Journal(error) => error.kind(),
            Self::Guard { .. } => ErrorKind::Failed,
        }
    }
}

/// Returns what a bdi's lock protects, as a phrase.
fn place(bdi: &BdiId) -> String {
    match bdi.as_str() {
        "machine" => "settings of the whole machine".to_owned(),
        bdi => format!("bdi {bdi}"),
    }
}

/// Why a journal cannot be read or written, or is invalid.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A line that foreread would not have written; the journal is not used for undoing.
    #[error(
        "journal {path}, line {line}: {problem}; it is not used for undoing (check the settings, \
         then remove it)",
        path = path.display()
    )]
    Refused {
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        problem: String,
    },
    /// foreread did not write the file.
    #[error("journal {path} {problem}; it is not used for undoing", path = path.display())]
    NotOurs { path: PathBuf, problem: &'static str },
    /// The apply that wrote the journal died before completion, or the file's end is missing.
    #[error(
        "journal {path} is incomplete: the apply that wrote it died, or the file was truncated; \
         `foreread rollback` undoes the recorded changes",
        path = path.display()
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
