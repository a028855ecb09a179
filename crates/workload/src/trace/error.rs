//! Why a text is no trace.

use std::fmt;

use thiserror::Error;

/// Where in a trace something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, counted from 1.
    Line(u64),
    /// A record of a binary form, counted from 1.
    Record(u64),
    /// A byte of a binary form, counted from 0.
    Byte(u64),
    /// The whole.
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Record(record) => write!(f, "record {record}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Whole => f.write_str("the trace"),
        }
    }
}

/// What is wrong, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}: {problem}")]
pub struct TraceError {
    /// The place; whoever knows the file's name puts it before.
    pub place: Place,
    /// What is wrong there, and what to do if something can be done.
    pub problem: String,
}

impl TraceError {
    pub(crate) fn at(place: Place, problem: impl Into<String>) -> Self {
        Self { place, problem: problem.into() }
    }

    pub(crate) fn line(line: u64, problem: impl Into<String>) -> Self {
        Self::at(Place::Line(line), problem)
    }

    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self::at(Place::Whole, problem)
    }
}
