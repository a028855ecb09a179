//! The inputs of a trial, and the steps that all kinds of trials share.

use host::{Root, Storage};
use units::Bytes;
use workload::Workload;

use crate::dataset::DataFile;
use crate::watch::{self, Observed};
use crate::{BenchError, CacheStart, ColdProof, Dataset, Disturbance, TrialOptions, cold};

/// A workload to run on a data set, which is on a storage.
pub(crate) struct TrialInput<'a> {
    pub(crate) root: &'a Root,
    pub(crate) storage: &'a Storage,
    pub(crate) dataset: &'a Dataset,
    pub(crate) workload: &'a Workload,
    pub(crate) options: &'a TrialOptions,
}

impl TrialInput<'_> {
    /// Evicts these files from the cache, or with `AsFound` only checks how much is cached.
    pub(crate) fn cold(&self, files: &[DataFile]) -> Result<ColdProof, BenchError> {
        match self.options.start {
            CacheStart::AsFound => cold::as_found(files),
            CacheStart::Cold => {
                cold::evict(self.root, files, self.options.drop_caches, &self.options.cancel)
            }
        }
    }

    /// Waits until no request is in flight on the devices.
    pub(crate) fn drain(&self) -> Result<Option<Disturbance>, BenchError> {
        let limit = self.options.drain_limit.scaled(self.options.dilation);
        watch::drain(self.root, self.storage, limit, &self.options.cancel)
    }

    /// Returns the disturbances of a trial on `data`: a cache that was not cold, and foreign
    /// activity. The readers received `useful`; with `all_from_device`, every byte of it must have
    /// come from the device.
    pub(crate) fn disturbances(
        &self,
        cold: ColdProof,
        data: Bytes,
        observed: &Observed,
        useful: Bytes,
        all_from_device: bool,
    ) -> Vec<Disturbance> {
        let mut found = observed.disturbances(useful, all_from_device);
        // A memory limit makes memory pressure intentional.
        if self.options.memory_limit.is_some() {
            found.retain(|found| !matches!(found, Disturbance::MemoryPressure { .. }));
        }
        let resident = cold.resident;
        if self.options.start == CacheStart::Cold
            && resident > self.dataset.tolerated_resident(data)
        {
            found.insert(0, Disturbance::WarmStart { resident });
        }
        found
    }
}
