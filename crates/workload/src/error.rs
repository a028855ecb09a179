//! Errors of declarations.

use thiserror::Error;
use units::{Bytes, ParseUnitError};

/// Error of a declaration, or of its use with files.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WorkloadError {
    /// The text is not TOML, or a key is missing, unknown or of the wrong type.
    #[error("workload declaration: {problem}")]
    Syntax {
        /// The parser's message, with the position.
        problem: String,
    },
    /// An invalid size or time.
    #[error("workload declaration: {key}: {source}")]
    Unit {
        key: &'static str,
        /// The problem with its value.
        source: ParseUnitError,
    },
    /// A value that is not among the key's words.
    #[error("workload declaration: {key}: {value:?} must be one of {known}")]
    UnknownWord { key: &'static str, value: String, known: String },
    /// A key that does not apply to this pattern.
    #[error("workload declaration: {key} does not apply to the pattern {pattern:?}")]
    ForeignKey { key: &'static str, pattern: &'static str },
    /// A key that this pattern needs.
    #[error("workload declaration: the pattern {pattern:?} needs {key}, as in {example}")]
    MissingKey { key: &'static str, pattern: &'static str, example: &'static str },
    #[error("workload declaration: {key} = {value}: must be {wanted}")]
    OutOfRange { key: &'static str, value: String, wanted: String },
    /// Two values that exclude each other.
    #[error("workload declaration: {first} cannot be combined with {second}: {why}")]
    Conflict { first: String, second: String, why: &'static str },
    /// No workload of the suite has this name.
    #[error("no workload is called {name:?}{}: known are {known}", near.as_ref()
        .map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    UnknownName {
        name: String,
        /// The most similar name, if there is one.
        near: Option<&'static str>,
        known: String,
    },
    /// A trace without reads.
    #[error("{trace}: this trace contains no reads to replay")]
    TraceWithoutReads { trace: String },
    /// A replay was declared without loading its trace.
    #[error("the trace {trace} is not loaded")]
    TraceNotLoaded { trace: String },
    /// The reads of an external program are unknown.
    #[error(
        "workload {workload} is run by {program}, on real storage and virtual disks only: it can \
         be neither simulated nor predicted"
    )]
    NotOurs { workload: String, program: &'static str },
    /// The workload has fewer readers than the requested index.
    #[error("workload {workload} has {readers} readers, none with the index {reader}")]
    NoSuchReader { workload: String, readers: u32, reader: u32 },
    /// The number of file sizes differs from the number of the reader's files.
    #[error("workload {workload}: each reader has {wanted} files, {given} sizes were given")]
    WrongFileCount { workload: String, wanted: u32, given: usize },
    /// The files are too small for the pattern.
    #[error(
        "workload {workload}: {size} of data is too little for each reader: at least {needed} is \
         needed; use larger files or smaller blocks"
    )]
    TooSmall {
        workload: String,
        /// Total size of the reader's files.
        size: Bytes,
        /// Required total size.
        needed: Bytes,
    },
}

impl units::Classified for WorkloadError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

impl WorkloadError {
    pub(crate) fn out_of_range(key: &'static str, value: impl ToString, wanted: String) -> Self {
        Self::OutOfRange { key, value: value.to_string(), wanted }
    }
}
