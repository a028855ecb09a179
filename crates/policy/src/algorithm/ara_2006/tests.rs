use super::*;
use crate::algorithm::testing::Bench;
use crate::cache::Memory;

/// Window: 1 MiB, the default of the patch.
fn bench(pages: u64) -> Bench<Ara2006> {
    Bench::with_window(Ara2006::new(50, 1), pages, 256)
}

fn memory(available: u64, aged: u64) -> Option<Memory> {
    Some(Memory {
        total: Pages::new(1 << 20),
        available: Pages::new(available),
        aged: Pages::new(aged),
        pending: Pages::ZERO,
    })
}

fn file(bench: &mut Bench<Ara2006>) -> OpenFile {
    bench.policy.files.get(0).cloned().unwrap_or_default()
}

#[test]
fn bounds_follow_memory() {
    let mut bench = bench(100);
    for (available, min, max) in [(1 << 30, 32, 256), (1 << 14, 5, 256), (200, 4, 100), (6, 1, 3)] {
        bench.stage.memory = memory(available, 0);
        assert_eq!(Bounds::from_cache(&bench.stage), Bounds { min, max }, "{available}");
    }
}

#[test]
fn a_request_is_the_safe_number_without_the_old_tail() {
    assert_eq!(adjust(256, 100, 20), Some((80, 10)));
    assert_eq!(adjust(64, 1000, 20), Some((64, 64)));
    assert_eq!(adjust(256, 20, 20), None);
    // The stream must move by a quarter of the request until the next mark: 0 + 64 − 64 < 16.
    assert_eq!(adjust(64, 1000, 0), Some((64, 48)));
}

#[test]
fn a_new_file_gets_the_average_use_of_new_files() {
    let mut bench = bench(1000);
    assert_eq!(bench.read(0, 1), [(0, 32)]);
    assert_eq!(bench.marked(), [28]);
    // A mostly unused file lowers the average by half of the waste.
    let mut short = self::bench(32);
    short.read(0, 1);
    short.close(0);
    assert_eq!(short.policy.averages.expect, (32 * 4096) - 31 * 4096 / 2);
    short.drop_pages(0..32);
    short.open(0);
    assert_eq!(short.read(0, 1), [(0, 16)]);
}

#[test]
fn windows_of_a_scan_are_limited_by_growth_then_by_the_device() {
    let mut bench = bench(100_000);
    let mut sizes = Vec::new();
    for page in 0..2000 {
        sizes.extend(bench.read(page, 1).into_iter().map(|(_, pages)| pages));
    }
    // request + max/16 + (2 + 50/64) × the old window: 1 + 16 + 2 × 32 = 81, then 179, then
    // the full window.
    assert_eq!(sizes[..3], [32, 81, 179]);
    assert!(sizes[3..].iter().all(|&pages| pages == 256), "{sizes:?}");
}

#[test]
fn windows_follow_the_thrashing_threshold() {
    let mut bench = bench(100_000);
    // The stream causes one in ten of the reads, so 200 of its pages survive in an inactive list of
    // 2000. It may use half of them.
    for page in 0..3000 {
        bench.stage.memory = memory(2000, page * 10);
        bench.read(page, 1);
    }
    let file = file(&mut bench);
    let size = file.readahead - file.ra_index;
    assert!((60..=100).contains(&size), "{size}");
    let thrash = bench.policy.averages.thrash / 4096;
    assert!((30..=100).contains(&thrash), "{thrash}");
}

#[test]
fn pages_close_to_eviction_are_rescued_and_none_is_read() {
    let mut bench = bench(100_000);
    bench.stage.memory = memory(40, 0);
    for page in 0..17 {
        bench.read(page, 1);
    }
    let file = file(&mut bench);
    bench.stage.memory = memory(40, 1_000_000);
    for page in 17..=file.lookahead {
        assert_eq!(bench.read(page, 1), [], "page {page}");
    }
    assert_eq!(bench.stage.rescued, [(file.lookahead, file.readahead - file.lookahead)]);
}

#[test]
fn an_evicted_window_is_read_again_in_smaller_requests() {
    let mut bench = bench(100_000);
    for page in 0..200 {
        bench.read(page, 1);
    }
    let before = file(&mut bench);
    bench.drop_pages(200..10_000);
    let again = bench.read(200, 1);
    assert_eq!(file(&mut bench).class, Class::Recovery);
    let expected =
        if 200 < before.ra_index { before.ra_index - 200 } else { before.hits[0] * 3 / 4 };
    assert_eq!(again, [(200, expected.clamp(1, 256))]);
    assert!(bench.policy.averages.thrash <= 32 * 4096);
}

#[test]
fn streams_that_share_an_open_file_are_found_by_their_cached_pages() {
    let mut bench = bench(100_000);
    for step in 0..200 {
        bench.read(5000 + step, 1);
        bench.read(50_000 + step, 1);
    }
    let calls = (200..400)
        .filter(|step| {
            let mut waits = false;
            for start in [5000, 50_000] {
                waits |= bench.stage.folio(Page::new(start + step)).is_none();
                bench.read(start + step, 1);
            }
            waits
        })
        .count();
    assert!(calls <= 4, "{calls} stalls");
}

#[test]
fn backward_reading_doubles_its_request_and_needs_no_mark() {
    let mut bench = bench(100_000);
    bench.read(5000, 4);
    // Twice the request, downwards from the last page, 5003; three of those pages are cached.
    assert_eq!(bench.read(4996, 4), [(4995, 5)]);
    let reads: Vec<_> = (1..40).flat_map(|step| bench.read(4996 - 4 * step, 4)).collect();
    assert!(reads.iter().any(|&(_, pages)| pages >= 12), "{reads:?}");
    assert!(bench.marked().is_empty());
}

#[test]
fn sequences_of_equal_length_are_expected_again() {
    let mut bench = bench(1 << 20);
    let mut last = Vec::new();
    for round in 1..12 {
        let start = 70_000 * (round * 7 % 13) + 100;
        last = (0..16).flat_map(|page| bench.read(start + page, 1)).collect();
    }
    assert_eq!(last.len(), 1, "{last:?}");
    assert!(last[0].1 >= 16);
}

#[test]
fn a_random_read_is_not_extended() {
    let mut bench = bench(100_000);
    assert_eq!(bench.read(7000, 3), [(7000, 3)]);
    assert_eq!(bench.read(90_000, 3), [(90_000, 3)]);
}

#[test]
fn a_short_rest_of_the_file_is_included() {
    let mut bench = bench(39);
    assert_eq!(bench.read(0, 1), [(0, 39)]);
    assert!(bench.marked().is_empty());
}

#[test]
fn nothing_is_read_ahead_without_a_window() {
    let mut bench = Bench::with_window(Ara2006::new(50, 1), 1000, 0);
    assert_eq!(bench.read(0, 3), [(0, 3)]);
}
