//! Recording: what a command, or a process that runs already, reads.
//!
//! There is a ladder of means, and each rung is tried, not guessed at: the kernel's tracepoints
//! (every read through the page cache, faults of mappings among them, at little cost), strace
//! (every call with its exact place, at a cost that slows the program down), fio's own log, if the
//! command is fio. The recording says which rung it stood on and why it did not stand higher.

mod by_fio;
mod by_strace;
mod by_tracepoints;
mod child;
mod names;
mod tracefs;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitStatus;

use crate::model::Trace;

use crate::TraceFileError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordSubject {
    /// A command with its arguments, until it ends.
    Command(Vec<OsString>),
    /// A process that runs already, with its threads and the children that it will have.
    Process(u32),
}

impl fmt::Display for RecordSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(words) => match words.first() {
                Some(program) => write!(f, "{}", program.display()),
                None => f.write_str("nothing"),
            },
            Self::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Means {
    /// The tracepoints `filemap:mm_filemap_get_pages` and `filemap:mm_filemap_fault`.
    Tracepoints,
    /// strace(1).
    Strace,
    /// fio's `--write_iolog`.
    Fio,
}

impl Means {
    /// The ladder from the top.
    pub const ALL: [Self; 3] = [Self::Tracepoints, Self::Strace, Self::Fio];
}

/// A rung that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    pub means: Means,
    /// Why it did not do.
    pub reason: String,
}

#[derive(Clone, Debug)]
pub struct Recording {
    pub trace: Trace,
    pub means: Means,
    /// What stands higher on the ladder and did not do.
    pub tried: Vec<Tried>,
    /// What a reader of the trace should know: events that were lost, a command that failed.
    pub notes: Vec<String>,
    /// How the command exited, if it was one that was recorded.
    pub command: Option<ExitStatus>,
}

struct Caught {
    trace: Trace,
    notes: Vec<String>,
    command: Option<ExitStatus>,
}

enum RecordError {
    /// It is not to be had here: the next may do.
    Unavailable(String),
    /// It was at work, and something is wrong that another would not mend.
    Failed(TraceFileError),
}

impl From<TraceFileError> for RecordError {
    fn from(error: TraceFileError) -> Self {
        Self::Failed(error)
    }
}

/// Records until the command ends, the process ends, or `stop` says so. `only` asks for one rung.
pub fn record(
    subject: &RecordSubject,
    only: Option<Means>,
    stop: &dyn Fn() -> bool,
) -> Result<Recording, TraceFileError> {
    check(subject)?;
    let mut tried: Vec<Tried> = Vec::new();
    for means in Means::ALL.into_iter().filter(|means| only.is_none_or(|only| only == *means)) {
        let caught = match means {
            Means::Tracepoints => by_tracepoints::record(subject, stop),
            Means::Strace => by_strace::record(subject, stop),
            Means::Fio => by_fio::record(subject, stop),
        };
        match caught {
            Ok(Caught { trace, notes, command }) => {
                return Ok(Recording { trace, means, tried, notes, command });
            }
            Err(RecordError::Failed(error)) => return Err(error),
            Err(RecordError::Unavailable(reason)) => tried.push(Tried { means, reason }),
        }
    }
    let reasons: Vec<String> =
        tried.iter().map(|tried| format!("{}: {}", tried.means, tried.reason)).collect();
    Err(TraceFileError::NoMeans { tried: reasons.join("; ") })
}

/// Whether there is anything to record.
fn check(subject: &RecordSubject) -> Result<(), TraceFileError> {
    let wrong = |problem: &str| {
        let subject = subject.to_string();
        Err(TraceFileError::Subject { subject, problem: problem.to_owned() })
    };
    match subject {
        RecordSubject::Command(words) => match words.first() {
            None => wrong("no command is given"),
            Some(program) => match sys::program::obstacle(program) {
                Some(problem) => {
                    Err(TraceFileError::NotStarted { program: program.into(), problem })
                }
                None => Ok(()),
            },
        },
        RecordSubject::Process(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => {
            wrong("there is no such process")
        }
        RecordSubject::Process(_) => Ok(()),
    }
}
