//! Files that are mapped and have no descriptor left: no process can set their windows.

mod touches;

use sim::{SimOpenFile, SimOutcome};
use touches::touch;
use workload::AccessMethod;

/// Page faults of one reader in a file of so many pages, under `auto`.
fn faults(
    model: &str,
    pages: u64,
    touched: impl Iterator<Item = u64>,
    only_mapped: bool,
) -> SimOutcome {
    let open = |file| SimOpenFile { only_mapped, ..SimOpenFile::new(file, AccessMethod::Mmap) };
    touch("auto", model, &[pages], open, touched.map(|page| (0, page)))
}

/// Faults at random places of a file of 2 GiB.
fn random_faults(only_mapped: bool) -> SimOutcome {
    const PAGES: u64 = 1 << 19;
    let place = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45) % PAGES;
    faults("ssd-sata", PAGES, (0..4000).map(place), only_mapped)
}

#[test]
fn its_window_is_not_set() {
    let windows = |outcome: &SimOutcome| {
        let decisions = outcome.policy_stats.decisions.iter();
        decisions.filter(|(_, text)| text.starts_with("0: window")).count()
    };
    let (with, without) = (random_faults(false), random_faults(true));
    assert!(windows(&with) > 0, "{:?}", with.policy_stats);
    assert_eq!(windows(&without), 0, "{:?}", without.policy_stats);
    assert!(with.device.bytes < without.device.bytes);
}

#[test]
fn a_file_that_is_read_forward_at_several_places_is_primed() {
    // Four quarters of 128 MiB, each forward, in runs of 20 to 83 pages.
    let mut next = [0_u64; 4];
    let touched = (0..500_u64).flat_map(move |run| {
        let drawn = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let quarter = drawn as usize % 4;
        let start = next[quarter];
        next[quarter] += 20 + drawn / 4 % 64;
        (start..next[quarter]).map(move |page| quarter as u64 * 8192 + page)
    });
    let outcome = faults("hdd-2008", 32_768, touched, true);
    let decisions = &outcome.policy_stats.decisions;
    let primes = decisions.iter().any(|(_, why)| why.contains("come in"));
    assert!(primes, "{decisions:?}");
}

#[test]
fn files_are_prefetched_as_a_whole_at_the_first_fault() {
    // Tables of 2 MiB of a database, one after another in no order of names, each read completely
    // but in no order.
    const FILES: u64 = 101;
    const PAGES: u64 = 512;
    let touched = (0..FILES * PAGES).map(|touch| {
        let file = touch / PAGES * 37 % FILES;
        (file as u32, touch * 333 % PAGES)
    });
    let time = |policy| {
        let open =
            |file| SimOpenFile { only_mapped: true, ..SimOpenFile::new(file, AccessMethod::Mmap) };
        touch(policy, "hdd-2008", &[PAGES; FILES as usize], open, touched.clone())
    };
    let (without, with) = (time("linux-6.18"), time("auto"));
    let decisions = &with.policy_stats.decisions;
    assert!(decisions.iter().any(|(_, text)| text.contains("on its next miss")), "{decisions:?}");
    let gain = without.elapsed.as_secs_f64() / with.elapsed.as_secs_f64();
    assert!(gain > 1.5, "{gain}");
}
