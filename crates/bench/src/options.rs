//! How a trial is run.

use units::{Bytes, Nanos};

use crate::{BenchError, Cancel};

/// What is in the page cache when the readers start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheStart {
    /// Nothing of the data: it is evicted, and that is proved.
    #[default]
    Cold,
    AsFound,
}

#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// How long the readers work at most, in the storage's own time.
    pub duration: Nanos,
    /// How many times slower than its model the storage runs: duration and think time are
    /// stretched by it. 1 for real storage.
    pub dilation: f64,
    pub seed: u64,
    /// Whether to write to `/proc/sys/vm/drop_caches` besides evicting the data. That disturbs
    /// everybody on the machine.
    pub drop_caches: bool,
    /// What is in the cache at the start.
    pub start: CacheStart,
    /// What the page cache and all else of this process may take meanwhile; no limit if `None`.
    pub memory_limit: Option<Bytes>,
    /// How long to wait, in the storage's own time, for requests under way at the end.
    pub drain_limit: Nanos,
    /// Ends the trial early, within about 100 ms.
    pub cancel: Cancel,
}

impl Default for TrialOptions {
    fn default() -> Self {
        Self {
            duration: Nanos::from_secs(5),
            dilation: 1.0,
            seed: 0,
            drop_caches: false,
            start: CacheStart::Cold,
            memory_limit: None,
            drain_limit: Nanos::from_secs(10),
            cancel: Cancel::new(),
        }
    }
}

impl TrialOptions {
    pub(crate) fn validate(&self) -> Result<(), BenchError> {
        let bad = |option, value: &dyn ToString, wanted| {
            Err(BenchError::BadOption { option, value: value.to_string(), wanted })
        };
        if !(self.dilation.is_finite() && self.dilation > 0.0) {
            return bad("dilation", &self.dilation, "a number above 0");
        }
        if self.duration == Nanos::ZERO {
            return bad("duration", &self.duration, "more than nothing");
        }
        Ok(())
    }
}
