//! Errors of reproductions.

use sim::SimError;
use thiserror::Error;

/// An error that prevents the reproduction of a table.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ReproduceError {
    #[error("no published table is named {name:?}; known are {known}")]
    NoTable { name: String, known: String },
    /// The transcription is invalid.
    #[error("the published tables: {problem}")]
    Data { problem: String },
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl units::Classified for ReproduceError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}
