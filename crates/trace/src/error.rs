//! Why there is no trace.

use std::io;
use std::path::PathBuf;

use sys::input::{InputError, InputKind, SourceName};
use thiserror::Error;
use workload::WorkloadError;
use workload::trace::{Place, TraceError};

/// What may go wrong with a trace and its file.
#[derive(Debug, Error)]
pub enum TraceFileError {
    /// A system call on a path did not work.
    #[error("cannot {action} {path}", path = shown(path))]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is packed and cannot be unpacked.
    #[error("{path} cannot be unpacked: it is cut short or damaged", path = shown(path))]
    Packed {
        /// The file.
        path: PathBuf,
        /// The unpacker's reason.
        source: io::Error,
    },
    /// The file cannot be read, is no file, or is too large.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file unpacks to more than is kept in memory.
    #[error(
        "{path} unpacks to more than {limit}, which is the limit for traces",
        path = shown(path), limit = InputKind::TRACE.limit()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing in the file.
    #[error("{path} is empty: it holds no trace", path = shown(path))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No form that is known begins like this file.
    #[error(
        "{path} is no trace in a form that can be told by its beginning: name it with --format of \
         `foreread trace import`, one of {known}", path = shown(path)
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The forms that there are.
        known: String,
    },
    /// No form of traces has this name.
    #[error("{0}")]
    NoFormat(String),
    /// Something in the file is wrong.
    #[error("{}", placed(path, error))]
    Broken {
        /// The file.
        path: PathBuf,
        /// What, and where.
        error: TraceError,
    },
    /// The trace makes no workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The words after `trace:` are wrong.
    #[error("\"trace:{words}\": {problem}")]
    Words {
        /// The words as given.
        words: String,
        /// What is wrong with them.
        problem: String,
    },
    /// Nothing on this machine can record.
    #[error("nothing here can record: {tried}")]
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
        /// The command or process.
        subject: String,
        /// Why not.
        problem: String,
    },
}

/// The name of a file as messages have it.
fn shown(path: &std::path::Path) -> SourceName {
    SourceName::new(path)
}

/// `FILE:LINE: problem`, as compilers say it, where there are lines.
fn placed(path: &std::path::Path, error: &TraceError) -> String {
    match error.place {
        Place::Line(line) => format!("{}:{line}: {}", shown(path), error.problem),
        Place::Whole => format!("{}: {}", shown(path), error.problem),
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
