use super::*;

fn streams(active: u64, counts: ReadCounts) -> StreamSummary {
    StreamSummary {
        active,
        waiting: 1.0,
        counts,
        typical: Pages::new(32),
        most: LimitedWindow::new(Pages::new(2048), LimitReason::Memory),
        page: Bytes::new(4096),
        other_reads: counts.other_reads > 0,
        trials: true,
        others_seen: Nanos::MAX,
        mapped: false,
        inspects: false,
        shared: false,
        rests: false,
    }
}

/// Returns the windows that the search selects. `rates` maps a window to pages of streams and
/// to other reads, both per second.
fn climb(active: u64, rates: impl Fn(u64) -> (f64, f64)) -> Vec<u64> {
    let (mut climb, mut windows) = (WindowSearch::default(), vec![32]);
    let (mut progress, mut other_reads, mut others_seen) = (0.0, 0.0, Nanos::ZERO);
    climb.begin(Nanos::ZERO);
    for tick in 1..100 {
        let window = windows.last().copied().unwrap_or(32);
        let rate = rates(window);
        (progress, other_reads) = (progress + 0.1 * rate.0, other_reads + 0.1 * rate.1);
        let counts = ReadCounts {
            progress: progress as u64,
            forward: progress as u64 / window,
            other_reads: other_reads as u64,
            ..ReadCounts::default()
        };
        let now = Nanos::from_millis(100 * tick);
        others_seen = if rate.1 > 0.0 { now } else { others_seen };
        let other_reads = rate.1 > 0.0;
        let streams = StreamSummary { others_seen, other_reads, ..streams(active, counts) };
        let (window, _) = climb.step(now, &streams);
        let window = window.map_or(32, |window| window.pages.get());
        if windows.last() != Some(&window) {
            windows.push(window);
        }
    }
    windows
}

#[test]
fn streams_leap_and_keep_a_window_that_wins() {
    assert_eq!(climb(1, |window| (window as f64 * 100.0, 0.0)), [32, 512, 128, 512]);
    assert_eq!(climb(1, |_| (10_000.0, 0.0)), [32, 512, 32, 128, 32]);
    let rate = |window| 10_000.0 + window as f64 * 10.0;
    assert_eq!(climb(8, |window| (rate(window), 0.0)), [32, 512, 2048]);
}

#[test]
fn after_a_leap_a_smaller_window_may_be_better() {
    let rate = |window| if window == 128 { 40_000.0 } else { 10_000.0 + window as f64 * 10.0 };
    assert_eq!(climb(1, |window| (rate(window), 0.0)), [32, 512, 128]);
}

#[test]
fn what_does_harm_is_taken_back_and_less_is_tried() {
    let rate = |window| if window > 600 { 5_000.0 } else { 10_000.0 + window as f64 * 10.0 };
    assert_eq!(climb(8, |window| (rate(window), 0.0)), [32, 512, 2048, 512]);
}

#[test]
fn what_wins_nothing_may_have_been_too_much() {
    let rate = |window| if window == 128 { 12_000.0 } else { 10_000.0 };
    assert_eq!(climb(8, |window| (rate(window), 0.0)), [32, 512, 32, 128]);
}

#[test]
fn what_is_taken_from_others_is_given_back() {
    // Doubling the window costs other readers 7 % of their reads, quadrupling it 20 %.
    let other_reads = |window: u64| 1000.0 * 0.93_f64.powf(window as f64 / 32.0 - 1.0);
    let windows = climb(2, |window| (window as f64 * 300.0, other_reads(window)));
    assert_eq!(windows, [32, 512, 32]);
}

/// Returns the window that a single reader gets whose pages per second do not depend on it, at
/// each tick; it computes for a while after the first trial has begun.
fn windows_of_a_sort(rests: bool) -> Vec<u64> {
    let (mut climb, mut counts) = (WindowSearch::default(), ReadCounts::default());
    climb.begin(Nanos::ZERO);
    let mut trial_since = None;
    let windows = (1..40).map(|tick| {
        let computes = trial_since.is_some_and(|since| (1..=5).contains(&(tick - since)));
        if !computes {
            counts.progress += if trial_since.is_some() { 1500 } else { 1000 };
            counts.forward += 20;
        }
        let streams = StreamSummary { rests: rests && computes, ..streams(1, counts) };
        let (window, _) = climb.step(Nanos::from_millis(100 * tick), &streams);
        trial_since = trial_since.or(climb.is_trying().then_some(tick));
        window.map_or(32, |window| window.pages.get())
    });
    windows.collect()
}

#[test]
fn time_in_which_a_program_computes_does_not_count() {
    let first_failed = |windows: Vec<u64>| windows.windows(2).any(|two| two == [512, 32]);
    assert!(first_failed(windows_of_a_sort(false)));
    assert!(!first_failed(windows_of_a_sort(true)));
}

#[test]
fn a_search_goes_on_once_much_larger_windows_are_allowed() {
    let trials_with = |most: u64| {
        let (mut climb, mut counts) = (WindowSearch::default(), ReadCounts::default());
        climb.begin(Nanos::ZERO);
        let trying = (1..50).map(|tick| {
            counts.progress += 2000;
            counts.forward += 20;
            let most = if tick < 20 { 32 } else { most };
            let most = LimitedWindow::new(Pages::new(most), LimitReason::Runs);
            let now = Nanos::from_millis(100 * tick);
            climb.step(now, &StreamSummary { most, ..streams(8, counts) });
            climb.is_trying()
        });
        trying.filter(|trying| *trying).count()
    };
    assert_eq!(trials_with(32), 0);
    assert_eq!(trials_with(256), 0, "not before the next search");
    assert!(trials_with(512) > 0);
}

#[test]
fn nobody_beside_the_streams_is_starved() {
    let windows = climb(1, |window| (window as f64 * 300.0, 3000.0 / window as f64));
    assert_eq!(windows.last(), Some(&32), "{windows:?}");
}

#[test]
fn readers_beside_who_have_ended_are_not_starved() {
    // Other reads occur only while the window has its initial size.
    let rate = |window| (10_000.0 + window as f64, if window > 32 { 0.0 } else { 500.0 });
    let windows = climb(2, rate);
    assert!(windows.last() > Some(&32), "{windows:?}");
}

#[test]
fn a_few_reads_beside_that_have_ended_are_no_verdict() {
    // A program reads its catalog before it scans a table.
    let rate = |window| (10_000.0 + window as f64, if window > 32 { 0.0 } else { 12.0 });
    let windows = climb(1, rate);
    assert!(windows.last() > Some(&32), "{windows:?}");
}

#[test]
fn a_window_that_is_plainly_slower_is_taken_back_early() {
    // Even if other reads are so rare that a trial takes long to show its effect on them.
    // Beside them, windows grow less, and fewer pages show a loss.
    for (others_every, least) in [(0, 5), (2, 2)] {
        let (mut climb, mut all, mut slow) = (WindowSearch::default(), ReadCounts::default(), 0);
        climb.begin(Nanos::ZERO);
        for tick in 1..200_u64 {
            // A third of the rate with the larger window.
            let tried = climb.window.is_some();
            slow += u64::from(tried);
            all.progress += if tried { 100 } else { 300 };
            all.forward += 10;
            all.other_reads += u64::from(others_every > 0 && tick % others_every == 0);
            let most = LimitedWindow::new(Pages::new(128), LimitReason::Memory);
            let inspects = tick < 100;
            let now = Nanos::from_millis(25 * tick);
            climb.step(now, &StreamSummary { most, inspects, ..streams(8, all) });
            assert!(!(inspects && climb.is_trying()), "a mapping is inspected at the same time");
        }
        // At 12,000 pages per second, 10 windows of 128 pages take 107 ms.
        assert!((least..=10).contains(&slow), "{slow} intervals of 25 ms");
    }
}

#[test]
fn other_work_is_no_verdict() {
    let mut climb = WindowSearch::default();
    climb.begin(Nanos::ZERO);
    let mut counts = ReadCounts::default();
    for tick in 1..=10 {
        // A scan until the first trial starts, random reads afterwards.
        if tick <= 2 {
            (counts.progress, counts.forward) = (counts.progress + 2000, counts.forward + 20);
        } else {
            (counts.progress, counts.elsewhere) = (counts.progress + 10, counts.elsewhere + 10);
        }
        let (_, outcome) = climb.step(Nanos::from_millis(100 * tick), &streams(1, counts));
        assert!(!matches!(outcome, SearchOutcome::Lowered(_)), "{outcome:?} at {tick}");
    }
}
