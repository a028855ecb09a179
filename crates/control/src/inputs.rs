//! What the controller knows when it decides.

use std::collections::{BTreeMap, BTreeSet};

use policy::{DeviceCompletions, OpenFileId};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Pages};

/// A file: the number of its device, and its inode.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileKey(pub u64, pub u64);

/// Files whose accesses are to be sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledFiles {
    #[serde(rename = "files")]
    pub open: Vec<OpenFileId>,
    /// Files that are perhaps not open yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<FileKey>,
}

/// The state of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub file_pages: Pages,
    /// The window that it may have.
    pub window: Pages,
    /// The byte after the last one read, where the kernel keeps it.
    pub position: Option<Bytes>,
    /// Whether it bypasses the page cache, or its program's advice is to be respected: then nothing
    /// is done for it.
    pub unmanaged: bool,
    /// Whether its program advised that it reads at random. Its window stays as it is; it is
    /// helped by prefetching if it is read in a predictable way all the same.
    #[serde(rename = "keeps_window")]
    pub random: bool,
    /// Whether it is mapped and its descriptor is closed: then its window cannot be changed.
    #[serde(default)]
    pub only_mapped: bool,
    /// Whether the operator asked for it to be primed.
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

    /// Whether it is managed, and the kernel reads ahead for it.
    pub(crate) fn has_read_ahead(&self) -> bool {
        !self.unmanaged && !self.random
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    pub now: Nanos,
    /// What its devices have completed so far.
    pub completions: DeviceCompletions,
    pub memory: MemoryInputs,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryInputs {
    /// By domain: that of the machine (0), and those of cgroups with a limit.
    pub caches: BTreeMap<u64, Bytes>,
    /// What may be cached of what is prefetched, if that is limited on its own: it is charged to
    /// the process that asks for it, whoever reads it then.
    pub prefetched: Option<Bytes>,
    /// The domains that have a limit of their own.
    pub limited: BTreeSet<u64>,
    pub under_pressure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    pub most: Pages,
    /// The smallest window that a forward reader is left with.
    pub least: Pages,
    /// Whether to prefetch, or to set windows only.
    pub prefetch: bool,
    /// Whether accesses that find their pages in the cache can be sampled.
    #[serde(default)]
    pub samples: bool,
    /// Whether the device is a rotating disk.
    #[serde(default)]
    pub rotates: bool,
    /// The parts of the controller that are at work.
    #[serde(default, skip_serializing_if = "Features::are_all")]
    pub features: Features,
}

/// The parts of the controller: all of them, except in simulations that show the effect of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Features {
    /// The windows of streams.
    pub streams: bool,
    /// The windows of mappings that are read at random.
    pub mappings: bool,
    /// Prefetching the rest of short runs after a miss.
    pub misses: bool,
    pub trends: bool,
    /// Small files in the order of their directory.
    pub files: bool,
    pub priming: bool,
    /// Whether predictions decide; without them, short runs and mappings keep their windows, and
    /// all trends are followed.
    pub what_if: bool,
    /// Whether an action that has not gained is reverted.
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

impl Default for Bounds {
    /// Windows of 64 KiB to 8 MiB (of pages of 4 KiB), and prefetching.
    fn default() -> Self {
        Self {
            most: Pages::new(2048),
            least: Pages::new(16),
            prefetch: true,
            samples: false,
            rotates: false,
            features: Features::default(),
        }
    }
}
