//! Seeds for runs without a given one, and for trials.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a seed from the clock, below 2^53 so that every JSON parser can represent it.
pub fn drawn_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64)
}

/// Returns the seed of a trial: equal for all settings of a block, so that pairs read the same
/// offsets; different for each block and workload. The steps are those of SplitMix64.
pub(crate) fn trial_seed(seed: u64, block: u32, workload: usize) -> u64 {
    let mut z = seed ^ (u64::from(block) << 32) ^ workload as u64;
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns the wall-clock time in seconds since 1970-01-01 UTC.
pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
