use super::*;

const STEPS: TrendSteps =
    TrendSteps { last: 100, step: 10, len: 2, before: 0, is_gapless: false, is_filled: false };

fn trend(reads: impl IntoIterator<Item = (u64, u64)>) -> Option<TrendSteps> {
    let mut trend = Trend::default();
    reads.into_iter().for_each(|(index, pages)| trend.read(index, pages, false));
    trend.steps(true)
}

/// Returns the pages of adjacent backward reads of these sizes in bytes.
fn backward(sizes: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut end = 64 << 20;
    let reads = sizes.into_iter().map(|size| {
        let start = end - size;
        let first = start / 4096;
        let pages = (end - 1) / 4096 + 1 - first;
        end = start;
        (first, pages)
    });
    reads.collect()
}

#[test]
fn uneven_blocks_that_are_read_backward_have_a_trend() {
    let even = trend(backward([3809; 40])).expect("blocks of RocksDB");
    assert!(even.is_gapless && even.step == -16, "{even:?}");
    let twice = backward([3809; 40]).into_iter().flat_map(|read| [read; 2]);
    assert_eq!(trend(twice), Some(even), "two reports of one read are one");
    let uneven = trend(backward((0..40).map(|n| 900 + n * n * 7919 % 30_000)));
    assert!(uneven.is_some_and(|steps| steps.is_gapless && steps.step < 0), "{uneven:?}");
}

#[test]
fn a_read_now_and_then_from_elsewhere_does_not_hide_a_trend() {
    let reads = (0..60).map(|n| if n % 5 == 4 { (n * 7919, 1) } else { (90_000 - n, 1) });
    assert!(trend(reads).is_some_and(|steps| steps.is_gapless), "four of five go backward");
}

#[test]
fn steps_are_told_from_random_reads() {
    let steps = trend((0..20).map(|n| (n * 64, 16)));
    assert_eq!(steps.map(|it| (it.step, it.len, it.is_gapless)), Some((64, 16, false)));
    assert_eq!(trend((0..40).map(|n| (n * n * 7919 % 100_003, 1))), None);
    assert_eq!(trend([(5, 1); 50]), None, "the same page over and over");
}

#[test]
fn what_the_kernel_foresees_needs_no_plan_unless_it_was_forbidden_to_read_ahead() {
    let mut trend = Trend::default();
    (0..20).for_each(|n| trend.read(n * 3, 3, false));
    assert_eq!(trend.steps(true), None);
    assert!(trend.steps(false).is_some_and(|steps| steps.is_gapless && steps.step > 0));
    // The distance between marks is the size of the window.
    let mut trend = Trend::default();
    (0..20).for_each(|n| trend.read(n * 32, 1, true));
    assert_eq!(trend.steps(true), None);
}

#[test]
fn what_a_reader_leaves_out_of_a_run_is_seen() {
    let mut trend = Trend::default();
    // Every other page. The kernel reads four at a time, so every second read hits the cache.
    (1..20).for_each(|n| trend.record_gap(4 * n, 1, 4 * n - 1));
    let steps =
        TrendSteps { last: 76, step: 2, len: 1, before: 0, is_gapless: false, is_filled: true };
    assert_eq!(trend.steps(true), Some(steps));
    trend.record_gap(80, 1, 80);
    assert_eq!(trend.steps(true), None, "it leaves out nothing any more");
}

#[test]
fn after_a_plan_in_vain_a_longer_trend_is_needed() {
    let mut trend = Trend::default();
    let mut at = 1 << 30;
    let mut run = |trend: &mut Trend, reads: u64| {
        at -= 1 << 20;
        (0..reads).for_each(|n| trend.read(at - n, 1, false));
        trend.steps(true)
    };
    let steps = run(&mut trend, 10).expect("a trend");
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, MAX_SKIP, Arc::default());
    plan.due(Pages::new(1 << 30), &share(1 << 20));
    trend.end(&plan);
    assert_eq!(run(&mut trend, 10), None);
    assert!(run(&mut trend, 60).is_some());
}

/// What may be skipped if a request takes as long as 64 pages.
const MAX_SKIP: Pages = Pages::new(64);

fn share(most: u64) -> WindowShare {
    let (most, memory) = (Pages::new(most), Pages::new(1 << 20));
    WindowShare { most, memory, is_tight: false, is_squeezed: false }
}

fn extents(plan: &mut TrendPlan, file: u64) -> Vec<(u64, u64)> {
    let due = plan.due(Pages::new(file), &share(1 << 20));
    due.iter().map(|piece| (piece.start.get(), piece.pages.get())).collect()
}

#[test]
fn steps_are_foreseen_up_to_the_end_of_the_file() {
    let mut plan = TrendPlan::new(STEPS, Nanos::ZERO, MAX_SKIP, Arc::default());
    assert_eq!(extents(&mut plan, 145), [(110, 2), (120, 2), (130, 2), (140, 2)]);
    assert_eq!(extents(&mut plan, 145), []);
    plan.reader_at(120, Some(1), Nanos::ZERO);
    plan.position(Bytes::new(132 * 4096), Bytes::new(4096), Nanos::from_secs(1));
    assert_eq!(plan.at, 4);
    assert!(!plan.is_over(Nanos::from_secs(2)) && plan.is_over(Nanos::from_secs(9)));
}

#[test]
fn a_plan_ends_when_most_reads_are_elsewhere() {
    let mut plan = TrendPlan::new(STEPS, Nanos::ZERO, MAX_SKIP, Arc::default());
    (0..30).for_each(|n| {
        plan.reader_at(if n % 4 == 3 { 7 } else { 110 + n * 10 }, Some(1), Nanos::ZERO)
    });
    assert!(!plan.is_over(Nanos::ZERO), "three of four were foreseen");
    (0..10).for_each(|n| plan.reader_at(5_000_000 + n * 77, Some(1), Nanos::ZERO));
    assert!(plan.is_over(Nanos::ZERO));
}

/// Returns a plan over all pages from page 100,000 backward after 20 reads of 16 pages each, which
/// skip `skipped` times as many. Without samples, all of these pages have been prefetched.
fn skipping(max_skip: Pages, skipped: u64, is_sampled: bool) -> TrendPlan {
    let steps = TrendSteps::gapless(100_000, -16);
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, max_skip, Arc::default());
    for read in 0..20 {
        let first = 100_000 - (read + 1) * 16 * (1 + skipped);
        let pages = is_sampled.then_some(16);
        if !is_sampled {
            plan.due(Pages::new(1 << 20), &share(1 << 20));
        }
        plan.reader_at(first, pages, Nanos::ZERO);
        // The rest of it, forward.
        (1..4).for_each(|page| plan.reader_at(first + page * 16, pages, Nanos::ZERO));
    }
    plan.interval(max_skip);
    plan
}

#[test]
fn a_plan_ends_if_it_costs_more_to_read_what_is_skipped_than_to_request_it_later() {
    let is_over =
        |max_skip: u64, skipped| skipping(Pages::new(max_skip), skipped, true).is_over(Nanos::ZERO);
    assert!(is_over(20, 2), "32 pages");
    assert!(!is_over(20, 1) && !is_over(20, 0));
    assert!(!is_over(100, 2), "each request seeks");
    assert!(!skipping(Pages::new(20), 2, false).is_over(Nanos::ZERO), "it may have read them");
}

#[test]
fn forward_reads_of_uneven_size_skip_nothing() {
    let steps = TrendSteps::gapless(0, 16);
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, Pages::new(20), Arc::default());
    let mut page = 16;
    for read in 0..40 {
        let pages = if read % 2 == 0 { 256 } else { 1 };
        plan.reader_at(page, Some(pages), Nanos::ZERO);
        page += pages;
    }
    assert!(!plan.is_over(Nanos::ZERO));
    assert_eq!(plan.passed, page / 16, "up to the piece of the last page");
}

#[test]
fn the_pace_of_a_reader_is_without_jumps() {
    let pace = |max_skip: u64| skipping(Pages::new(max_skip), 2, true).pace;
    assert_eq!((pace(100), pace(20)), (60, 20));
}

#[test]
fn what_is_read_backward_is_joined_and_ends_at_the_first_page() {
    let steps = TrendSteps::gapless(60, -16);
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, MAX_SKIP, Arc::default());
    assert_eq!(extents(&mut plan, 1000), [(0, 60)]);
    plan.reader_at(28, None, Nanos::ZERO);
    assert_eq!(plan.at, 3, "two pieces of sixteen pages were read");
}

#[test]
fn lateness_looks_further_within_bounds() {
    let steps = TrendSteps { last: 0, step: 4, len: 1, ..STEPS };
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, MAX_SKIP, Arc::default());
    for _ in 0..30 {
        plan.late(&share(100));
    }
    assert_eq!(plan.depth, Tuning::DEFAULT.min_room, "its pace is not known");
    assert_eq!(plan.due(Pages::new(1 << 30), &share(40)).len(), 40);
}

/// Returns the start and size of the next extent for a reader that waits, and passes one piece per
/// interval without the gaps and `with` with them. `most`: the pages that cost less than a request.
fn left_out(step: u64, with: u64, most: u64) -> (u64, u64) {
    let (steps, most) =
        (TrendSteps { last: 0, step: step.cast_signed(), len: 1, ..STEPS }, Pages::new(most));
    let mut plan = TrendPlan::new(steps, Nanos::ZERO, most, Arc::default());
    let (mut page, mut with_gaps) = (0, false);
    for interval in 1..=40 {
        page += step * if with_gaps { with } else { 2 };
        plan.reader_at(page, Some(1), Nanos::ZERO);
        plan.interval(most);
        let now = Nanos::from_millis(100 * interval);
        let verdict = plan.judge_gaps(now, Some(1e6).filter(|_| interval < 9));
        with_gaps = verdict.unwrap_or(with_gaps || plan.piece() > 1);
    }
    let due = plan.due(Pages::new(1 << 20), &share(1 << 20));
    (due[0].start.get() - page, due[0].pages.get())
}

#[test]
fn what_is_left_out_is_read_only_where_single_pieces_are_slower() {
    assert_eq!(left_out(4, 2, 64), (4, 1));
    assert_eq!(left_out(4, 8, 64), (4, 32), "eight pieces in one");
    assert_eq!(left_out(4, 8, 2), (4, 1), "another request takes less time");
    assert_eq!(left_out(40, 8, 64), (40, 1), "too much would be read in vain");
}

#[test]
fn what_is_left_out_fills_memory_like_all_else() {
    let steps = TrendSteps { last: 0, step: 50, len: 1, ..STEPS };
    let plan = TrendPlan {
        gaps: GapTrial::won(),
        pace: 100,
        ..TrendPlan::new(steps, Nanos::ZERO, MAX_SKIP, Arc::default())
    };
    assert_eq!(plan.room(&WindowShare { memory: Pages::new(2000), ..share(100) }), 40);
}

#[test]
fn steps_through_a_mapping_bring_what_the_kernel_reads_around_a_fault() {
    let share = share(1024);
    let ordered = |steps: TrendSteps| {
        let mut plan = TrendPlan::new(steps, Nanos::ZERO, MAX_SKIP, Arc::default());
        let due = plan.due(Pages::new(1 << 20), &share);
        let on_the_way = steps.last.wrapping_add_signed(3 * steps.step + 1);
        for _ in 0..8 {
            plan.reader_at(on_the_way, Some(1), Nanos::ZERO);
        }
        (due[0].start.get(), due[0].pages.get(), plan.is_over(Nanos::ZERO))
    };
    let steps = TrendSteps { last: 5000, step: 96, len: 1, ..STEPS };
    assert_eq!(ordered(steps), (5096, 1, true), "the page behind is another read");
    assert_eq!(ordered(steps.with_window(Pages::new(32))), (5081, 32, false));
    let back = TrendSteps { step: -96, ..steps }.with_window(Pages::new(32));
    assert_eq!(ordered(back), (4889, 32, false));
    assert_eq!(steps.with_window(Pages::new(256)).len, 96, "no page twice");
}
