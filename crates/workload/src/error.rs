//! Why a declaration is no workload.

use thiserror::Error;
use units::{Bytes, ParseUnitError};

/// What is wrong with a declaration, or with the files it is to be used on.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum WorkloadError {
    /// The text is no TOML, or a key is missing, unknown or of the wrong type.
    #[error("workload declaration: {problem}")]
    Syntax {
        /// What the parser says, with the place.
        problem: String,
    },
    /// A size or time that cannot be read.
    #[error("workload declaration: {key}: {source}")]
    Unit {
        key: &'static str,
        /// What is wrong with its value.
        source: ParseUnitError,
    },
    /// A word that the key does not have.
    #[error("workload declaration: {key}: {value:?} is none of {known}")]
    UnknownWord { key: &'static str, value: String, known: String },
    /// A key that this pattern does not have.
    #[error("workload declaration: {key} means nothing to the pattern {pattern:?}")]
    ForeignKey { key: &'static str, pattern: &'static str },
    /// A key that this pattern needs.
    #[error("workload declaration: the pattern {pattern:?} needs {key}, as in {example}")]
    MissingKey { key: &'static str, pattern: &'static str, example: &'static str },
    #[error("workload declaration: {key} = {value}: must be {wanted}")]
    OutOfRange { key: &'static str, value: String, wanted: String },
    /// Two values that exclude each other.
    #[error("workload declaration: {first} does not go with {second}: {why}")]
    Conflict {
        first: String,
        second: String,
        /// Why not.
        why: &'static str,
    },
    /// No workload of the suite has this name.
    #[error("no workload is called {name:?}{}: there are {known}", near.as_ref()
        .map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    UnknownName {
        name: String,
        /// The name that comes nearest, if one does.
        near: Option<&'static str>,
        known: String,
    },
    /// A trace in which nothing is read.
    #[error("{trace}: nothing is read in this trace, so there is nothing to replay")]
    TraceWithoutReads {
        /// Where it came from.
        trace: String,
    },
    /// A declaration of a replay without the trace.
    #[error("the trace {trace} is not loaded")]
    TraceNotLoaded {
        /// Where it came from.
        trace: String,
    },
    /// What a program of somebody else's reads, nobody knows beforehand.
    #[error(
        "workload {workload} is run by {program}, on real storage and virtual disks: nothing of \
         it can be simulated or told beforehand"
    )]
    NotOurs { workload: String, program: &'static str },
    /// The workload has fewer readers than the one asked for.
    #[error("workload {workload} has {readers} readers, none with the index {reader}")]
    NoSuchReader { workload: String, readers: u32, reader: u32 },
    /// The number of file sizes is not the number of the reader's files.
    #[error("workload {workload}: each reader has {wanted} files, {given} sizes were given")]
    WrongFileCount {
        workload: String,
        /// The number of files that a reader has.
        wanted: u32,
        given: usize,
    },
    /// The files hold too little for the pattern.
    #[error(
        "workload {workload}: {size} of data is too little for each reader: at least {needed} of \
         it are needed; use larger files or smaller blocks"
    )]
    TooSmall {
        workload: String,
        /// What the reader's files hold together.
        size: Bytes,
        /// What they should hold at least.
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
