//! Emptying the page cache of some files, and proving it.

use serde::{Deserialize, Serialize};
use units::Bytes;

/// How it was found out what is in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResidencyMethod {
    /// By `cachestat(2)` (since Linux 6.5).
    Cachestat,
    /// By `mincore(2)` on a mapping.
    Mincore,
}

/// What was in the page cache when the trial began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdProof {
    /// How it was looked up.
    pub method: ResidencyMethod,
    /// How much of the data was in the cache when the readers started.
    pub resident: Bytes,
    /// How often eviction was tried; none if the cache was to be left as it was.
    pub evictions: u32,
    /// Whether `drop_caches` was written to besides.
    pub dropped_caches: bool,
}

impl ColdProof {
    /// Whether nothing was in the cache.
    pub fn is_cold(&self) -> bool {
        self.resident.is_zero()
    }
}
