//! FreeBSD's tunables for read-ahead, with units and defaults.
//!
//! Sources: `sys/kern/vfs_cluster.c` (`read_max`, in blocks of the filesystem), `vfs_bio.c`
//! (`hirunningspace`, `lorunningspace`, in bytes), OpenZFS `dmu_zfetch.c` (`vfs.zfs.prefetch.*`).
//! They can be checked and emitted anywhere, but read and written only on FreeBSD.

use std::path::PathBuf;

use units::{Bytes, PageSize};

use super::form::{FormedValue, ValueForm, values_of_form};
use crate::{Tunable, TunableError, TunableScope, ValidatedValue, Value};

/// A sysctl of FreeBSD.
#[derive(Debug)]
pub(super) struct FreeBsdTunable {
    name: &'static str,
    json_key: &'static str,
    summary: &'static str,
    form: ValueForm,
    /// The system's default in words: some depend on memory.
    default: &'static str,
}

const fn blocks(most: i64) -> ValueForm {
    ValueForm::Count { least: 0, most }
}

const fn bytes(most: Bytes) -> ValueForm {
    ValueForm::Amount { unit: 1, least: Bytes::ZERO, most }
}

pub(super) static ALL: &[FreeBsdTunable] = &[
    FreeBsdTunable {
        name: "vfs.read_max",
        json_key: "vfs.read_max",
        summary: "read-ahead in blocks of the filesystem: 64 blocks of 32 KiB are 2 MiB",
        form: blocks(1 << 20),
        default: "64",
    },
    FreeBsdTunable {
        name: "vfs.read_min",
        json_key: "vfs.read_min",
        summary: "minimum number of filesystem blocks in a read from the device",
        form: blocks(1 << 20),
        default: "1",
    },
    FreeBsdTunable {
        name: "vfs.hirunningspace",
        json_key: "vfs.hirunningspace_bytes",
        summary: "writes in flight above which writers wait; does not limit reads",
        form: bytes(Bytes::from_gib(1)),
        default: "a 64th of the buffers, 1M to 16M",
    },
    FreeBsdTunable {
        name: "vfs.lorunningspace",
        json_key: "vfs.lorunningspace_bytes",
        summary: "writes in flight below which writers continue",
        form: bytes(Bytes::from_gib(1)),
        default: "two thirds of vfs.hirunningspace",
    },
    FreeBsdTunable {
        name: "vfs.zfs.prefetch.disable",
        json_key: "vfs.zfs.prefetch.disable",
        summary: "disables ZFS prefetch (1)",
        form: ValueForm::Count { least: 0, most: 1 },
        default: "0",
    },
    FreeBsdTunable {
        name: "vfs.zfs.prefetch.min_distance",
        json_key: "vfs.zfs.prefetch.min_distance_bytes",
        summary: "initial prefetch distance of a ZFS stream, which grows if prefetches are late",
        form: bytes(Bytes::from_gib(4)),
        default: "4M",
    },
    FreeBsdTunable {
        name: "vfs.zfs.prefetch.max_distance",
        json_key: "vfs.zfs.prefetch.max_distance_bytes",
        summary: "maximum prefetch distance of a ZFS stream",
        form: bytes(Bytes::from_gib(4)),
        default: "64M",
    },
    FreeBsdTunable {
        name: "vfs.zfs.prefetch.max_idistance",
        json_key: "vfs.zfs.prefetch.max_idistance_bytes",
        summary: "distance at which ZFS prefetches indirect blocks",
        form: bytes(Bytes::from_gib(4)),
        default: "128M",
    },
    FreeBsdTunable {
        name: "vfs.zfs.prefetch.max_streams",
        json_key: "vfs.zfs.prefetch.max_streams",
        summary: "number of streams that ZFS tracks in one file",
        form: ValueForm::Count { least: 1, most: 4_096 },
        default: "8",
    },
    FreeBsdTunable {
        name: "vfs.zfs.vdev.read_gap_limit",
        json_key: "vfs.zfs.vdev.read_gap_limit_bytes",
        summary: "gaps that ZFS reads to merge two requests",
        form: bytes(Bytes::from_mib(16)),
        default: "32K",
    },
];

pub(super) fn find(name: &str) -> Option<&'static dyn Tunable> {
    let named = |entry: &&FreeBsdTunable| entry.name == name || entry.json_key == name;
    ALL.iter().find(named).map(|entry| -> &'static dyn Tunable { entry })
}

impl FreeBsdTunable {
    const fn formed(&self) -> FormedValue {
        FormedValue { tunable: self.name, form: self.form }
    }
}

impl Tunable for FreeBsdTunable {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn json_key(&self) -> &'static str {
        self.json_key
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn write_rank(&self) -> u8 {
        91
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        self.formed().parse(name, text)
    }

    fn candidates(&self, _site: &TunableScope) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_of_machine(&self) -> bool {
        true
    }

    fn sysctl(&self) -> Option<&'static str> {
        Some(self.name)
    }

    fn other_os(&self) -> Option<&'static str> {
        Some("FreeBSD")
    }

    fn default_words(&self) -> Option<&'static str> {
        Some(self.default)
    }

    values_of_form!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_that_is_a_value_is_a_value() {
        for entry in ALL {
            let words = entry.default.contains(' ');
            let parsed = entry.parse(entry.name, entry.default);
            assert_eq!(parsed.is_err(), words, "{}", entry.name);
            if let Ok(value) = parsed {
                let checked = entry.validate(&value, PageSize::FOUR_KIB).expect(entry.name);
                assert_eq!(checked.value, value);
            }
            assert!(entry.first_file(&TunableScope::nowhere()).is_none());
        }
    }
}
