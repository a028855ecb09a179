//! Tunables of md arrays (kernel: `drivers/md/raid5.c`, `md.c`; manual: md(4)).

use host::Root;
use units::{Bytes, PageSize};

use super::tunable::{FileScope, ValueForm};
use crate::{Tunable, TunableScope, Value};

/// Number of stripes that RAID 4, 5 and 6 keep in memory, with a page for each member.
pub(super) static STRIPE_CACHE: Tunable = Tunable {
    name: "stripe_cache_size",
    aliases: &["stripe_cache"],
    write_rank: 60,
    file_scope: FileScope::Array("stripe_cache_size"),
    form: ValueForm::Count { least: 17, most: 32_768 },
    ..Tunable::PLAIN
};

/// Number of RAID 4, 5 and 6 threads per group of processors; 0 means one for the array.
pub(super) static GROUP_THREADS: Tunable = Tunable {
    name: "group_thread_cnt",
    write_rank: 61,
    file_scope: FileScope::Array("group_thread_cnt"),
    form: ValueForm::Count { least: 0, most: 8_192 },
    ..Tunable::PLAIN
};

/// Maximum number of full stripes that may overtake a stripe which must be read first; at most the
/// size of the stripe cache.
pub(super) static PREREAD_BYPASS: Tunable = Tunable {
    name: "preread_bypass_threshold",
    write_rank: 62,
    file_scope: FileScope::Array("preread_bypass_threshold"),
    form: ValueForm::Count { least: 0, most: 32_768 },
    ..Tunable::PLAIN
};

/// The minimum rate of a rebuild or check while the array is in use.
pub(super) static SYNC_SPEED_MIN: Tunable = Tunable {
    name: "sync_speed_min",
    json_key: "sync_speed_min_kib_s",
    write_rank: 63,
    file_scope: FileScope::Array("sync_speed_min"),
    form: ValueForm::ArrayRate,
    ..Tunable::PLAIN
};

/// The maximum rate of a rebuild or check.
pub(super) static SYNC_SPEED_MAX: Tunable = Tunable {
    name: "sync_speed_max",
    json_key: "sync_speed_max_kib_s",
    write_rank: 64,
    file_scope: FileScope::Array("sync_speed_max"),
    form: ValueForm::ArrayRate,
    ..Tunable::PLAIN
};

/// The minimum rate of arrays without a `sync_speed_min` of their own.
pub(super) static SPEED_LIMIT_MIN: Tunable = Tunable {
    name: "speed_limit_min",
    aliases: &["dev.raid.speed_limit_min"],
    json_key: "speed_limit_min_kib_s",
    write_rank: 65,
    file_scope: FileScope::Machine("/proc/sys/dev/raid/speed_limit_min"),
    form: ValueForm::Rate,
    ..Tunable::PLAIN
};

/// The maximum rate of arrays without a `sync_speed_max` of their own.
pub(super) static SPEED_LIMIT_MAX: Tunable = Tunable {
    name: "speed_limit_max",
    aliases: &["dev.raid.speed_limit_max"],
    json_key: "speed_limit_max_kib_s",
    write_rank: 66,
    file_scope: FileScope::Machine("/proc/sys/dev/raid/speed_limit_max"),
    form: ValueForm::Rate,
    ..Tunable::PLAIN
};

/// Returns the memory of a stripe cache of this size, as in md(4): page × members × entries, summed
/// over all arrays of the stack.
pub(crate) fn stripe_cache_memory(
    root: &Root,
    site: &TunableScope,
    value: &Value,
    page: PageSize,
) -> Option<Bytes> {
    let entries = u64::try_from(value.number()?).ok()?;
    let members = |device| root.number_if_present(format!("/sys/dev/block/{device}/md/raid_disks"));
    let members: u64 = site.all_layers().into_iter().filter_map(members).sum();
    let pages = entries.checked_mul(members)?;
    pages.checked_mul(page.bytes().get()).map(Bytes::new)
}
