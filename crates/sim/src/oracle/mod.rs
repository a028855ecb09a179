//! Limits: how fast any schedule, a clairvoyant algorithm or a tuner can make the same reads.
//!
//! - [`lower_bound`]: no schedule is faster than the larger of the processors' time and the time of
//!   the device to read every page once. Also the minimum number of fetches (Belady's MIN).
//! - [`clairvoyant`]: a read-ahead algorithm that knows all future reads, on the same device. It
//!   follows the rules of Cao, Felten, Karlin and Li (SIGMETRICS 1995), *aggressive* and
//!   *conservative*.
//! - [`best_switching`]: the best sequence of settings over phases, if each change has a cost. The
//!   best constant setting is a special case.
//!
//! [`headroom_captured`] rates a result between the default and a limit.

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

/// The reads of all readers, known in advance.
#[derive(Clone, Debug)]
pub struct OracleWork {
    pub files: Vec<FileOnDisk>,
    pub opens: Vec<SimOpenFile>,
    pub readers: Vec<Vec<ReadStep>>,
}

/// Returns the share of the possible gain over `default` that `policy` achieves: 0 for the default,
/// 1 for the limit, negative if it is slower. `None` if no gain is possible.
pub fn headroom_captured(default: Nanos, policy: Nanos, limit: Nanos) -> Option<f64> {
    let possible = default.get() as f64 - limit.get() as f64;
    // A difference of less than a thousandth is rounding, not headroom.
    (possible > default.get() as f64 * 1e-3)
        .then(|| (default.get() as f64 - policy.get() as f64) / possible)
}

#[cfg(test)]
mod tests;
