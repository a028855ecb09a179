//! What may go wrong with a tunable.

use std::io;
use std::path::PathBuf;

use host::{BdiId, HostError};
use thiserror::Error;
use units::{Bytes, ParseUnitError};

use crate::{JournalError, Value};

/// Why a setting could not be understood, made or undone.
#[derive(Debug, Error)]
pub enum TunableError {
    /// No tunable has this name.
    #[error("there is no tunable {name:?}{hint}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// A text that is no `NAME=VALUE[,VALUE…]`.
    #[error("{text:?} is no setting: {problem}")]
    Syntax {
        /// The text as given.
        text: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A value that is no amount, or has no unit.
    #[error("{tunable}: {source}")]
    Amount {
        /// The tunable.
        tunable: &'static str,
        /// Why it is no amount.
        source: ParseUnitError,
    },
    /// Less than a page, which the kernel would silently take for none at all.
    #[error(
        "{tunable}={value} is less than a memory page ({page}), and the kernel would make it 0: \
         use {page} or more, or 0 to turn it off"
    )]
    BelowPage {
        /// The tunable.
        tunable: &'static str,
        /// The value as given.
        value: Bytes,
        /// The size of a page here.
        page: Bytes,
    },
    /// More than can make sense.
    #[error("{tunable}={value} is too much: the most that foreread sets is {most}")]
    TooLarge {
        /// The tunable.
        tunable: &'static str,
        /// The value as given.
        value: Bytes,
        /// The largest value allowed.
        most: Bytes,
    },
    /// Outside what the kernel takes.
    #[error("{tunable} cannot be {value}: it is between {least} and {most}")]
    OutOfRange {
        /// The tunable.
        tunable: &'static str,
        /// The value as given.
        value: Value,
        /// The least.
        least: Value,
        /// The most.
        most: Value,
    },
    /// More memory than may be spent on it.
    #[error(
        "{tunable}={value} would take {needs} of memory, more than a quarter of the {available} \
         that is available: choose less", needs = needs.rounded(), available = available.rounded()
    )]
    Memory {
        /// The tunable.
        tunable: &'static str,
        /// The value.
        value: Value,
        /// What it takes.
        needs: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// A tunable of another system.
    #[error(
        "{tunable} is a tunable of {system}: it can be checked and emitted here (persist --emit \
         freebsd), not set"
    )]
    OtherSystem {
        /// The tunable.
        tunable: &'static str,
        /// The system that has it.
        system: &'static str,
    },
    /// A value of another sort than the tunable takes.
    #[error("{tunable} cannot be {value}")]
    WrongSort {
        /// The tunable.
        tunable: &'static str,
        /// The value as given.
        value: Value,
    },
    /// This storage does not have the tunable.
    #[error("{tunable} cannot be set on bdi {bdi}: {why}")]
    Absent {
        /// The tunable.
        tunable: &'static str,
        /// The bdi.
        bdi: BdiId,
        /// What is missing: the file looked for, or the kind of storage that has it.
        why: String,
    },
    /// Not allowed to write it.
    #[error("may not write {path}: {need}", path = path.display())]
    NotPermitted {
        /// The file.
        path: PathBuf,
        /// Which right is missing, and how to have it.
        need: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel does not take this value here.
    #[error("the kernel does not take {value} as {tunable} in {path}{hint}", path = path.display())]
    Rejected {
        /// The tunable.
        tunable: &'static str,
        /// The value.
        value: Value,
        /// The file.
        path: PathBuf,
        /// What it would take, where it says so.
        hint: String,
    },
    /// Writing failed for another reason.
    #[error("cannot set {tunable} to {value} in {path}", path = path.display())]
    Write {
        /// The tunable.
        tunable: &'static str,
        /// The value.
        value: Value,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel took the value and has another now.
    #[error("{path} was set to {wanted} but reads back as {found}", path = path.display())]
    DidNotStick {
        /// The file.
        path: PathBuf,
        /// The value written.
        wanted: Value,
        /// The value found.
        found: Value,
    },
    /// Somebody else changed the value while foreread was at work; it is left as they have it.
    #[error(
        "{tunable} of bdi {bdi} was changed to {found} by somebody else (foreread had set \
         {expected}): it is left so"
    )]
    ChangedByOther {
        /// The tunable.
        tunable: &'static str,
        /// The bdi.
        bdi: BdiId,
        /// What foreread had set or found at the start.
        expected: Value,
        /// What is there now.
        found: Value,
    },
    /// Another foreread works on the bdi.
    #[error("another foreread{} is at work on {}: wait for it or end it",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), place(bdi))]
    Busy {
        /// The bdi.
        bdi: BdiId,
        /// Its process.
        pid: Option<u32>,
    },
    /// The guard process could not be started, or has gone.
    #[error("the guard process ({program}) {problem}; nothing is changed without it",
        program = program.display())]
    Guard {
        /// The program started as guard.
        program: PathBuf,
        /// What happened.
        problem: String,
    },
    /// The run whose settings were to be undone still runs.
    #[error("process {pid}, which owns {journal}, is still at work: it restores when it ends",
        journal = journal.display())]
    OwnerAlive {
        /// The journal.
        journal: PathBuf,
        /// Its owner.
        pid: u32,
    },
    /// Nothing tells the device of a journal from another that looks like it.
    #[error(
        "bdi {bdi}: more than one disk here may be the one that {journal} is about, as the machine \
         was booted since and they have neither serial number nor WWN nor UUID: nothing is undone; \
         where it belongs set {tunable} to {original} by hand, then remove the journal",
        journal = journal.display()
    )]
    Ambiguous {
        /// The bdi.
        bdi: BdiId,
        /// The journal.
        journal: PathBuf,
        /// The tunable.
        tunable: &'static str,
        /// Its value before.
        original: Value,
    },
    /// There is nothing of this name to undo.
    #[error("there is no journal {name:?}: what it had changed has been put back, or it never was")]
    NoSuchJournal {
        /// The name as given.
        name: String,
    },
    /// A directory or lock of foreread's own cannot be used.
    #[error("cannot use {path}{hint}", path = path.display())]
    Own {
        /// The file or directory.
        path: PathBuf,
        /// What to do.
        hint: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The journal cannot be read, written or believed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The machine could not be looked at.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// What a lock is of, in words.
fn place(bdi: &BdiId) -> String {
    match bdi.as_str() {
        "machine" => "settings of the whole machine".to_owned(),
        bdi => format!("bdi {bdi}"),
    }
}
