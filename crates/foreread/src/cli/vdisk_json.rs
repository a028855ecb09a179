//! A virtual disk as JSON: its description and counters, with units in the names of the fields.
//! The files of the disk and the record of runs have names of their own.

use serde_json::{Value, json};
use units::Nanos;
use vdisk::{DiskCounters, DiskListing, DiskRecord};

/// Version of these documents. Version 2 had no units in the names.
const SCHEMA_VERSION: u32 = 3;

/// Adds the version to a document.
pub fn versioned(mut document: Value) -> Value {
    document["schema_version"] = SCHEMA_VERSION.into();
    document
}

/// Returns a disk of a list, as `show` and `list` print it.
pub fn listing_json(listing: &DiskListing) -> Value {
    json!({
        "name": listing.name,
        "state": listing.state.name(),
        "record": listing.record.as_ref().map(record_json),
        "counters": listing.counters.as_ref().map(counters_json),
    })
}

/// Returns the description of a disk.
pub fn record_json(record: &DiskRecord) -> Value {
    let queue = &record.queue;
    json!({
        "name": record.name,
        "words": record.words,
        "model": record.model,
        "filesystem": record.filesystem,
        "size_bytes": record.size.get(),
        "dilation": record.dilation,
        "seed": record.seed,
        "pid": record.pid,
        "device": record.device,
        "loop_number": record.loop_number,
        "mountpoint": record.mountpoint,
        "queue": {
            "requests": queue.requests,
            "requests_wanted": queue.requests_wanted,
            "request_size_bytes": queue.request_size.get(),
            "request_size_wanted_bytes": queue.request_size_wanted.get(),
            "scheduler": queue.scheduler,
            "read_ahead_kib": queue.read_ahead.get(),
        },
        "realtime": record.realtime,
        "dies_with_creator": record.dies_with_creator,
    })
}

fn counters_json(counters: &DiskCounters) -> Value {
    let us = Nanos::as_micros_f64;
    let late = counters.lateness;
    json!({
        "elapsed_s": counters.elapsed.as_secs_f64(),
        "busy_s": counters.busy.as_secs_f64(),
        "reads": counters.reads,
        "writes": counters.writes,
        "flushes": counters.flushes,
        "read_bytes": counters.read_bytes.get(),
        "written_bytes": counters.written_bytes.get(),
        "stored_bytes": counters.stored.get(),
        "reads_by_size": counters.read_sizes,
        "queue": counters.queue,
        "queue_max": counters.queue_max,
        "queue_mean": counters.queue_mean,
        "seeks": counters.seeks,
        "cache_hits": counters.cache_hits,
        "timed": counters.timed,
        "spoiled": counters.spoiled,
        "lateness_us": { "p50": us(late.p50), "p99": us(late.p99), "max": us(late.max) },
        "lateness_total_s": counters.late_total.as_secs_f64(),
        "service_p50_us": us(counters.service_p50),
        "service_total_s": counters.service_total.as_secs_f64(),
        "refused_writes": counters.refused_writes,
        "timing": counters.timing,
    })
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    #[test]
    fn counters_have_units() {
        let counters = DiskCounters {
            elapsed: Nanos::from_millis(1500),
            service_p50: Nanos::from_micros(12),
            stored: Bytes::from_kib(4),
            ..DiskCounters::default()
        };
        let counters = versioned(counters_json(&counters));
        assert_eq!(counters["schema_version"], 3);
        assert_eq!(counters["elapsed_s"], 1.5);
        assert_eq!(counters["service_p50_us"], 12.0);
        assert_eq!(counters["stored_bytes"], 4096);
    }
}
