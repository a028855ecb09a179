//! The statistics behind a verdict: quantiles, intervals of medians, knees.
//!
//! All functions are pure. Randomness comes from a seed that the caller passes, so the same record
//! always has the same verdict.

mod effects;
mod estimate;
mod gaussian_process;
mod histogram;
mod interactions;
mod knee;
mod median_interval;
mod pareto;
mod permutation;
mod quantile;
mod saturation;

pub use effects::{Observation, main_effects};
pub use estimate::{Estimate, Spread};
pub use gaussian_process::{GaussianProcess, Posterior, matern52};
pub use histogram::LatencyHistogram;
pub use interactions::{Interaction, interactions};
pub use knee::{Dip, deepest_dip, knee};
pub use median_interval::INTERVAL_FROM;
pub use pareto::pareto;
pub use permutation::{Labelled, groups_differ};
pub use quantile::{geometric_mean, median, quantile, student_975};
pub use saturation::Saturation;
