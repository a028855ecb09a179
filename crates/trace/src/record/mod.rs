//! Records the reads of a command or of a running process.
//!
//! The recorder tries its methods in order of preference: the kernel's tracepoints (every read
//! through the page cache and faults on mappings, at low overhead), strace (every call with its
//! exact offset, but slows the program down), and fio's own log if the command is fio. The
//! recording names the method and the reasons against preferred ones.

mod by_fio;
mod by_strace;
mod by_tracepoints;
mod child;
mod names;
mod tracefs;

use std::ffi::OsString;
use std::fmt;
use std::process::ExitStatus;

use strum::VariantArray;

use crate::TraceFileError;
use crate::model::Trace;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordSubject {
    /// A command with its arguments, recorded until it exits.
    Command(Vec<OsString>),
    /// A running process with its threads and its future children.
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

/// The methods, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum RecordMethod {
    /// The tracepoints `filemap:mm_filemap_get_pages` and `filemap:mm_filemap_fault`.
    Tracepoints,
    /// strace(1).
    Strace,
    /// fio's `--write_iolog`.
    Fio,
}

/// A method that did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedMethod {
    pub means: RecordMethod,
    /// The reason why it did not work.
    pub reason: String,
}

#[derive(Clone, Debug)]
pub struct Recording {
    pub trace: Trace,
    pub means: RecordMethod,
    /// Preferred methods that did not work.
    pub tried: Vec<FailedMethod>,
    /// Notes for users of the trace, such as lost events or a failed command.
    pub notes: Vec<String>,
    /// Exit status of the command; `None` for a process.
    pub command: Option<ExitStatus>,
}

struct Caught {
    trace: Trace,
    notes: Vec<String>,
    command: Option<ExitStatus>,
}

enum RecordError {
    /// The method is not available here; the next one may be.
    Unavailable(String),
    /// The method works, but recording failed for a reason that another method would not fix.
    Failed(TraceFileError),
}

impl From<TraceFileError> for RecordError {
    fn from(error: TraceFileError) -> Self {
        Self::Failed(error)
    }
}

/// Records until the subject exits or `stop` returns true. `only` restricts it to one method.
pub fn record(
    subject: &RecordSubject,
    only: Option<RecordMethod>,
    stop: &dyn Fn() -> bool,
) -> Result<Recording, TraceFileError> {
    check(subject)?;
    let mut tried: Vec<FailedMethod> = Vec::new();
    let is_wanted = |means: &&RecordMethod| only.is_none_or(|only| only == **means);
    for &means in RecordMethod::VARIANTS.iter().filter(is_wanted) {
        let caught = match means {
            RecordMethod::Tracepoints => by_tracepoints::record(subject, stop),
            RecordMethod::Strace => by_strace::record(subject, stop),
            RecordMethod::Fio => by_fio::record(subject, stop),
        };
        match caught {
            Ok(Caught { trace, notes, command }) => {
                return Ok(Recording { trace, means, tried, notes, command });
            }
            Err(RecordError::Failed(error)) => return Err(error),
            Err(RecordError::Unavailable(reason)) => tried.push(FailedMethod { means, reason }),
        }
    }
    let reasons: Vec<String> =
        tried.iter().map(|tried| format!("{}: {}", tried.means, tried.reason)).collect();
    Err(TraceFileError::NoMeans { tried: reasons.join("; ") })
}

/// Checks that the subject can be recorded.
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
