//! The simulated machine: device, page cache, read-ahead and processor costs.

use std::sync::Arc;

use model::Spec;
use model::layout::FileLayout;
use policy::cache::PAGE;
use policy::{FileTree, PolicySpec};
use units::text::SettingError;
use units::{Bytes, Kib, Nanos};

use crate::error::SimError;

/// Smallest page cache: twice the batch that reclaim evicts at once.
const LEAST_CACHE: Bytes = Bytes::from_kib(256);

/// Layout of files on the device and in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Layout of a file's bytes on the device.
    pub layout: FileLayout,
    /// Largest folio order of its files; `None` for single pages only.
    pub folio_limit: Option<u8>,
}

impl FileSystem {
    /// XFS, or ext4 of Linux 6.16 and later: extents and large folios.
    pub const XFS: Self = Self { layout: FileLayout::Contiguous, folio_limit: Some(9) };
    /// ext3, or ext2: indirect blocks and single pages.
    pub const EXT3: Self = Self { layout: FileLayout::Ext3, folio_limit: None };
    /// Extents and single pages: older kernels, other systems.
    pub const PLAIN: Self = Self { layout: FileLayout::Contiguous, folio_limit: None };
}

/// Rule for the page that leaves a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Linux: a page starts at the head of the inactive list and moves to the active list at its
    /// second use. Pages move from the active to the inactive list, and leave the cache from there.
    #[default]
    TwoLists,
    /// Least recently used: the page that was not used for the longest time leaves.
    Lru,
}

/// When pages that were requested together become readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Each page with the device request that delivers it.
    Requests,
    /// All together, with the last of their requests. Since 4.3, Linux passes a window to the block
    /// layer as one bio, whatever the largest request is, and a split bio completes as a whole
    /// (`bio_chain` in block/bio.c).
    Windows,
}

/// Processor costs of a read, charged to its reader. Each reader has its own processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub call_ns: f64,
    /// Per byte copied to the reader.
    pub copy_ns: f64,
    /// Per byte of a device request.
    pub submit_ns: f64,
    /// Per fault of a mapped page.
    pub fault_ns: f64,
}

impl Costs {
    /// A current processor: 400 ns per call, copying at 10 GB/s, 20 µs to submit a megabyte.
    pub const TODAY: Self = Self { call_ns: 400.0, copy_ns: 0.1, submit_ns: 0.02, fault_ns: 700.0 };
    /// No costs: only the device takes time.
    pub const NONE: Self = Self { call_ns: 0.0, copy_ns: 0.0, submit_ns: 0.0, fault_ns: 0.0 };
}

/// A machine to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct SimMachine {
    /// The device and the host limits in front of it.
    pub model: Spec,
    pub policy: PolicySpec,
    /// Read-ahead of the device's bdi (`read_ahead_kb`).
    pub read_ahead: Kib,
    /// Read-ahead of single files, by index in the scenario, as a tuner of open files would set it.
    /// Files beyond the end of the list have the read-ahead of the bdi.
    pub file_read_ahead: Vec<Kib>,
    /// The directories of the scenario's files; `None` if they have none.
    pub file_tree: Option<Arc<FileTree>>,
    /// Size of the page cache.
    pub cache: Bytes,
    /// Rule for the page that leaves a full cache.
    pub replacement: Replacement,
    /// Layout of files on the device and in the cache.
    pub filesystem: FileSystem,
    /// When the pages of a window with several requests become readable; `None` for the rule of the
    /// policy's kernel ([`policy::Policy::completes_per_window`]).
    pub arrival: Option<Arrival>,
    pub costs: Costs,
    /// Latency of each request on its way to the device and back, while the device is free.
    pub request_delay: Nanos,
    /// Device offset at which the first file starts.
    pub files_at: Bytes,
    /// Seed of the device's randomness and of the readers' start times.
    pub seed: u64,
    /// Whether to walk page by page where runs of pages would give the same result: the slow way,
    /// as a check of the fast one.
    pub page_by_page: bool,
}

impl SimMachine {
    /// Returns a machine with Linux 6.18, XFS and a page cache of 8 GiB in front of this device.
    pub fn new(model: Spec) -> Self {
        Self {
            model,
            policy: PolicySpec::default(),
            read_ahead: Kib::new(128),
            file_read_ahead: Vec::new(),
            file_tree: None,
            cache: Bytes::from_gib(8),
            replacement: Replacement::default(),
            filesystem: FileSystem::XFS,
            arrival: None,
            costs: Costs::TODAY,
            request_delay: Nanos::ZERO,
            files_at: Bytes::ZERO,
            seed: 0,
            page_by_page: false,
        }
    }
}

impl SimMachine {
    /// Checks that all values are possible.
    ///
    /// # Errors
    ///
    /// The first impossible value, with the allowed values.
    pub fn validate(&self) -> Result<(), SimError> {
        self.model.validate()?;
        let costs = &self.costs;
        for (key, value) in [
            ("call_ns", costs.call_ns),
            ("copy_ns", costs.copy_ns),
            ("submit_ns", costs.submit_ns),
            ("fault_ns", costs.fault_ns),
        ] {
            if !(0.0..=1e9).contains(&value) {
                return Err(SettingError::invalid(key, value, "must be 0 to 1000000000").into());
            }
        }
        let own = self.policy.build()?.own_window().to_bytes(PAGE);
        for (what, needed) in
            [("a read-ahead window", self.read_ahead.to_bytes()), ("a window of its policy", own)]
        {
            if self.cache < needed {
                return Err(SimError::CacheTooSmall { cache: self.cache, what, needed });
            }
        }
        if self.cache < LEAST_CACHE {
            let problem = format!("must be {LEAST_CACHE} or more");
            return Err(SettingError::invalid("cache", self.cache, problem).into());
        }
        Ok(())
    }
}
