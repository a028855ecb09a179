//! Options of a trial.

use units::{Bytes, Nanos};

use crate::{BenchError, Cancel};

/// The state of the page cache when the readers start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheStart {
    /// None of the data is in the cache: foreread evicts it and verifies that.
    #[default]
    Cold,
    AsFound,
}

#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// Time limit for the readers, in the storage's own time.
    pub duration: Nanos,
    /// Factor by which the storage is slower than its model. Duration and think time are multiplied
    /// by it; 1 for real storage.
    pub dilation: f64,
    pub seed: u64,
    /// True to write to `/proc/sys/vm/drop_caches` besides evicting the data. This affects all
    /// users of the machine.
    pub drop_caches: bool,
    /// State of the page cache at the start.
    pub start: CacheStart,
    /// Limit for the page cache and all other memory of this process; `None` means unlimited.
    pub memory_limit: Option<Bytes>,
    /// Maximum wait for requests in flight at the end of a trial, in the storage's own time.
    pub drain_limit: Nanos,
    /// Stops the trial early, within about 100 ms.
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
            return bad("duration", &self.duration, "more than 0");
        }
        Ok(())
    }
}
