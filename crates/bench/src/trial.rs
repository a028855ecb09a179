//! One trial: readers at work on a data set, with everything counted.

use host::{Root, Storage};
use units::Nanos;
use workload::Workload;

use crate::{BenchError, Cancel, Dataset, Sample};

/// What is in the page cache when the readers start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheStart {
    /// Nothing of the data: it is evicted, and that is proved.
    #[default]
    Cold,
    /// What happens to be there.
    AsFound,
}

/// How a trial is run.
#[derive(Clone, Debug)]
pub struct TrialOptions {
    /// How long the readers work at most, in the storage's own time.
    pub duration: Nanos,
    /// How many times slower than its model the storage runs: duration and think time are
    /// stretched by it. 1 for real storage.
    pub dilation: f64,
    /// The seed of the accesses.
    pub seed: u64,
    /// Whether to write to `/proc/sys/vm/drop_caches` besides evicting the data. That disturbs
    /// everybody on the machine.
    pub drop_caches: bool,
    /// What is in the cache at the start.
    pub start: CacheStart,
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
            drain_limit: Nanos::from_secs(10),
            cancel: Cancel::new(),
        }
    }
}

/// Runs `workload` once on `dataset`, which lies on `storage`.
///
/// All readers start together. The trial is over when its time is, or when the first reader has
/// used up its data, so that no tail with fewer readers is measured. Then the requests under way,
/// read-ahead among them, are waited for, and the counters are read. Files are opened anew for
/// each trial, because an open file keeps the read-ahead window that was set when it was opened.
pub fn run_trial(
    _root: &Root,
    _storage: &Storage,
    _dataset: &Dataset,
    _workload: &Workload,
    _options: &TrialOptions,
) -> Result<Sample, BenchError> {
    todo!()
}
