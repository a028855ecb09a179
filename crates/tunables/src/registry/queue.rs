//! The request queue and the driver of each device (kernel: `block/blk-sysfs.c`).
//!
//! In the order of their side effects: a scheduler has its own `nr_requests`, and since Linux 6.17
//! `max_sectors_kb` and `rotational` make the kernel recompute read-ahead.

use units::Bytes;

use super::form::ValueForm;
use super::kernel_file::{FileScope, KernelFile};
use crate::SideEffect;

const READ_AHEAD: &[SideEffect] =
    &[SideEffect::Recomputed("read_ahead"), SideEffect::Recomputed("member_read_ahead")];

const fn switch(most: i64) -> ValueForm {
    ValueForm::Count { least: 0, most }
}

pub(super) static SCHEDULER: KernelFile = KernelFile {
    name: "scheduler",
    aliases: &["elevator", "iosched", "io_scheduler"],
    json_key: "scheduler",
    summary: "the scheduler, which orders the requests of a device",
    order: 10,
    place: FileScope::Queue("scheduler"),
    form: ValueForm::Choice,
    side_effects: &[SideEffect::Recomputed("nr_requests")],
    ..KernelFile::PLAIN
};

pub(super) static NR_REQUESTS: KernelFile = KernelFile {
    name: "nr_requests",
    json_key: "nr_requests",
    summary: "maximum number of requests in a queue",
    order: 20,
    place: FileScope::Queue("nr_requests"),
    form: ValueForm::Count { least: 1, most: 1 << 20 },
    ..KernelFile::PLAIN
};

pub(super) static QUEUE_DEPTH: KernelFile = KernelFile {
    name: "queue_depth",
    aliases: &["ncq", "ncq_depth"],
    json_key: "queue_depth",
    summary: "maximum number of commands in flight on a SCSI or ATA device; 1 disables NCQ",
    order: 15,
    place: FileScope::Driver("queue_depth"),
    form: ValueForm::Count { least: 1, most: 65_536 },
    ..KernelFile::PLAIN
};

pub(super) static MAX_SECTORS: KernelFile = KernelFile {
    name: "max_sectors",
    aliases: &["max_sectors_kb"],
    json_key: "max_sectors_kib",
    summary: "the largest request to a device; a change may raise read-ahead",
    order: 30,
    place: FileScope::Queue("max_sectors_kb"),
    form: ValueForm::Amount { unit: 1024, least: Bytes::from_kib(4), most: Bytes::from_gib(2) },
    side_effects: READ_AHEAD,
    ..KernelFile::PLAIN
};

pub(super) static ROTATIONAL: KernelFile = KernelFile {
    name: "rotational",
    json_key: "rotational",
    summary: "whether the kernel treats a device as a rotating disk; a change may raise read-ahead",
    order: 40,
    place: FileScope::Queue("rotational"),
    form: switch(1),
    side_effects: READ_AHEAD,
    ..KernelFile::PLAIN
};

pub(super) static RQ_AFFINITY: KernelFile = KernelFile {
    name: "rq_affinity",
    json_key: "rq_affinity",
    summary: "which processor completes a request: any (0), one nearby (1) or the submitting one \
              (2)",
    order: 50,
    place: FileScope::Queue("rq_affinity"),
    form: switch(2),
    ..KernelFile::PLAIN
};

pub(super) static NOMERGES: KernelFile = KernelFile {
    name: "nomerges",
    json_key: "nomerges",
    summary: "whether requests are merged: always (0), simply (1) or never (2)",
    order: 51,
    place: FileScope::Queue("nomerges"),
    form: switch(2),
    ..KernelFile::PLAIN
};

pub(super) static WBT_LAT: KernelFile = KernelFile {
    name: "wbt_lat",
    aliases: &["wbt_lat_usec"],
    json_key: "wbt_lat_us",
    summary: "target latency of reads, for which write-back is throttled; 0 disables throttling",
    order: 52,
    place: FileScope::Queue("wbt_lat_usec"),
    form: ValueForm::Span { unit: 1_000 },
    ..KernelFile::PLAIN
};

pub(super) static MEMBER_READ_AHEAD: KernelFile = KernelFile {
    name: "member_read_ahead",
    aliases: &["member_read_ahead_kb"],
    json_key: "member_read_ahead_kib",
    summary: "read-ahead of the devices below md, dm or btrfs, used only when they are read \
              directly",
    order: 190,
    place: FileScope::MemberBdi,
    form: ValueForm::Amount { unit: 1024, least: Bytes::ZERO, most: Bytes::from_gib(1) },
    ..KernelFile::PLAIN
};
