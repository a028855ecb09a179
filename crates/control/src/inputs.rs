//! The inputs of the controller's decisions.

use std::collections::{BTreeMap, BTreeSet};

use policy::{DeviceCompletions, OpenFileId};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

use crate::tuning::Tuning;

/// A file, identified by the number of its device and its inode.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileKey(pub u64, pub u64);

/// Files whose accesses should be sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledFiles {
    #[serde(rename = "files")]
    pub open: Vec<OpenFileId>,
    /// Files that may not be open yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<FileKey>,
}

/// The state of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub file_pages: Pages,
    /// The limit of its window.
    pub window: Pages,
    /// The offset after the last byte read; `None` if the kernel does not keep it.
    pub position: Option<Bytes>,
    /// True if the controller must leave it alone: it bypasses the page cache, or its program has
    /// given advice that must be respected.
    pub unmanaged: bool,
    /// True if its program has advised random reads. Its window is not changed, but it is
    /// prefetched if its reads are predictable nevertheless.
    #[serde(rename = "keeps_window")]
    pub random: bool,
    /// True if it is mapped and its descriptor is closed, so that its window cannot be changed.
    #[serde(default)]
    pub only_mapped: bool,
    /// True if the operator requested priming of the file.
    #[serde(default)]
    pub prime: bool,
    /// The cache that its pages are charged to, a key of [`MemoryInputs::caches`].
    pub domain: u64,
    pub page: Bytes,
}

impl FileState {
    pub(crate) fn may_set_window(&self) -> bool {
        self.has_read_ahead() && !self.only_mapped
    }

    /// Returns whether it is managed and the kernel reads ahead for it.
    pub(crate) fn has_read_ahead(&self) -> bool {
        !self.unmanaged && !self.random
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    pub now: Nanos,
    /// Cumulative completions of its devices.
    pub completions: DeviceCompletions,
    pub memory: MemoryInputs,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryInputs {
    /// The capacity of each domain's cache: the machine (0), and each cgroup with a limit.
    pub caches: BTreeMap<u64, Bytes>,
    /// The limit on cached prefetched pages, if they have one of their own: the kernel charges them
    /// to the process that prefetches, not to the reader.
    pub prefetched: Option<Bytes>,
    /// The domains that have a limit of their own.
    pub limited: BTreeSet<u64>,
    pub under_pressure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    pub most: Pages,
    /// The smallest window of a forward reader.
    pub least: Pages,
    /// Whether to prefetch in addition to setting windows.
    pub prefetch: bool,
    /// Whether accesses to cached pages can be sampled.
    #[serde(default)]
    pub samples: bool,
    /// Whether the device is a rotating disk.
    #[serde(default)]
    pub rotates: bool,
    /// The largest request to the device. A reader that requests more than its window at once gets
    /// up to this much in one request.
    #[serde(default = "usual_max_request")]
    pub max_request: Pages,
    /// The enabled parts of the controller.
    #[serde(default, skip_serializing_if = "Features::are_all")]
    pub features: Features,
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
}

/// The parts of the controller. Only simulations disable any, to show the effect of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// The windows of streams.
    pub streams: bool,
    /// The windows of mappings that are read at random.
    pub mappings: bool,
    /// Prefetching the rest of short runs, and large calls, after a miss.
    pub misses: bool,
    pub trends: bool,
    /// Prefetching small files in the order of their directory.
    pub files: bool,
    pub priming: bool,
    /// Whether predictions decide. Without them, short runs and mappings keep their windows, and
    /// all trends are followed.
    pub what_if: bool,
    /// Whether an action without a gain is reverted.
    pub trials: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            streams: true,
            mappings: true,
            misses: true,
            trends: true,
            files: true,
            priming: true,
            what_if: true,
            trials: true,
        }
    }
}

impl Features {
    fn are_all(&self) -> bool {
        *self == Self::default()
    }
}

/// 1280 KiB, the usual `max_sectors_kb`, in pages of 4 KiB.
fn usual_max_request() -> Pages {
    Pages::new(320)
}

impl Default for Bounds {
    /// Windows of 64 KiB to 8 MiB (with pages of 4 KiB), and prefetching.
    fn default() -> Self {
        Self {
            most: Pages::new(2048),
            least: Pages::new(16),
            prefetch: true,
            samples: false,
            rotates: false,
            max_request: usual_max_request(),
            features: Features::default(),
            tuning: Tuning::DEFAULT,
        }
    }
}
