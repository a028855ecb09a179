//! Tunables of each device's request queue and driver (kernel: `block/blk-sysfs.c`).
//!
//! In the order of their side effects: a scheduler has its own `nr_requests`, and since Linux 6.17
//! a write to `max_sectors_kb` or `rotational` makes the kernel recompute read-ahead.

use units::Bytes;

use super::tunable::{FileScope, ValueForm};
use crate::{SideEffect, Tunable};

const READ_AHEAD: &[SideEffect] =
    &[SideEffect::Recomputed("read_ahead"), SideEffect::Recomputed("member_read_ahead")];

const fn switch(most: i64) -> ValueForm {
    ValueForm::Count { least: 0, most }
}

/// The scheduler of a device's requests.
pub(super) static SCHEDULER: Tunable = Tunable {
    name: "scheduler",
    aliases: &["elevator", "iosched", "io_scheduler"],
    write_rank: 10,
    file_scope: FileScope::Queue("scheduler"),
    form: ValueForm::Choice,
    side_effects: &[SideEffect::Recomputed("nr_requests")],
    ..Tunable::PLAIN
};

/// Maximum number of requests in a queue.
pub(super) static NR_REQUESTS: Tunable = Tunable {
    name: "nr_requests",
    write_rank: 20,
    file_scope: FileScope::Queue("nr_requests"),
    form: ValueForm::Count { least: 1, most: 1 << 20 },
    ..Tunable::PLAIN
};

/// Maximum number of commands in flight on a SCSI or ATA device; 1 disables NCQ.
pub(super) static QUEUE_DEPTH: Tunable = Tunable {
    name: "queue_depth",
    aliases: &["ncq", "ncq_depth"],
    write_rank: 15,
    file_scope: FileScope::Driver("queue_depth"),
    form: ValueForm::Count { least: 1, most: 65_536 },
    ..Tunable::PLAIN
};

/// Maximum size of a request; a change may raise read-ahead.
pub(super) static MAX_SECTORS: Tunable = Tunable {
    name: "max_sectors",
    aliases: &["max_sectors_kb"],
    json_key: "max_sectors_kib",
    write_rank: 30,
    file_scope: FileScope::Queue("max_sectors_kb"),
    form: ValueForm::Amount { unit: 1024, least: Bytes::from_kib(4), most: Bytes::from_gib(2) },
    side_effects: READ_AHEAD,
    ..Tunable::PLAIN
};

/// Whether the kernel treats a device as a rotating disk; a change may raise read-ahead.
pub(super) static ROTATIONAL: Tunable = Tunable {
    name: "rotational",
    write_rank: 40,
    file_scope: FileScope::Queue("rotational"),
    form: switch(1),
    side_effects: READ_AHEAD,
    ..Tunable::PLAIN
};

/// The processor that completes a request: any (0), one nearby (1) or the submitting one (2).
pub(super) static RQ_AFFINITY: Tunable = Tunable {
    name: "rq_affinity",
    write_rank: 50,
    file_scope: FileScope::Queue("rq_affinity"),
    form: switch(2),
    ..Tunable::PLAIN
};

/// Request merging: all (0), simple merges only (1) or none (2).
pub(super) static NOMERGES: Tunable = Tunable {
    name: "nomerges",
    write_rank: 51,
    file_scope: FileScope::Queue("nomerges"),
    form: switch(2),
    ..Tunable::PLAIN
};

/// Target latency of reads, for which the kernel throttles write-back; 0 disables throttling.
pub(super) static WBT_LAT: Tunable = Tunable {
    name: "wbt_lat",
    aliases: &["wbt_lat_usec"],
    json_key: "wbt_lat_us",
    write_rank: 52,
    file_scope: FileScope::Queue("wbt_lat_usec"),
    form: ValueForm::Span { unit: 1_000 },
    ..Tunable::PLAIN
};

/// Read-ahead of the devices below md, dm or btrfs; effective only when they are read directly.
pub(super) static MEMBER_READ_AHEAD: Tunable = Tunable {
    name: "member_read_ahead",
    aliases: &["member_read_ahead_kb"],
    json_key: "member_read_ahead_kib",
    write_rank: 190,
    file_scope: FileScope::MemberBdi,
    form: ValueForm::Amount { unit: 1024, least: Bytes::ZERO, most: Bytes::from_gib(1) },
    ..Tunable::PLAIN
};
