//! Experiments: each answers one question about storage or kernel, with a verdict and a plot.
//!
//! A study finds the best setting; an experiment shows how something works: what a larger request
//! costs, when read-ahead starts, how readers affect each other. Each returns [`study::Findings`]:
//! tables, plots and the sentences that follow from them.
//!
//! - [`activation`]: when read-ahead starts, and what makes it stop.
//! - [`sweeps`]: what random reads alongside streams cost; whether reads scale with readers; what
//!   happens when memory is scarce.
//! - [`zones`]: the throughput at the start, the middle and the end of a disk.
//! - [`blocks`]: random reads of 1, 2, 4 … blocks, by one process and by several.

pub mod activation;
pub mod blocks;
mod direct;
mod error;
mod simulated;
pub mod sweeps;
pub mod zones;

pub use error::ExperimentError;
