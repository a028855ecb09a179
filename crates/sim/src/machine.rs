//! What is simulated: device, page cache, read-ahead and what a processor takes.

use model::Spec;
use model::layout::FileLayout;
use policy::PolicySpec;
use policy::cache::PAGE;
use units::text::SettingError;
use units::{Bytes, Kib, Nanos};

use crate::error::SimError;

/// The smallest page cache: what reclaim takes at once, twice.
const LEAST_CACHE: Bytes = Bytes::from_kib(256);

/// How files lie on the device and in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Where a file's bytes lie on the device.
    pub layout: FileLayout,
    /// The largest order of folio that its files may have; `None` for single pages only.
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

/// Which page leaves a full cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Linux: a page begins at the head of the inactive list and moves to the active one when it
    /// is used a second time; the active list gives to the inactive, and that to nobody.
    #[default]
    TwoLists,
    /// The page that was not used for the longest time.
    Lru,
}

/// When pages that were asked for together can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Each with the request to the device that brings it.
    Requests,
    /// All at once, with the last of their requests: since 4.3 Linux hands the block layer a window
    /// as one bio, whatever the largest request is, and a bio that was split ends as a whole
    /// (`bio_chain` in block/bio.c).
    Windows,
}

/// What a processor takes, of each reader's time. There is one for each reader.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub call_ns: f64,
    /// For each byte that is copied to the reader.
    pub copy_ns: f64,
    /// For each byte of a request to the device.
    pub submit_ns: f64,
    /// For each fault of a mapped page.
    pub fault_ns: f64,
}

impl Costs {
    /// A processor of today: 400 ns for a call, 10 GB/s of copying, 20 µs to ask for a megabyte.
    pub const TODAY: Self = Self { call_ns: 400.0, copy_ns: 0.1, submit_ns: 0.02, fault_ns: 700.0 };
    /// Nothing: only the device takes time.
    pub const NONE: Self = Self { call_ns: 0.0, copy_ns: 0.0, submit_ns: 0.0, fault_ns: 0.0 };
}

/// A machine to be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct SimMachine {
    /// The device and the host limits in front of it.
    pub model: Spec,
    pub policy: PolicySpec,
    /// The read-ahead of the device's bdi (`read_ahead_kb`).
    pub read_ahead: Kib,
    /// The read-ahead of single files, by their places in the scenario: what a tuner of open files
    /// would set. Files beyond the end of the list have that of the bdi.
    pub file_read_ahead: Vec<Kib>,
    /// The size of the page cache.
    pub cache: Bytes,
    /// Which page leaves it when it is full.
    pub replacement: Replacement,
    /// How files lie on the device and in the cache.
    pub filesystem: FileSystem,
    /// When the pages of a window that takes several requests can be read; `None` as the policy's
    /// kernel has it ([`policy::Policy::completes_per_window`]).
    pub arrival: Option<Arrival>,
    pub costs: Costs,
    /// What each request takes on its way to the device and back, in which the device is free.
    pub request_delay: Nanos,
    /// Where on the device whoever lays out files begins.
    pub files_at: Bytes,
    /// The seed of the device's chance and of when readers begin.
    pub seed: u64,
    /// Whether to walk page by page where runs of pages would give the same: the slow way, to
    /// check the fast one against.
    pub page_by_page: bool,
}

impl SimMachine {
    /// Linux 6.18 with XFS and a page cache of 8 GiB in front of this device.
    pub fn new(model: Spec) -> Self {
        Self {
            model,
            policy: PolicySpec::default(),
            read_ahead: Kib::new(128),
            file_read_ahead: Vec::new(),
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
    /// Says what, if anything, no machine can have.
    ///
    /// # Errors
    ///
    /// The first such value, with what is allowed.
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
