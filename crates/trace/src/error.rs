//! Why there is no trace.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sys::input::{InputError, InputKind, SourceName};
use thiserror::Error;
use units::{Classified, ErrorKind};
use workload::WorkloadError;

/// Where in a trace something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceLocation {
    /// A line of text, counted from 1.
    Line(u64),
    /// A record of a binary form, counted from 1.
    TraceRecord(u64),
    /// A byte of a binary form, counted from 0.
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
    /// The place; whoever knows the file's name puts it before.
    pub place: TraceLocation,
    /// What is wrong there, and what to do if something can be done.
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

/// What may go wrong with a trace and its file.
#[derive(Debug, Error)]
pub enum TraceFileError {
    /// A system call on a path did not work.
    #[error("cannot {action} {path}", path = shown(path))]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is packed and cannot be unpacked.
    #[error("{path} cannot be unpacked: it is cut short or damaged", path = shown(path))]
    Packed { path: PathBuf, source: io::Error },
    /// The file cannot be read, is no file, or is too large.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file unpacks to more than is kept in memory.
    #[error(
        "{path} unpacks to more than {limit}, which is the limit for traces",
        path = shown(path), limit = InputKind::TRACE.limit()
    )]
    TooLarge { path: PathBuf },
    /// There is nothing in the file.
    #[error("{path} is empty: it holds no trace", path = shown(path))]
    Empty { path: PathBuf },
    /// No form that is known begins like this file.
    #[error(
        "{path} is no trace in a form that can be told by its beginning: name it with --format of \
         `foreread trace import`, one of {known}", path = shown(path)
    )]
    UnknownFormat { path: PathBuf, known: String },
    /// No form of traces has this name.
    #[error("{0}")]
    NoFormat(String),
    /// Something in the file is wrong.
    #[error("{}", placed(path, error))]
    Broken { path: PathBuf, error: TraceError },
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The text after `trace:` is invalid.
    #[error("\"trace:{spec}\": {problem}")]
    Spec { spec: String, problem: String },
    /// Nothing on this machine can record.
    #[error("no recording method works here: {tried}")]
    NoMeans {
        /// What was tried, and why it did not do.
        tried: String,
    },
    /// The program is not there, or is none.
    #[error("cannot run {program}: {}", match problem {
        io::ErrorKind::NotFound => "there is no such program on PATH",
        _ => "it is not executable",
    }, program = program.display())]
    NotStarted {
        /// The first word of the command.
        program: PathBuf,
        /// `NotFound`, or another reason.
        problem: io::ErrorKind,
    },
    /// The command could not be started or the process cannot be watched.
    #[error("cannot record {subject}: {problem}")]
    Subject {
        subject: String,
        /// Why not.
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

/// The name of a file as messages have it.
fn shown(path: &std::path::Path) -> SourceName {
    SourceName::new(path)
}

/// `FILE:LINE: problem`, as compilers say it, where there are lines.
fn placed(path: &std::path::Path, error: &TraceError) -> String {
    match error.place {
        TraceLocation::Line(line) => format!("{}:{line}: {}", shown(path), error.problem),
        TraceLocation::Whole => format!("{}: {}", shown(path), error.problem),
        place => format!("{}: {place}: {}", shown(path), error.problem),
    }
}

impl TraceFileError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
