//! Tunables of the page cache (kernel: `Documentation/admin-guide/sysctl/vm.rst`).
//!
//! `dirty_bytes` and `dirty_ratio` set the same in different ways: a write to one sets the other to
//! 0, and 0 itself cannot be written. The same applies to the two `dirty_background` tunables.

use units::Bytes;

use super::tunable::{FileScope, ValueForm};
use crate::{SideEffect, Tunable};

const PERCENT: ValueForm = ValueForm::Count { least: 0, most: 100 };
const BYTES: ValueForm =
    ValueForm::Amount { unit: 1, least: Bytes::from_kib(8), most: Bytes::from_gib(1 << 20) };
const CENTISECONDS: ValueForm = ValueForm::Span { unit: 10_000_000 };

/// Amount of dirty data above which a writing process must write data back itself.
pub(super) static DIRTY_BYTES: Tunable = Tunable {
    name: "dirty_bytes",
    aliases: &["vm.dirty_bytes"],
    write_rank: 80,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_bytes"),
    form: BYTES,
    side_effects: &[SideEffect::Cleared("dirty_ratio")],
    defers_at_zero: true,
    ..Tunable::PLAIN
};

/// The same threshold as a share of available memory, in percent.
pub(super) static DIRTY_RATIO: Tunable = Tunable {
    name: "dirty_ratio",
    aliases: &["vm.dirty_ratio"],
    json_key: "dirty_ratio_percent",
    write_rank: 81,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_ratio"),
    form: PERCENT,
    side_effects: &[SideEffect::Cleared("dirty_bytes")],
    defers_at_zero: true,
    ..Tunable::PLAIN
};

/// Amount of dirty data above which the kernel starts to write it back.
pub(super) static DIRTY_BACKGROUND_BYTES: Tunable = Tunable {
    name: "dirty_background_bytes",
    aliases: &["vm.dirty_background_bytes"],
    write_rank: 82,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_background_bytes"),
    form: BYTES,
    side_effects: &[SideEffect::Cleared("dirty_background_ratio")],
    defers_at_zero: true,
    ..Tunable::PLAIN
};

/// The same threshold as a share of available memory, in percent.
pub(super) static DIRTY_BACKGROUND_RATIO: Tunable = Tunable {
    name: "dirty_background_ratio",
    aliases: &["vm.dirty_background_ratio"],
    json_key: "dirty_background_ratio_percent",
    write_rank: 83,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_background_ratio"),
    form: PERCENT,
    side_effects: &[SideEffect::Cleared("dirty_background_bytes")],
    defers_at_zero: true,
    ..Tunable::PLAIN
};

/// Age above which the kernel writes dirty data back.
pub(super) static DIRTY_EXPIRE: Tunable = Tunable {
    name: "dirty_expire",
    aliases: &["dirty_expire_centisecs", "vm.dirty_expire_centisecs"],
    json_key: "dirty_expire_centisecs",
    write_rank: 84,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_expire_centisecs"),
    form: CENTISECONDS,
    ..Tunable::PLAIN
};

/// Interval at which the kernel writes back old dirty data; 0 disables it.
pub(super) static DIRTY_WRITEBACK: Tunable = Tunable {
    name: "dirty_writeback",
    aliases: &["dirty_writeback_centisecs", "vm.dirty_writeback_centisecs"],
    json_key: "dirty_writeback_centisecs",
    write_rank: 85,
    file_scope: FileScope::Machine("/proc/sys/vm/dirty_writeback_centisecs"),
    form: CENTISECONDS,
    ..Tunable::PLAIN
};
