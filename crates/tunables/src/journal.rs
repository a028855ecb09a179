//! The journal.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a journal cannot be read, written or believed.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A line that foreread would not have written: nothing is undone by such a journal.
    #[error("{path} line {line}: {problem}; nothing was undone by it", path = path.display())]
    Refused {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file cannot be read or written.
    #[error("cannot {doing} journal {path}", path = path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The journal.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {}

/// A journal being written.
#[derive(Debug)]
pub struct Journal {}

/// A journal as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {}
