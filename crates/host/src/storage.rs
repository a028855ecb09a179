//! The storage of a path.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::{BlockStat, DevNo, HostError, KernelRelease, Mount, Root, block_stat};

/// The name of a bdi under `/sys/class/bdi`: `8:0`, `btrfs-1`, `0:46`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BdiId(String);

impl BdiId {
    /// Returns `None` if the name is invalid: it must be a single path component.
    pub fn new(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.".contains(&byte);
        let sound = !name.is_empty() && name.len() <= 64 && !name.starts_with('.');
        (sound && name.bytes().all(fits)).then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn dir(&self) -> PathBuf {
        PathBuf::from("/sys/class/bdi").join(&self.0)
    }
}

impl fmt::Display for BdiId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for BdiId {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::new(&name).ok_or_else(|| format!("{name:?} is not the name of a bdi"))
    }
}

impl From<BdiId> for String {
    fn from(bdi: BdiId) -> String {
        bdi.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    Directory,
    File,
    /// A block device or a partition.
    BlockDevice,
}

/// Whether the page cache of a file system uses folios larger than a page. On large folios, the
/// ramp of power-of-two windows performs badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LargeFolios {
    Yes,
    No,
    /// Depends on the kernel's configuration.
    Unknown,
}

/// The storage of a path: its mount, its bdi, and the devices that count its I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    pub kind: StorageKind,
    /// The mount that the path is on; `None` for a block device.
    pub mount: Option<Mount>,
    /// The bdi that determines the window of newly opened files.
    pub bdi: BdiId,
    /// Devices that together count this storage's I/O: usually one, several under btrfs, none under
    /// NFS and FUSE. A partition counts its own I/O, although it uses the disk's bdi.
    pub devices: Vec<DevNo>,
    /// The lowest devices below `devices`; the same unless dm or md is in between.
    pub leaves: Vec<DevNo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemSpace {
    pub total: Bytes,
    pub available: Bytes,
}

impl Storage {
    /// Returns whether the mount or file system is read-only.
    pub fn read_only(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| mount.read_only)
    }

    /// Returns whether the file system uses large folios on this kernel release; `None` for a block
    /// device.
    pub fn large_folios(&self, kernel: KernelRelease) -> Option<LargeFolios> {
        let from = |major, minor| kernel >= KernelRelease { major, minor };
        let since = |reached| if reached { LargeFolios::Yes } else { LargeFolios::No };
        let mount = self.mount.as_ref()?;
        Some(match mount.fstype.as_str() {
            "xfs" => since(from(5, 18)),
            // One driver serves both. Data journalling excludes large folios.
            "ext4" | "ext3" if mount.options.contains("data=journal") => LargeFolios::No,
            "ext4" | "ext3" => since(from(6, 16)),
            // Until 7.1 only with CONFIG_BTRFS_EXPERIMENTAL.
            "btrfs" if from(6, 17) && !from(7, 2) => LargeFolios::Unknown,
            "btrfs" => since(from(7, 2)),
            _ => LargeFolios::Unknown,
        })
    }

    /// Returns the space on the file system, from `statvfs(3)`.
    pub fn space(&self) -> Result<FilesystemSpace, HostError> {
        let room = rustix::fs::statvfs(&self.path)
            .map_err(|errno| HostError::Read { path: self.path.clone(), source: errno.into() })?;
        let blocks = |count: u64| Bytes::new(count.saturating_mul(room.f_frsize));
        Ok(FilesystemSpace { total: blocks(room.f_blocks), available: blocks(room.f_bavail) })
    }

    /// Returns the summed counters of all `devices`; `None` if there are none.
    pub fn stat(&self, root: &Root) -> Result<Option<BlockStat>, HostError> {
        let stats = self.devices.iter().map(|device| block_stat(root, *device));
        let sum: BlockStat = stats.collect::<Result<Vec<_>, _>>()?.into_iter().sum();
        Ok((!self.devices.is_empty()).then_some(sum))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn on(fstype: &str, options: &str) -> Storage {
        let mount = Mount {
            point: "/mnt".into(),
            fstype: fstype.to_owned(),
            source: "/dev/sda1".to_owned(),
            options: options.to_owned(),
            read_only: false,
        };
        let bdi = BdiId::new("8:0").expect("a bdi");
        let kind = StorageKind::Directory;
        let none = Vec::new();
        Storage {
            path: "/mnt".into(),
            kind,
            mount: Some(mount),
            bdi,
            devices: none.clone(),
            leaves: none,
        }
    }

    #[test]
    fn large_folios_came_file_system_by_file_system() {
        let kernel = |major, minor| KernelRelease { major, minor };
        let of = |fstype, options, kernel| on(fstype, options).large_folios(kernel);
        assert_eq!(of("xfs", "rw", kernel(5, 15)), Some(LargeFolios::No));
        assert_eq!(of("xfs", "rw", kernel(6, 1)), Some(LargeFolios::Yes));
        assert_eq!(of("ext4", "rw", kernel(6, 15)), Some(LargeFolios::No));
        assert_eq!(of("ext4", "rw", kernel(6, 18)), Some(LargeFolios::Yes));
        assert_eq!(of("ext4", "rw,data=journal", kernel(6, 18)), Some(LargeFolios::No));
        assert_eq!(of("btrfs", "rw", kernel(6, 12)), Some(LargeFolios::No));
        assert_eq!(of("btrfs", "rw", kernel(6, 18)), Some(LargeFolios::Unknown));
        assert_eq!(of("nfs4", "rw", kernel(6, 18)), Some(LargeFolios::Unknown));
        let raw = Storage { mount: None, ..on("xfs", "rw") };
        assert_eq!(raw.large_folios(kernel(6, 18)), None);
    }

    #[test]
    fn a_storage_survives_json() {
        let storage = on("ext4", "rw");
        let json = serde_json::to_string(&storage).expect("JSON");
        assert_eq!(serde_json::from_str::<Storage>(&json).expect("a storage"), storage);
        assert!(serde_json::from_str::<BdiId>("\"../../etc\"").is_err());
    }

    #[test]
    fn names_of_bdis_are_one_part_of_a_path() {
        for name in ["8:0", "btrfs-1", "0:46", "8:1-fuseblk"] {
            assert!(BdiId::new(name).is_some(), "{name}");
        }
        for name in ["", ".", "..", "a/b", "../x", "a b", "a\n", "\0"] {
            assert!(BdiId::new(name).is_none(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_bdi_s_directory_is_below_its_class(name in "\\PC{0,80}") {
            if let Some(bdi) = BdiId::new(&name) {
                let dir = bdi.dir();
                prop_assert_eq!(dir.parent(), Some(std::path::Path::new("/sys/class/bdi")));
                prop_assert_eq!(dir.components().count(), 5);
            }
        }
    }
}
