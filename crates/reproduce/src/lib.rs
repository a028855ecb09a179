//! Compares published read-ahead tables with the simulator's figures, cell by cell.
//!
//! A [`PublishedExperiment`] is a published measurement: its program, device, kernel and figures.
//! Running it returns a [`Reproduction`]: the published figures, the simulated ones, the errors,
//! the fitted numbers, and which [`CheckedClaim`]s hold. An effect that no mechanism of the model
//! explains is marked as unexplained, not fitted away.
//!
//! The devices are presets of the crate `model`, the algorithms those of the crate `policy`, and
//! the simulator runs them: this crate has no model of its own.

mod error;
mod experiment;
mod load;
mod outcome;
mod published;
mod score;

pub use error::ReproduceError;
pub use experiment::{
    EXPERIMENTS, Effort, NOT_SIMULATED, NotSimulated, PublishedExperiment, named,
};
pub use load::{Priming, RandomRuns, Streams};
pub use outcome::{Cell, CheckedClaim, Column, ModelParameter, Reproduction};
pub use published::{Published, PublishedTable};
