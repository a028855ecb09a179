//! Limits: how fast the same reads could be had at all, and by whom.
//!
//! - [`lower_bound`]: no schedule whatever is faster than the larger of what the processors need
//!   and what the device needs for every page once. How often pages must be fetched at least is
//!   known, too (Belady's MIN at this cache).
//! - [`clairvoyant`]: a reader-ahead that knows every read beforehand, on the same device: the
//!   rules of Cao, Felten, Karlin and Li (SIGMETRICS 1995), in their *aggressive* form.
//! - [`best_switching`]: the best sequence of settings over phases, if a change costs something;
//!   with the best constant setting as its special case.
//!
//! [`headroom_captured`] puts a result between the default and a limit.

mod belady;
mod bound;
mod clairvoyant;
mod references;
mod switching;

use units::Nanos;

use crate::scenario::{FileOnDisk, ReadStep, SimOpenFile};

pub use belady::min_misses;
pub use bound::{Bound, lower_bound};
pub use clairvoyant::{Clairvoyance, clairvoyant};
pub use switching::{Switching, best_switching};

/// What is to be read, all of it known beforehand.
#[derive(Clone, Debug)]
pub struct OracleWork {
    pub files: Vec<FileOnDisk>,
    pub opens: Vec<SimOpenFile>,
    pub readers: Vec<Vec<ReadStep>>,
}

/// The share of what could be gained over `default` that is gained: 0 for the default, 1 for the
/// limit, less than 0 for what is slower. None where nothing is to be gained.
pub fn headroom_captured(default: Nanos, policy: Nanos, limit: Nanos) -> Option<f64> {
    let possible = default.get() as f64 - limit.get() as f64;
    // Less than a thousandth is no headroom but rounding.
    (possible > default.get() as f64 * 1e-3)
        .then(|| (default.get() as f64 - policy.get() as f64) / possible)
}

#[cfg(test)]
mod tests;
