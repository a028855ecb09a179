//! The manifest: a small file that lists the existing files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sys::replace::{Durability, FileMode, replace};
use units::Bytes;
use workload::{Layout, Workload};

use crate::BenchError;

/// The manifest's name; its presence proves that foreread created the directory.
pub(crate) const MANIFEST: &str = "foreread.json";
/// The manifest's temporary name, under which it is written before the rename.
pub(crate) const MANIFEST_NEW: &str = "foreread.json.new";
const VERSION: u32 = 1;

/// Files of one size that were created together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSet {
    pub(crate) interleaved: bool,
    pub(crate) file_size: Bytes,
    pub(crate) count: u32,
}

impl FileSet {
    /// Returns the sets that one workload needs: one for each file size.
    pub(crate) fn all_of(workload: &Workload, file_size: Bytes) -> Vec<Self> {
        let mut counts: BTreeMap<Bytes, u32> = BTreeMap::new();
        for size in workload.data_files(file_size) {
            *counts.entry(size).or_default() += 1;
        }
        let interleaved = workload.layout == Layout::Interleaved;
        let set = |(file_size, count)| Self { interleaved, file_size, count };
        counts.into_iter().map(set).collect()
    }

    /// Returns whether this set includes the files of `other`.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        self.is_alike(other) && self.count >= other.count
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.interleaved, self.file_size) == (other.interleaved, other.file_size)
    }

    pub(crate) fn size(&self) -> Bytes {
        Bytes::new(self.file_size.get().saturating_mul(u64::from(self.count)))
    }

    pub(crate) fn file_name(&self, index: u32) -> String {
        let layout = if self.interleaved { "interleaved" } else { "contiguous" };
        format!("{layout}-{}-{index:05}.data", self.file_size.get())
    }
}

/// Returns whether foreread may have created a file with this name.
pub(crate) fn is_our_name(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let data = name.strip_suffix(".data").is_some_and(|stem| {
        let parts: Vec<&str> = stem.split('-').collect();
        matches!(parts[..], ["contiguous" | "interleaved", size, index]
            if number(size) && number(index))
    });
    data || name == MANIFEST || name == MANIFEST_NEW
}

/// Returns the smallest number of sets that serve all these workloads.
pub(crate) fn sets_for(workloads: &[Workload], file_size: Bytes) -> Vec<FileSet> {
    let mut sets: Vec<FileSet> = Vec::new();
    let all = workloads.iter().flat_map(|workload| FileSet::all_of(workload, file_size));
    for wanted in all {
        match sets.iter_mut().find(|set| set.is_alike(&wanted)) {
            Some(set) => set.count = set.count.max(wanted.count),
            None => sets.push(wanted),
        }
    }
    sets
}

/// The sets that are complete and durable.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    pub(crate) sets: Vec<FileSet>,
}

impl Manifest {
    /// Reads the manifest of `dir`; an invalid manifest counts as empty.
    pub(crate) fn read(dir: &Path) -> Self {
        let text = std::fs::read(dir.join(MANIFEST)).unwrap_or_default();
        serde_json::from_slice(&text)
            .ok()
            .filter(|manifest: &Self| manifest.version == VERSION)
            .unwrap_or_default()
    }

    /// Replaces the manifest atomically.
    pub(crate) fn write(&mut self, dir: &Path) -> Result<(), BenchError> {
        self.version = VERSION;
        let path = dir.join(MANIFEST);
        let text = serde_json::to_vec_pretty(&self).expect("numbers and flags");
        replace(&path, &text, FileMode::Masked(0o666), Durability::Synced)
            .map_err(BenchError::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_share_files() {
        let sets = sets_for(&Workload::suite(), Bytes::from_mib(256));
        let expected = FileSet { interleaved: false, file_size: Bytes::from_mib(256), count: 8 };
        assert_eq!(sets, [expected]);
        let apart = Workload {
            layout: Layout::Interleaved,
            file_size: Some(Bytes::from_mib(16)),
            ..Workload::named("seq-8").unwrap()
        };
        let sets = sets_for(&[Workload::named("seq-1").unwrap(), apart], Bytes::from_mib(64));
        assert_eq!(sets.len(), 2);
        assert_eq!(sets.iter().map(FileSet::size).sum::<Bytes>(), Bytes::from_mib(64 + 128));
    }

    #[test]
    fn only_our_names_are_ours() {
        let set = FileSet { interleaved: true, file_size: Bytes::from_mib(1), count: 2 };
        assert!(is_our_name(&set.file_name(1)));
        assert!(is_our_name(MANIFEST));
        for name in ["", "data", "contiguous--1.data", "contiguous-1-x.data", "a-1-1.data"] {
            assert!(!is_our_name(name), "{name}");
        }
        assert!(!is_our_name("contiguous-1-1.data.bak"));
    }

    #[test]
    fn a_broken_manifest_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Manifest::read(dir.path()).sets.is_empty());
        let set = FileSet { interleaved: false, file_size: Bytes::from_mib(1), count: 2 };
        let mut manifest = Manifest { sets: vec![set], ..Manifest::default() };
        manifest.write(dir.path()).unwrap();
        assert_eq!(Manifest::read(dir.path()).sets, [set]);
        std::fs::write(dir.path().join(MANIFEST), "{\"version\":1,\"se").unwrap();
        assert!(Manifest::read(dir.path()).sets.is_empty());
    }
}
