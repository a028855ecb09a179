//! Questions put to storage and kernel, one command each, with a verdict and a plot.
//!
//! Where a study asks which setting is best, an experiment asks how something works: what a larger
//! request costs, when read-ahead starts, what several readers do to one another. Each gives an
//! [`Answer`]: tables, plots and sentences that follow from them.
//!
//! - [`activation`]: when read-ahead starts, and what makes it stop.
//! - [`mod@postgres`]: what PostgreSQL gets from a storage, under any settings.
//! - [`sweeps`]: what random reads beside streams cost; whether reads scale with readers; what
//!   happens when memory is scarce.
//! - [`zones`]: how fast start, middle and end of a disk are.
//! - [`blocks`]: random reads of 1, 2, 4 … blocks, by one process and by several.

pub mod activation;
mod answer;
pub mod blocks;
mod direct;
mod error;
mod place;
pub mod postgres;
mod simulated;
pub mod sweeps;
pub mod zones;

pub use answer::{Answer, Column, Curve, Plot, Row, Table, Value};
pub use error::ExperimentError;
pub use place::{Place, Wants};

/// A seed for those who give none; the answer says which it was.
pub(crate) fn drawn_seed() -> u64 {
    // JSON readers keep 53 bits of a number.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
