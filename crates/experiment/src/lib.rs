//! Experiments that each answer a question about storage or kernel, with a verdict and a plot.
//!
//! Where a study asks which setting is best, an experiment asks how something works: what a larger
//! request costs, when read-ahead starts, how readers affect each other. Each gives an
//! [`study::Findings`]: tables, plots and sentences that follow from them.
//!
//! - [`activation`]: when read-ahead starts, and what makes it stop.
//! - [`sweeps`]: what random reads alongside streams cost; whether reads scale with readers; what
//!   happens when memory is scarce.
//! - [`zones`]: how fast start, middle and end of a disk are.
//! - [`blocks`]: random reads of 1, 2, 4 … blocks, by one process and by several.

pub mod activation;
pub mod blocks;
mod direct;
mod error;
mod simulated;
pub mod sweeps;
pub mod zones;

pub use error::ExperimentError;
