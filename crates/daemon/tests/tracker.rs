//! Tests the tracker on synthetic records of each access pattern.

use std::io::Cursor;

use foreread_daemon::{
    AccessPattern, Record, Snapshot, Tracker, WatchView, read_records, write_record,
};
use observe::{EventKind, OpenFile, ProbeEvent, Window};
use proptest::prelude::*;
use serde_json::json;
use units::{Nanos, Pages};

fn event(at_ms: u64, kind: EventKind, index: u64, pages: u64) -> Record {
    let mut event: ProbeEvent = serde_json::from_value(json!({
        "at": 0, "kind": "plain", "file": 77, "device": "8:1", "inode": 9, "index": index,
        "request": pages, "limit": 32, "pid": 42, "tid": 42, "comm": "reader", "cgroup": 1
    }))
    .expect("an event");
    event.access.at = Nanos::from_millis(at_ms);
    event.access.kind = kind;
    Record::Event(event)
}

fn miss(at_ms: u64, index: u64, pages: u64) -> Record {
    event(at_ms, EventKind::Miss { before: Window::default() }, index, pages)
}

fn mark(at_ms: u64, index: u64) -> Record {
    event(at_ms, EventKind::Mark { before: Window::default() }, index, 16)
}

fn window(at_ms: u64, start: u64, size: u64, mapped: Option<u64>) -> Record {
    let window = Window { start, size: Pages::new(size), async_size: Pages::new(size / 2) };
    let kind = EventKind::Window { window, mapped: mapped.is_some() };
    event(at_ms, kind, mapped.unwrap_or(start), size)
}

/// Returns the file of those events, 4000 pages long, last read up to this page.
fn open(read_to: u64) -> OpenFile {
    serde_json::from_value(json!({
        "id": 77, "kind": "regular", "device": "8:1", "inode": 9, "bdi": "8:0",
        "size": 4000 * 4096, "position": 0, "previous": read_to * 4096, "readable": true,
        "writable": false, "direct": false, "window": 131_072, "bdi_window": 131_072,
        "random": false,
        "holders": [{ "pid": 42, "fd": 3, "comm": "reader", "uid": 0, "cgroup": 1 }]
    }))
    .expect("an open file")
}

fn snapshot(at_ms: u64, files: Vec<OpenFile>) -> Record {
    Record::Snapshot(Snapshot { at: Nanos::from_millis(at_ms), files, ..Snapshot::default() })
}

fn last_view(records: impl IntoIterator<Item = Record>) -> WatchView {
    let mut tracker = Tracker::new();
    records.into_iter().filter_map(|record| tracker.take(record)).last().expect("a view")
}

#[test]
fn a_file_read_through_wastes_nothing() {
    let mut records = vec![snapshot(1, vec![]), miss(10, 0, 16), window(10, 0, 32, None)];
    for number in 1..100 {
        records.extend([
            mark(10 + number, number * 32 - 16),
            window(10 + number, number * 32, 32, None),
        ]);
    }
    records.extend([snapshot(1001, vec![open(3200)])]);
    let view = last_view(records);
    let stream = &view.streams[0];
    assert_eq!(stream.pattern, AccessPattern::Sequential);
    assert_eq!((stream.submitted_mib, stream.used_mib, stream.wasted_mib), (12.5, 12.5, 0.0));
    assert_eq!((stream.misses_s, stream.thrashed), (1.0, 0));
    assert_eq!((stream.limit_kib, stream.window_kib), (Some(128), 128));
}

#[test]
fn a_stream_that_began_before_watch_is_sequential() {
    let mut records = vec![snapshot(1, vec![])];
    for number in 10..30 {
        // The window at the mark was submitted at the mark before.
        let place = number * 32;
        records.extend([mark(number, place), window(number, place + 32, 32, None)]);
    }
    records.push(snapshot(1001, vec![open(960)]));
    assert_eq!(last_view(records).streams[0].pattern, AccessPattern::Sequential);
}

#[test]
fn random_faults_of_a_mapping_waste_what_is_around_them() {
    let pages = [900, 3100, 40, 2500, 1700];
    let mut records = vec![snapshot(1, vec![])];
    for (number, page) in pages.into_iter().enumerate() {
        records.push(window(10 + number as u64, page - 16, 32, Some(page)));
    }
    records.extend([snapshot(1001, vec![open(0)]), snapshot(20_000, vec![open(0)])]);
    let stream = &last_view(records).streams[0];
    assert!(stream.mapped);
    assert_eq!(stream.pattern, AccessPattern::Random);
    assert_eq!(stream.used_mib, 5.0 * 4096.0 / (1 << 20) as f64);
    assert_eq!(stream.wasted_mib, 5.0 * 31.0 * 4096.0 / (1 << 20) as f64);
}

#[test]
fn a_miss_of_what_was_read_ahead_is_thrashing() {
    let records = [
        snapshot(1, vec![]),
        miss(10, 0, 16),
        window(10, 0, 64, None),
        miss(500, 40, 1),
        event(500, EventKind::Stall { wait: Nanos::from_millis(8) }, 40, 0),
        snapshot(1001, vec![open(0)]),
    ];
    let stream = &last_view(records).streams[0];
    assert_eq!(stream.thrashed, 1);
    assert_eq!((stream.stalls_s, stream.stalled_ms_s), (1.0, 8.0));
}

#[test]
fn what_is_kept_is_read_as_it_was_and_a_line_cut_short_is_no_error() {
    let records = vec![miss(1, 0, 16), window(1, 0, 32, None), snapshot(9, vec![open(3)])];
    let mut bytes = Vec::new();
    records.iter().for_each(|record| write_record(&mut bytes, record).expect("written"));
    let again: Result<Vec<Record>, _> = read_records(Cursor::new(&bytes)).collect();
    assert_eq!(again.expect("sound"), records);
    let cut: Result<Vec<Record>, _> =
        read_records(Cursor::new(&bytes[..bytes.len() - 9])).collect();
    assert_eq!(cut.expect("sound"), records[..2]);
    let torn = [b"nonsense\n".as_slice(), &bytes].concat();
    let error = read_records(Cursor::new(torn)).next().expect("a line").expect_err("nonsense");
    assert!(error.to_string().contains("line 1"), "{error}");
}

proptest! {
    #[test]
    fn any_records_are_survived(
        steps in prop::collection::vec((0_u8..5, 0_u64..u64::MAX, 0_u64..u64::MAX), 1..60)
    ) {
        let mut tracker = Tracker::new();
        for (kind, index, pages) in steps {
            let size = pages % (1 << 20);
            let record = match kind {
                0 => miss(index % 1000, index, size),
                1 => mark(index % 1000, index),
                2 => window(index % 1000, index, size, None),
                3 => window(index % 1000, index, size, Some(index)),
                _ => snapshot(index % 100_000, vec![open(pages % 4000)]),
            };
            if let Some(view) = tracker.take(record) {
                for stream in view.streams {
                    prop_assert!(stream.used_mib >= 0.0 && stream.wasted_mib >= 0.0);
                }
            }
        }
    }
}
