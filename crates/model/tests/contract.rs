//! Properties that every device must have, whatever its specification.
#![allow(clippy::unwrap_used)] // a test may panic

use std::collections::BTreeMap;

use foreread_model::{Completion, Device, Request, RequestId, RequestKind, Spec, presets};
use proptest::prelude::*;
use units::{Bytes, Nanos};

/// A preset with some values changed to other valid ones.
fn spec() -> impl Strategy<Value = Spec> {
    let names: Vec<&str> = presets().iter().map(|preset| preset.name).collect();
    let value = prop::sample::select(vec![
        "0",
        "0.5",
        "1",
        "2",
        "3",
        "4",
        "7",
        "16",
        "100",
        "5000",
        "4K",
        "64K",
        "1M",
        "20M",
        "1G",
        "true",
        "false",
        "fifo",
        "nearest",
        "raid0",
        "raid1",
        "raid10",
        "raid5",
        "raid6",
        "primary",
        "shortest-queue",
        "round-robin",
        "split",
        "gmirror-load",
        "md",
        "megaraid-arm",
        "alternate-rows",
        "passing",
        "track",
        "nothing",
    ]);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), value), 0..40);
    (prop::sample::select(names), changes).prop_map(|(name, changes)| {
        let mut spec = Spec::preset(name).unwrap();
        let keys = spec.keys();
        for (key, value) in changes {
            let mut changed = spec.clone();
            let taken = changed.set(&keys[key.index(keys.len())], value).is_ok();
            if taken && changed.validate().is_ok() {
                spec = changed;
            }
        }
        spec
    })
}

fn kind() -> impl Strategy<Value = RequestKind> {
    prop_oneof![
        8 => Just(RequestKind::Read),
        4 => Just(RequestKind::Write),
        1 => Just(RequestKind::Flush),
    ]
}

/// Requests with the time before each; runs and jumps, most of them within the device.
fn requests() -> impl Strategy<Value = Vec<(u64, Request)>> {
    let offset = prop_oneof![
        6 => (0u64..64).prop_map(|index| index << 16),
        4 => 0u64..(1 << 40),
        1 => any::<u64>(),
    ];
    let length = prop_oneof![
        8 => (1u64..64).prop_map(|pages| pages << 12),
        2 => 0u64..(4 << 20),
        1 => any::<u64>().prop_map(|length| length >> 38),
    ];
    let gap = prop_oneof![2 => Just(0u64), 4 => 0u64..2_000_000, 1 => 0u64..200_000_000];
    prop::collection::vec((gap, kind(), offset, length), 1..60).prop_map(|list| {
        let number = |(id, (gap, kind, offset, length)): (usize, _)| {
            let (offset, length) = (Bytes::new(offset), Bytes::new(length));
            (gap, Request { id: RequestId(id as u64), kind, offset, length })
        };
        list.into_iter().enumerate().map(number).collect()
    })
}

/// When a caller advances a device.
#[derive(Clone, Copy)]
enum Caller {
    /// At every wake time.
    Prompt,
    /// When it submits a request, and at some other times.
    Late,
}

/// Returns the times of all completions; checks that they are in order and not too early.
fn drive(device: &mut dyn Device, list: &[(u64, Request)], caller: Caller) -> BTreeMap<u64, Nanos> {
    let (mut now, mut times) = (Nanos::ZERO, BTreeMap::new());
    let mut arrivals = BTreeMap::new();
    let mut done: Vec<Completion> = Vec::new();
    let mut note = |now: Nanos, done: &mut Vec<Completion>, arrivals: &BTreeMap<u64, Nanos>| {
        assert!(done.is_sorted_by_key(|completion| completion.at), "out of order");
        for completion in done.drain(..) {
            assert!(completion.at <= now, "handed out before it happened");
            assert!(completion.at >= arrivals[&completion.id.0], "done before it arrived");
            assert!(times.insert(completion.id.0, completion.at).is_none(), "done twice");
        }
    };
    for (index, (gap, request)) in list.iter().enumerate() {
        let arrival = now + Nanos::new(*gap);
        while let (Caller::Prompt, Some(wake)) = (caller, device.next_wake()) {
            if wake > arrival {
                break;
            }
            now = now.max(wake);
            device.advance(now, &mut done);
            assert!(device.next_wake().is_none_or(|next| next > now), "no progress");
            note(now, &mut done, &arrivals);
        }
        now = arrival;
        arrivals.insert(request.id.0, now);
        device.submit(now, *request);
        if index % 5 == 4 {
            device.advance(now, &mut done);
            note(now, &mut done, &arrivals);
        }
    }
    let mut steps = 0;
    while let Some(wake) = device.next_wake() {
        now = match caller {
            Caller::Prompt => now.max(wake),
            Caller::Late => now.max(wake) + Nanos::from_secs(3600),
        };
        device.advance(now, &mut done);
        note(now, &mut done, &arrivals);
        steps += 1;
        assert!(steps < 1_000_000, "it never ends");
    }
    assert_eq!(device.in_flight(), 0);
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn each_request_completes_once_and_a_late_caller_changes_nothing(
        spec in spec(),
        list in requests(),
        seed in any::<u64>(),
    ) {
        let build = || spec.build(seed).unwrap();
        let mut device = build();
        let prompt = drive(&mut *device, &list, Caller::Prompt);
        prop_assert_eq!(prompt.len(), list.len());
        prop_assert_eq!(device.counters().requests, list.len() as u64);
        let late = drive(&mut *build(), &list, Caller::Late);
        prop_assert_eq!(&prompt, &late, "{}", spec.to_toml());
        let again = drive(&mut *build(), &list, Caller::Prompt);
        prop_assert_eq!(&prompt, &again);
    }
}

/// Runs `depth` closed loops for `span`; returns the number of requests and bytes completed.
fn closed(spec: &str, depth: u64, length: u64, random: bool, span: Nanos) -> (u64, u64) {
    let spec = Spec::parse(spec).unwrap();
    let mut device = spec.build(5).unwrap();
    let pages = spec.capacity().get() / length;
    let (mut next, mut done, mut count) = (0u64, Vec::new(), 0);
    let mut submit = |device: &mut dyn Device, at: Nanos| {
        let place = if random { next.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pages } else { next };
        let (offset, length) = (Bytes::new(place * length), Bytes::new(length));
        let (id, kind) = (RequestId(next), RequestKind::Read);
        device.submit(at, Request { id, kind, offset, length });
        next += 1;
    };
    for _ in 0..depth {
        submit(&mut *device, Nanos::ZERO);
    }
    while let Some(now) = device.next_wake().filter(|&wake| wake <= span) {
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            count += 1;
            submit(&mut *device, completion.at);
        }
    }
    (count, count * length)
}

const MIB: f64 = 1_048_576.0;

#[test]
fn buckets_hold_their_rates_over_long_spans() {
    let span = Nanos::from_secs(30);
    let (ios, _) = closed("cloud-ssd", 64, 4096, true, span);
    assert!((89_000..=90_000 + 30).contains(&ios), "{ios} random reads");
    let (_, bytes) = closed("cloud-ssd", 64, 256 << 10, false, span);
    let rate = bytes as f64 / MIB / 30.0;
    assert!((124.0..125.1).contains(&rate), "{rate} MiB/s");
    let (_, bytes) = closed("cloud-hdd,throughput_burst=1G", 16, 1 << 20, false, span);
    let rate = (bytes as f64 / MIB - 1024.0) / 30.0;
    assert!((39.0..40.1).contains(&rate), "{rate} MiB/s");
}

#[test]
fn small_sequential_requests_are_priced_as_if_merged() {
    let span = Nanos::from_secs(10);
    let (sequential, _) = closed("cloud-ssd,throughput_mib_s=0", 64, 16 << 10, false, span);
    let (random, _) = closed("cloud-ssd,throughput_mib_s=0", 64, 16 << 10, true, span);
    assert!(random < 30_100, "{random}");
    assert!(sequential > 10 * random, "{sequential} against {random}");
    let (random, _) = closed("cloud-hdd", 16, 16 << 10, true, span);
    assert!((2400..=2520).contains(&random), "a random read costs a whole unit: {random}");
}

#[test]
fn a_cloud_disk_out_of_credit_falls_to_its_base_rate() {
    let words = "cloud-hdd,throughput_burst=2G";
    let (_, early) = closed(words, 16, 1 << 20, false, Nanos::from_secs(5));
    assert!(early as f64 / MIB / 5.0 > 240.0);
    let (_, late) = closed(words, 16, 1 << 20, false, Nanos::from_secs(60));
    assert!((late - early) as f64 / MIB / 55.0 < 80.0);
}

#[test]
fn flash_meets_its_data_sheet() {
    let span = Nanos::from_millis(500);
    let rate = |count: u64| count as f64 / span.as_secs_f64();
    let (alone, _) = closed("nvme", 1, 4096, true, span);
    assert!((75.0..85.0).contains(&(1e6 / rate(alone))), "{} µs", 1e6 / rate(alone));
    let (deep, _) = closed("nvme", 512, 4096, true, span);
    assert!((800e3..860e3).contains(&rate(deep)), "{} a second", rate(deep));
    let (_, bytes) = closed("nvme", 32, 1 << 20, false, span);
    assert!((6500e6..6901e6).contains(&(bytes as f64 / span.as_secs_f64())));
    let (alone, _) = closed("ssd-sata", 1, 4096, true, span);
    assert!((110.0..125.0).contains(&(1e6 / rate(alone))));
    let (deep, _) = closed("ssd-sata", 32, 4096, true, span);
    assert!((90e3..100e3).contains(&rate(deep)), "{} a second", rate(deep));
}

#[test]
fn a_modern_disk_meets_its_published_rates() {
    let span = Nanos::from_secs(20);
    let (alone, _) = closed("hdd-modern", 1, 4096, true, span);
    assert!((72..=90).contains(&(alone / 20)), "{} a second", alone / 20);
    let (deep, _) = closed("hdd-modern", 32, 4096, true, span);
    assert!((150..=240).contains(&(deep / 20)), "{} a second", deep / 20);
}

#[test]
fn arrays_add_up_their_members() {
    let span = Nanos::from_secs(5);
    let rate = |words: &str| {
        let (_, bytes) = closed(words, 16, 1 << 20, false, span);
        bytes as f64 / 1e6 / span.as_secs_f64()
    };
    // Reads skip one parity chunk in each row: the rate is three quarters of four disks.
    let parity = rate("raid5-2012");
    assert!((400.0..455.0).contains(&parity), "{parity} MB/s");
    let stripes = rate("raid5-2012,level=raid0");
    assert!((560.0..605.0).contains(&stripes), "{stripes} MB/s");
    let one = rate("mirror-2010,read_policy=primary");
    assert!((81.5..85.0).contains(&one), "{one} MB/s");
}

#[test]
fn no_device_promises_less_than_it_does() {
    for preset in presets().iter().filter(|preset| preset.name != "zero") {
        let peak = preset.spec().unwrap().peak();
        let span = Nanos::from_millis(500);
        let (_, bytes) = closed(preset.name, 64, 1 << 20, false, span);
        let rate = bytes as f64 / span.as_secs_f64();
        assert!(rate <= 1.05 * peak.throughput.get(), "{}: {rate} of {peak:?}", preset.name);
        let (count, _) = closed(preset.name, 64, 4096, false, span);
        let rate = count as f64 / span.as_secs_f64();
        assert!(rate <= 1.05 * peak.requests, "{}: {rate} of {peak:?}", preset.name);
    }
}

#[test]
fn small_writes_to_parity_read_first_and_whole_rows_do_not() {
    let spec = Spec::parse("raid5-2012,write_cache=0,jitter_ms=0").unwrap();
    let time = |length: u64| {
        let mut device = spec.build(3).unwrap();
        let (id, kind) = (RequestId(0), RequestKind::Write);
        let (offset, length) = (Bytes::ZERO, Bytes::new(length));
        device.submit(Nanos::ZERO, Request { id, kind, offset, length });
        let mut done = Vec::new();
        while let Some(wake) = device.next_wake() {
            device.advance(wake, &mut done);
        }
        done[0].at
    };
    // Reading and then writing the same place takes one rotation more than writing it.
    let (small, row) = (time(4096), time((3 * 512) << 10));
    assert!(small > Nanos::from_millis(8), "{small}");
    assert!(row < small + Nanos::from_millis(8), "{row}");
}

/// Submits each request when the previous one is complete; returns their service times.
fn one_by_one(spec: &Spec, list: &[(RequestKind, u64, u64)]) -> (Vec<Nanos>, Box<dyn Device>) {
    let mut device = spec.build(9).unwrap();
    let (mut now, mut done, mut times) = (Nanos::ZERO, Vec::new(), Vec::new());
    for (id, &(kind, offset, length)) in list.iter().enumerate() {
        let (offset, length) = (Bytes::new(offset), Bytes::new(length));
        device.submit(now, Request { id: RequestId(id as u64), kind, offset, length });
        while done.is_empty() {
            let wake = device.next_wake().unwrap();
            device.advance(wake, &mut done);
        }
        let at = done.pop().unwrap().at;
        times.push(at - now);
        now = at;
    }
    (times, device)
}

#[test]
fn a_controller_reads_ahead_of_runs_only() {
    let spec = Spec::parse("raid10-2008,device.jitter_ms=0,prefetch=1M").unwrap();
    let read = |offset| (RequestKind::Read, offset, 65536);
    let run: Vec<_> = (0..64).map(|index| read(index << 16)).collect();
    let (times, device) = one_by_one(&spec, &run);
    assert!(device.counters().cache_hits > 50, "{:?}", device.counters());
    assert!(times[63] < Nanos::from_millis(1), "{}", times[63]);
    let jumps: Vec<_> = (0..64).map(|index| read(((index * 37) % 64) << 30)).collect();
    let (_, device) = one_by_one(&spec, &jumps);
    assert_eq!(device.counters().cache_hits, 0);
    assert_eq!(device.counters().requests, 64);
}

#[test]
fn a_safe_write_cache_answers_before_the_disks_do() {
    let write = [(RequestKind::Write, 5 << 30, 65536), (RequestKind::Flush, 0, 0)];
    let words = "raid10-2008,disk.write_cache=0,device.write_cache=";
    let (through, _) = one_by_one(&Spec::parse(&format!("{words}0")).unwrap(), &write);
    let (back, _) = one_by_one(&Spec::parse(&format!("{words}64M")).unwrap(), &write);
    assert!(back[0] < Nanos::from_millis(1) && back[1] < Nanos::from_millis(1), "{back:?}");
    assert!(through[0] > Nanos::from_millis(2), "{through:?}");
}

#[test]
fn a_mirror_writes_to_all_and_reads_from_one() {
    let spec = Spec::parse("mirror-2010,disk.write_cache=0,disk.read_ahead=0").unwrap();
    let place = 100 << 30;
    let busy = |kind| {
        let (_, device) = one_by_one(&spec, &[(kind, place, 4096)]);
        device.counters().seeks
    };
    assert_eq!((busy(RequestKind::Read), busy(RequestKind::Write)), (1, 2));
}
