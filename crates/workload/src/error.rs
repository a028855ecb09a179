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
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        source: ParseUnitError,
    },
    /// A word that the key does not have.
    #[error("workload declaration: {key}: {value:?} is none of {known}")]
    UnknownWord {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The words that would do.
        known: String,
    },
    /// A key that this pattern does not have.
    #[error("workload declaration: {key} means nothing to the pattern {pattern:?}")]
    ForeignKey {
        /// The key.
        key: &'static str,
        /// The pattern.
        pattern: &'static str,
    },
    /// A key that this pattern needs.
    #[error("workload declaration: the pattern {pattern:?} needs {key}, as in {example}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The pattern.
        pattern: &'static str,
        /// A line that would do.
        example: &'static str,
    },
    /// A value outside its range.
    #[error("workload declaration: {key} = {value}: must be {wanted}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The range.
        wanted: String,
    },
    /// Two values that exclude each other.
    #[error("workload declaration: {first} does not go with {second}: {why}")]
    Conflict {
        /// One of the two.
        first: String,
        /// The other.
        second: String,
        /// Why not.
        why: &'static str,
    },
    /// No workload of the suite has this name.
    #[error("no workload is called {name:?}{}: there are {known}", near.as_ref()
        .map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default())]
    UnknownName {
        /// The name as given.
        name: String,
        /// The name that comes nearest, if one does.
        near: Option<&'static str>,
        /// All names.
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
    NotOurs {
        /// The workload's name.
        workload: String,
        /// The program.
        program: &'static str,
    },
    /// The workload has fewer readers than the one asked for.
    #[error("workload {workload} has {readers} readers, none with the index {reader}")]
    NoSuchReader {
        /// The workload's name.
        workload: String,
        /// How many readers it has.
        readers: u32,
        /// The one asked for.
        reader: u32,
    },
    /// The number of file sizes is not the number of the reader's files.
    #[error("workload {workload}: each reader has {wanted} files, {given} sizes were given")]
    WrongFileCount {
        /// The workload's name.
        workload: String,
        /// The number of files that a reader has.
        wanted: u32,
        /// The number of sizes given.
        given: usize,
    },
    /// The files hold too little for the pattern.
    #[error(
        "workload {workload}: {size} of data is too little for each reader: at least {needed} of \
         it are needed; use larger files or smaller blocks"
    )]
    TooSmall {
        /// The workload's name.
        workload: String,
        /// What the reader's files hold together.
        size: Bytes,
        /// What they should hold at least.
        needed: Bytes,
    },
}

impl WorkloadError {
    pub(crate) fn out_of_range(key: &'static str, value: impl ToString, wanted: String) -> Self {
        Self::OutOfRange { key, value: value.to_string(), wanted }
    }
}
