//! Why a table cannot be reproduced.

use sim::SimError;
use thiserror::Error;

/// Why a table cannot be reproduced.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ReproduceError {
    /// There is no such table.
    #[error("no published table is named {name:?}; there are: {known}")]
    NoTable {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The transcription is not what it should be.
    #[error("the published tables: {problem}")]
    Data {
        /// What is wrong with it.
        problem: String,
    },
    /// The simulation was refused.
    #[error(transparent)]
    Simulation(#[from] SimError),
}
