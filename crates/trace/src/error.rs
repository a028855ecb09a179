//! Errors of reading, importing and recording traces.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sys::input::{InputError, InputKind, SourceName};
use thiserror::Error;
use units::{Classified, ErrorKind};
use workload::WorkloadError;

/// The location of a problem in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLocation {
    /// A line of text, from 1.
    Line(u64),
    /// A record of a binary format, from 1.
    TraceRecord(u64),
    /// A byte of a binary format, from 0.
    Byte(u64),
    Whole,
}

impl fmt::Display for TraceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::TraceRecord(record) => write!(f, "record {record}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Whole => f.write_str("the trace"),
        }
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}: {problem}")]
pub struct TraceError {
    /// Location in the trace. Callers that know the file's name print it first.
    pub place: TraceLocation,
    /// The problem and, if possible, its remedy.
    pub problem: String,
}

impl TraceError {
    pub(crate) fn at(place: TraceLocation, problem: impl Into<String>) -> Self {
        Self { place, problem: problem.into() }
    }

    pub(crate) fn line(line: u64, problem: impl Into<String>) -> Self {
        Self::at(TraceLocation::Line(line), problem)
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self::at(TraceLocation::Whole, problem)
    }
}

/// An error of a trace and its file.
#[derive(Debug, Error)]
pub enum TraceFileError {
    /// A system call on a path failed.
    #[error("cannot {action} {path}", path = shown(path))]
    Io {
        /// The attempted action, such as `read`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is compressed and cannot be unpacked.
    #[error("{path} cannot be unpacked: it is cut short or damaged", path = shown(path))]
    Packed { path: PathBuf, source: io::Error },
    /// The file cannot be read, is no regular file or pipe, or is too large.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The unpacked file exceeds the limit for memory.
    #[error(
        "{path} unpacks to more than {limit}, which is the limit for traces",
        path = shown(path), limit = InputKind::TRACE.limit()
    )]
    TooLarge { path: PathBuf },
    /// The file is empty.
    #[error("{path} is empty: it holds no trace", path = shown(path))]
    Empty { path: PathBuf },
    /// The start of the file matches no known format.
    #[error(
        "{path} is no trace in a form that can be told by its beginning: name it with --format of \
         `foreread trace import`, one of {known}", path = shown(path)
    )]
    UnknownFormat { path: PathBuf, known: String },
    /// No trace format has this name.
    #[error("{0}")]
    NoFormat(String),
    /// The file's content is invalid.
    #[error("{}", placed(path, error))]
    Broken { path: PathBuf, error: TraceError },
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The text after `trace:` is invalid.
    #[error("\"trace:{spec}\": {problem}")]
    Spec { spec: String, problem: String },
    /// No recording method works on this machine.
    #[error("no recording method works here: {tried}")]
    NoMeans {
        /// The attempted methods, each with the reason why it failed.
        tried: String,
    },
    /// The program does not exist or is not executable.
    #[error("cannot run {program}: {}", match problem {
        io::ErrorKind::NotFound => "there is no such program on PATH",
        _ => "it is not executable",
    }, program = program.display())]
    NotStarted {
        /// First word of the command.
        program: PathBuf,
        /// `NotFound`, or another reason.
        problem: io::ErrorKind,
    },
    /// The command could not be started or the process cannot be traced.
    #[error("cannot record {subject}: {problem}")]
    Subject {
        subject: String,
        /// The reason for the failure.
        problem: String,
    },
}

impl Classified for TraceFileError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { source, .. } => ErrorKind::from_named_file(source),
            Self::Input(error) => error.kind(),
            Self::Empty { .. }
            | Self::TooLarge { .. }
            | Self::UnknownFormat { .. }
            | Self::NoFormat(_)
            | Self::Workload(_)
            | Self::Spec { .. } => ErrorKind::Usage,
            Self::NotStarted { problem, .. } => ErrorKind::from_start(*problem),
            Self::NoMeans { .. } => ErrorKind::Unsupported,
            Self::Packed { .. } | Self::Broken { .. } | Self::Subject { .. } => ErrorKind::Failed,
        }
    }
}

/// Returns the name of a file for messages.
fn shown(path: &std::path::Path) -> SourceName {
    SourceName::new(path)
}

/// Formats `FILE:LINE: problem` as compilers do, or without a line if there is none.
fn placed(path: &std::path::Path, error: &TraceError) -> String {
    match error.place {
        TraceLocation::Line(line) => format!("{}:{line}: {}", shown(path), error.problem),
        TraceLocation::Whole => format!("{}: {}", shown(path), error.problem),
        place => format!("{}: {place}: {}", shown(path), error.problem),
    }
}

impl TraceFileError {
    /// Returns a function that makes an error of a file's content.
    pub(crate) fn broken(path: impl Into<PathBuf>) -> impl FnOnce(TraceError) -> Self {
        let path = path.into();
        move |error| Self::Broken { path, error }
    }

    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
