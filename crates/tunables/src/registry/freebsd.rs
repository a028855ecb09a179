//! FreeBSD's tunables for read-ahead, with units and defaults.
//!
//! Sources: `sys/kern/vfs_cluster.c` (`read_max`, in file system blocks), `vfs_bio.c`
//! (`hirunningspace`, `lorunningspace`, in bytes), OpenZFS `dmu_zfetch.c` (`vfs.zfs.prefetch.*`).
//! foreread checks and emits them on any system; reading and writing them requires FreeBSD.

use units::Bytes;

use super::tunable::{FileScope, ValueForm};
use crate::Tunable;

/// Returns a tunable with the system's default in words, because some defaults depend on memory.
const fn entry(
    name: &'static str,
    json_key: &'static str,
    form: ValueForm,
    default: &'static str,
) -> Tunable {
    let file_scope = FileScope::OtherSystem("FreeBSD");
    Tunable {
        name,
        json_key,
        write_rank: 91,
        file_scope,
        form,
        default_words: Some(default),
        ..Tunable::PLAIN
    }
}

const fn blocks(most: i64) -> ValueForm {
    ValueForm::Count { least: 0, most }
}

const fn bytes(most: Bytes) -> ValueForm {
    ValueForm::Amount { unit: 1, least: Bytes::ZERO, most }
}

pub(super) static ALL: &[Tunable] = &[
    // Read-ahead in file system blocks: 64 blocks of 32 KiB are 2 MiB.
    entry("vfs.read_max", "", blocks(1 << 20), "64"),
    // Minimum number of file system blocks in a read from the device.
    entry("vfs.read_min", "", blocks(1 << 20), "1"),
    // Amount of writes in flight above which writers wait; does not limit reads.
    entry(
        "vfs.hirunningspace",
        "vfs.hirunningspace_bytes",
        bytes(Bytes::from_gib(1)),
        "a 64th of the buffers, 1M to 16M",
    ),
    // Amount of writes in flight below which writers continue.
    entry(
        "vfs.lorunningspace",
        "vfs.lorunningspace_bytes",
        bytes(Bytes::from_gib(1)),
        "two thirds of vfs.hirunningspace",
    ),
    // 1 disables ZFS prefetch.
    entry("vfs.zfs.prefetch.disable", "", ValueForm::Count { least: 0, most: 1 }, "0"),
    // Initial prefetch distance of a ZFS stream, which grows if prefetches are late.
    entry(
        "vfs.zfs.prefetch.min_distance",
        "vfs.zfs.prefetch.min_distance_bytes",
        bytes(Bytes::from_gib(4)),
        "4M",
    ),
    // Maximum prefetch distance of a ZFS stream.
    entry(
        "vfs.zfs.prefetch.max_distance",
        "vfs.zfs.prefetch.max_distance_bytes",
        bytes(Bytes::from_gib(4)),
        "64M",
    ),
    // Distance at which ZFS prefetches indirect blocks.
    entry(
        "vfs.zfs.prefetch.max_idistance",
        "vfs.zfs.prefetch.max_idistance_bytes",
        bytes(Bytes::from_gib(4)),
        "128M",
    ),
    // Number of streams that ZFS tracks in one file.
    entry("vfs.zfs.prefetch.max_streams", "", ValueForm::Count { least: 1, most: 4_096 }, "8"),
    // Maximum gap that ZFS reads in order to merge two requests.
    entry(
        "vfs.zfs.vdev.read_gap_limit",
        "vfs.zfs.vdev.read_gap_limit_bytes",
        bytes(Bytes::from_mib(16)),
        "32K",
    ),
];

#[cfg(test)]
mod tests {
    use units::PageSize;

    use super::*;
    use crate::TunableScope;

    #[test]
    fn every_default_that_is_a_value_is_a_value() {
        for entry in ALL {
            let default = entry.default_words.expect(entry.name);
            let words = default.contains(' ');
            let parsed = entry.parse(entry.name, default);
            assert_eq!(parsed.is_err(), words, "{}", entry.name);
            if let Ok(value) = parsed {
                let checked = entry.validate(&value, PageSize::FOUR_KIB).expect(entry.name);
                assert_eq!(checked.value, value);
            }
            assert!(entry.candidates(&TunableScope::nowhere()).is_empty());
        }
    }
}
