//! Published read-ahead tables beside the simulator's figures, cell by cell.
//!
//! An [`Experiment`] is a measurement that somebody published: its program, device, kernel and
//! figures. Running it gives a [`Reproduction`]: the published figures, the simulated ones, the
//! errors, which numbers were fitted so that they agree, and which [`Line`]s hold. What a
//! mechanism cannot explain is marked so and not fitted away.
//!
//! The devices are presets of the room `model`, the algorithms those of the room `policy`, and
//! what runs them is the simulator: nothing here has a model of its own.

mod error;
mod experiment;
mod load;
mod outcome;
mod published;
mod score;

pub use error::ReproduceError;
pub use experiment::{EXPERIMENTS, Effort, Experiment, NOT_SIMULATED, NotSimulated, named};
pub use load::{Priming, RandomRuns, Streams};
pub use outcome::{Cell, Column, Line, Parameter, Reproduction};
pub use published::{Published, PublishedTable};
