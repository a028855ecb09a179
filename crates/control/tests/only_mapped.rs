//! Files that are mapped and have no descriptor left: no process can set their windows.

use foreread_control::POLICIES;
use model::Spec;
use sim::{
    Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Layout};

/// Page faults of one reader in a file of so many pages, under `auto`.
fn faults(
    model: &str,
    pages: u64,
    touched: impl Iterator<Item = u64>,
    only_mapped: bool,
) -> SimOutcome {
    let fault = |page: u64| ReadStep {
        open: 0,
        offset: Bytes::new(page * 4096),
        length: Bytes::new(4096),
        class: AccessClass::Random,
        start: Start::After(Nanos::ZERO),
        advice: None,
    };
    let policy = POLICIES.parse("auto").expect("a policy");
    let model = Spec::parse(model).expect("a model");
    let machine = SimMachine { policy, seed: 1, ..SimMachine::new(model) };
    let size = [Bytes::new(pages * 4096)];
    let steps: Vec<ReadStep> = touched.map(fault).collect();
    let scenario = Scenario {
        files: lay_out(&size, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO),
        opens: vec![SimOpenFile { only_mapped, ..SimOpenFile::new(0, AccessMethod::Mmap) }],
        readers: vec![Reader { steps: steps.into_iter() }],
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
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
