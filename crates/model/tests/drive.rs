//! The mechanical drive: properties of every device, and properties of a disk.
#![allow(clippy::unwrap_used)] // a test may panic

use foreread_model::drive::{Drive, DriveSpec, QueueOrder, ReadBefore};
use foreread_model::{Completion, Device, Request, RequestId, RequestKind, SpecError};
use proptest::prelude::*;
use units::{Bytes, Nanos};

fn disk() -> DriveSpec {
    let capacity = Bytes::new(1_000_204_886_016);
    let mut spec = DriveSpec::new(capacity, 7200.0, [0.8, 8.5], [107.0, 52.0]);
    spec.jitter_ms = 0.0;
    spec
}

fn request(id: u64, kind: RequestKind, offset: u64, length: u64) -> Request {
    Request { id: RequestId(id), kind, offset: Bytes::new(offset), length: Bytes::new(length) }
}

/// Keeps `depth` requests in flight; submits the next one `gap` after each completion. Returns the
/// completion times.
fn closed_loop(
    drive: &mut dyn Device,
    depth: usize,
    gap: Nanos,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Nanos> {
    let mut requests = requests.into_iter();
    let (mut times, mut done) = (Vec::new(), Vec::new());
    let mut now = Nanos::ZERO;
    for request in requests.by_ref().take(depth) {
        drive.submit(now, request);
    }
    while let Some(wake) = drive.next_wake() {
        now = now.max(wake);
        drive.advance(now, &mut done);
        for completion in done.drain(..) {
            times.push(completion.at);
            if let Some(request) = requests.next() {
                now = completion.at + gap;
                drive.submit(now, request);
            }
        }
    }
    times
}

fn sequential(length: u64, count: u64) -> impl Iterator<Item = Request> {
    (0..count).map(move |index| request(index, RequestKind::Read, index * length, length))
}

fn scattered(count: u64, capacity: u64) -> impl Iterator<Item = Request> {
    let place = move |index: u64| {
        let hash = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 12) % capacity / 4096 * 4096
    };
    (0..count).map(move |index| request(index, RequestKind::Read, place(index), 4096))
}

fn mb_per_second(bytes: u64, times: &[Nanos]) -> f64 {
    bytes as f64 / 1e6 / times.last().map_or(1.0, |time| time.as_secs_f64())
}

#[test]
fn one_reader_that_waits_for_each_block_gets_the_media_rate_by_the_drives_read_ahead() {
    let mut drive = Drive::new(&disk(), 1).unwrap();
    let gap = Nanos::from_micros(50);
    let times = closed_loop(&mut drive, 1, gap, sequential(65536, 4000));
    let rate = mb_per_second(4000 * 65536, &times);
    assert!(rate > 95.0 && rate < 107.5, "{rate}");
    assert!(drive.counters().cache_hits > 3900);
}

#[test]
fn a_late_contiguous_command_without_read_ahead_loses_a_revolution() {
    let mut spec = disk();
    spec.read_ahead = Bytes::ZERO;
    let mut drive = Drive::new(&spec, 1).unwrap();
    let times = closed_loop(&mut drive, 1, Nanos::from_micros(50), sequential(65536, 400));
    let rate = mb_per_second(400 * 65536, &times);
    assert!(rate < 8.0, "{rate}");
}

#[test]
fn a_queued_contiguous_command_loses_nothing() {
    let mut spec = disk();
    spec.read_ahead = Bytes::ZERO;
    let mut drive = Drive::new(&spec, 1).unwrap();
    let times = closed_loop(&mut drive, 4, Nanos::ZERO, sequential(65536, 4000));
    let rate = mb_per_second(4000 * 65536, &times);
    assert!(rate > 104.0 && rate < 107.5, "{rate}");
}

#[test]
fn random_reads_cost_a_seek_half_a_turn_and_the_overhead() {
    let mut drive = Drive::new(&disk(), 7).unwrap();
    let count = 4000;
    let requests = scattered(count, 1_000_204_886_016);
    let times = closed_loop(&mut drive, 1, Nanos::ZERO, requests);
    let mean = times.last().unwrap().as_millis_f64() / count as f64;
    // Outer zones hold more data, so random seeks are shorter than between cylinders: below 8.5 ms.
    let expected = 8.3 + 4.17 + 0.2 + 0.05;
    assert!((mean - expected).abs() < 0.5, "{mean}");
}

#[test]
fn a_deep_queue_served_nearest_first_is_twice_as_fast_as_in_order() {
    let mut took = Vec::new();
    for order in [QueueOrder::Fifo, QueueOrder::Nearest] {
        let spec = DriveSpec { queue_order: order, ..disk() };
        let mut drive = Drive::new(&spec, 7).unwrap();
        let requests = scattered(3000, 1_000_204_886_016);
        took.push(closed_loop(&mut drive, 32, Nanos::ZERO, requests).pop().unwrap().as_secs_f64());
    }
    assert!(took[0] / took[1] > 2.0 && took[0] / took[1] < 3.0, "{took:?}");
}

/// Returns the cache hits of two distant readers, each of which requests the next block when it
/// receives the previous one.
fn hits_of_two_streams(spec: &DriveSpec) -> u64 {
    let mut drive = Drive::new(spec, 3).expect("a sound drive");
    let block =
        |id: u64| request(id, RequestKind::Read, id % 2 * (1 << 39) + id / 2 * 65536, 65536);
    drive.submit(Nanos::ZERO, block(0));
    drive.submit(Nanos::ZERO, block(1));
    let mut done = Vec::new();
    while let Some(wake) = drive.next_wake() {
        drive.advance(wake, &mut done);
        for completion in done.drain(..) {
            let next = completion.id.0 + 2;
            if next < 2000 {
                drive.submit(completion.at, block(next));
            }
        }
    }
    drive.counters().cache_hits
}

#[test]
fn queueing_stops_the_drives_read_ahead_unless_it_is_told_otherwise() {
    let mut spec = DriveSpec { queue_order: QueueOrder::Fifo, ..disk() };
    assert!(hits_of_two_streams(&spec) < 100);
    spec.read_ahead_when_queued = true;
    spec.read_ahead_at_least = Bytes::from_kib(512);
    let hits = hits_of_two_streams(&spec);
    assert!(hits > 1500, "{hits}");
}

#[test]
fn write_back_answers_at_once_and_flush_waits_for_the_platter() {
    let spec = DriveSpec { write_cache: Bytes::from_mib(8), ..disk() };
    let mut drive = Drive::new(&spec, 3).unwrap();
    let writes = scattered(100, 1_000_000_000_000)
        .map(|read| Request { kind: RequestKind::Write, ..read })
        .collect::<Vec<_>>();
    let times = closed_loop(&mut drive, 1, Nanos::ZERO, writes.clone());
    assert!(times.last().unwrap().as_millis_f64() < 100.0 * 0.3, "{:?}", times.last());

    let mut drive = Drive::new(&spec, 3).unwrap();
    for write in writes {
        drive.submit(Nanos::ZERO, write);
    }
    drive.submit(Nanos::ZERO, request(1000, RequestKind::Flush, 0, 0));
    drive.submit(Nanos::ZERO, request(1001, RequestKind::Read, 0, 4096));
    let mut done = Vec::new();
    drive.advance(Nanos::from_secs(10), &mut done);
    let at = |id| done.iter().find(|done| done.id == RequestId(id)).unwrap().at;
    assert!(at(1000).as_millis_f64() > 200.0, "{}", at(1000));
    assert!(at(1001) > at(1000), "a flush is a barrier");
}

#[test]
fn without_a_write_cache_writes_reach_the_platter_first() {
    let mut drive = Drive::new(&disk(), 3).unwrap();
    let writes =
        scattered(200, 1_000_000_000_000).map(|read| Request { kind: RequestKind::Write, ..read });
    let times = closed_loop(&mut drive, 1, Nanos::ZERO, writes);
    assert!(times.last().unwrap().as_millis_f64() > 200.0 * 8.0);
}

#[test]
fn a_specification_survives_toml_and_bad_ones_are_named() {
    let spec = disk();
    let text = toml::to_string(&spec).unwrap();
    assert_eq!(toml::from_str::<DriveSpec>(&text).unwrap(), spec);
    let bad = DriveSpec { rpm: f64::NAN, ..disk() };
    let error = Drive::new(&bad, 0).unwrap_err();
    assert_eq!(refused(&error), ("rpm", "60 to 1000000"));
    assert!(toml::from_str::<DriveSpec>("rpm = 7200").is_err());
    let average = disk().seek_average_ms;
    for (bad, field) in [
        (DriveSpec { seek_track_ms: average + 0.1, ..disk() }, "seek_average_ms"),
        (DriveSpec { seek_full_ms: Some(average - 0.1), ..disk() }, "seek_full_ms"),
    ] {
        let error = Drive::new(&bad, 0).unwrap_err();
        let (key, allowed) = refused(&error);
        assert!(key == field && allowed.contains(" or more, which seek_"), "{error}");
        // A measured seek curve replaces these times.
        assert_eq!(DriveSpec { seek_curve: vec![[1.0, 2.0]], ..bad }.validate(), Ok(()));
    }
    assert!(toml::from_str::<DriveSpec>(&text.replace("rpm", "rpn")).is_err());
}

/// Returns the key whose value is refused, and the values that it may have.
fn refused(error: &SpecError) -> (&str, &str) {
    match error {
        SpecError::Impossible { key, allowed, .. } => (key, allowed),
        other => panic!("{other}"),
    }
}

/// A drive so small that requests overlap often.
fn small_disk() -> impl Strategy<Value = DriveSpec> {
    (
        ((1u64 << 20)..50_000_000, 60.0..100_000.0, 0.0..5.0, 0.0..5.0, 1.0..200.0, 0.1..1.0),
        (0u64..100_000, 1usize..5, 0u64..200_000, 1usize..6, any::<[bool; 6]>(), 0.0..2.0),
    )
        .prop_map(|((size, rpm, track, further, outer, part), more)| {
            let (ahead, segments, cache, depth, flags, jitter) = more;
            let average = track + further;
            let edges = [outer, outer * part];
            let mut spec = DriveSpec::new(Bytes::new(size), rpm, [track, average], edges);
            spec.read_ahead = Bytes::new(ahead);
            spec.segments = segments;
            spec.write_cache = Bytes::new(cache);
            spec.queue_depth = depth;
            spec.jitter_ms = jitter;
            spec.store_and_forward = flags[0];
            spec.read_ahead_when_queued = flags[1];
            spec.read_ahead_at_least = Bytes::new(ahead / 2);
            spec.read_before = if flags[2] { ReadBefore::Track } else { ReadBefore::Passing };
            spec.read_ahead_within_track = flags[0];
            spec.keep_delivered = flags[3];
            spec.queue_order = if flags[4] { QueueOrder::Fifo } else { QueueOrder::Nearest };
            spec.seek_curve = if flags[5] { vec![[1.0, track], [50.0, average]] } else { vec![] };
            spec
        })
}

/// Requests with their arrival times; some of them exceed the end of the drive.
fn arrivals() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let kind = prop_oneof![
        6 => Just(RequestKind::Read),
        4 => Just(RequestKind::Write),
        1 => Just(RequestKind::Flush),
    ];
    let offset = prop_oneof![0u64..200_000, 0u64..60_000_000, any::<u64>()];
    let length = prop_oneof![Just(4096u64), 0u64..100_000, Just(u64::MAX)];
    let gap = prop_oneof![Just(0u64), 0u64..3_000_000, 0u64..200_000_000];
    prop::collection::vec((gap, kind, offset, length), 1..80).prop_map(|all| {
        let mut now = 0;
        let number = all.into_iter().zip(0..);
        number
            .map(|((gap, kind, offset, length), id)| {
                now += gap;
                (now, request(id, kind, offset, length))
            })
            .collect()
    })
}

/// Calls `advance` at each wake time if `timely`, otherwise rarely; returns completions by id.
fn run(spec: &DriveSpec, arrivals: &[(u64, Request)], timely: bool) -> Vec<Completion> {
    let mut drive = Drive::new(spec, 42).expect("a sound drive");
    let mut done = Vec::new();
    for (index, &(at, request)) in arrivals.iter().enumerate() {
        while let Some(wake) = drive.next_wake().filter(|wake| timely && wake.get() <= at) {
            drive.advance(wake, &mut done);
        }
        drive.submit(Nanos::new(at), request);
        if !timely && index % 7 == 3 {
            drive.advance(Nanos::new(at), &mut done);
        }
    }
    while let Some(wake) = drive.next_wake() {
        let late = if timely { 0 } else { 1 << 40 };
        drive.advance(Nanos::new(wake.get() + late), &mut done);
    }
    assert_eq!(drive.in_flight(), 0);
    assert!(done.is_sorted_by_key(|completion| completion.at));
    done.sort_by_key(|completion| (completion.id, completion.at));
    done
}

proptest! {
    #[test]
    fn each_request_completes_once_not_before_its_time_and_the_same_however_late_one_asks(
        spec in small_disk(),
        arrivals in arrivals(),
    ) {
        let timely = run(&spec, &arrivals, true);
        prop_assert_eq!(timely.len(), arrivals.len());
        for (&(at, request), completion) in arrivals.iter().zip(&timely) {
            prop_assert_eq!(completion.id, request.id);
            let least = at + (spec.overhead_ms * 1e6) as u64;
            prop_assert!(completion.at.get() >= least, "{:?} at {}", completion, at);
        }
        prop_assert_eq!(&run(&spec, &arrivals, true), &timely);
        prop_assert_eq!(&run(&spec, &arrivals, false), &timely);
    }

    #[test]
    fn no_specification_panics(
        values in prop::array::uniform8(prop_oneof![any::<f64>(), -1e3..1e7]),
        sizes in any::<[u64; 4]>(),
    ) {
        let [rpm, track, average, outer, inner, bus, jitter, ageing] = values;
        let edges = [outer, inner];
        let mut spec = DriveSpec::new(Bytes::new(sizes[0]), rpm, [track, average], edges);
        spec.bus_mb_s = bus;
        spec.jitter_ms = jitter;
        spec.ageing = ageing;
        spec.read_ahead = Bytes::new(sizes[1]);
        spec.write_cache = Bytes::new(sizes[2]);
        if let Ok(mut drive) = Drive::new(&spec, 0) {
            closed_loop(&mut drive, 3, Nanos::ZERO, scattered(20, sizes[3].max(1)));
        }
    }
}
