//! Errors of job files.

use std::fmt;

use thiserror::Error;

/// A location in a job file or in one that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FioLocation {
    /// Path of the included file; `None` in the job file itself.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for FioLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "line {} of {file:?}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// Error of a job file. It names the line and, if possible, the option.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FioError {
    /// A line that is neither section nor option, or is misplaced.
    #[error("{place}: {text:?}: {problem}")]
    Syntax { place: FioLocation, text: String, problem: &'static str },
    /// An option that fio does not have.
    #[error("{place}: {option}: fio has no such option{}",
        near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default())]
    Unknown {
        place: FioLocation,
        option: String,
        /// The most similar option, if there is one.
        near: Option<&'static str>,
    },
    /// An option of fio that foreread does not support.
    #[error("{place}: {option}: {why}")]
    Refused {
        place: FioLocation,
        /// The option, with its value if that is the reason.
        option: String,
        /// The reason, and an alternative.
        why: String,
    },
    /// An invalid value of an option.
    #[error("{place}: {option}={value}: must be {wanted}")]
    Value { place: FioLocation, option: String, value: String, wanted: String },
    /// A variable that is not set: fio would substitute an empty string.
    #[error("{place}: ${{{variable}}} is not set: set it in the environment")]
    Variable { place: FioLocation, variable: String },
    /// An included file that could not be read.
    #[error("{place}: include {file:?}: {problem}")]
    Include { place: FioLocation, file: String, problem: String },
    #[error("this file has no job: add a section [name] other than [global]")]
    NoJob,
}
