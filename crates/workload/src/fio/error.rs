//! What is wrong with a job file.

use std::fmt;

use thiserror::Error;

/// Where something stands in a job file or in one that it includes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FioLocation {
    /// The included file, if it is in one.
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

/// Why a job file is refused. Each names the line, and the option where there is one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FioError {
    /// A line that is neither section nor option, or stands in a wrong place.
    #[error("{place}: {text:?}: {problem}")]
    Syntax { place: FioLocation, text: String, problem: &'static str },
    /// An option that fio does not have.
    #[error("{place}: {option}: fio has no such option{}",
        near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default())]
    Unknown {
        place: FioLocation,
        option: String,
        /// The one that comes nearest, if one does.
        near: Option<&'static str>,
    },
    /// An option of fio's that foreread cannot do.
    #[error("{place}: {option}: {why}")]
    Refused {
        place: FioLocation,
        /// The option, with its value where that is the reason.
        option: String,
        /// Why not, and what would do.
        why: String,
    },
    /// A value that the option does not take.
    #[error("{place}: {option}={value}: must be {wanted}")]
    Value { place: FioLocation, option: String, value: String, wanted: String },
    /// A variable that is not set: fio would take nothing in its place.
    #[error("{place}: ${{{variable}}} is not set: set it in the environment")]
    Variable { place: FioLocation, variable: String },
    /// An included file that cannot be read.
    #[error("{place}: include {file:?}: {problem}")]
    Include {
        place: FioLocation,
        file: String,
        /// Why not.
        problem: String,
    },
    #[error("there is no job in this file: a section [name] that is not [global]")]
    NoJob,
}
