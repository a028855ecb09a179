//! Files that are mapped and have no descriptor left: no process can set their windows.

use foreread_control::POLICIES;
use model::Spec;
use sim::{
    Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Layout};

/// Page faults at random places of a file of 2 GiB, under `auto`.
fn random_faults(only_mapped: bool) -> SimOutcome {
    const PAGES: u64 = 1 << 19;
    let fault = |number: u64| ReadStep {
        open: 0,
        offset: Bytes::new((number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45) % PAGES * 4096),
        length: Bytes::new(4096),
        class: AccessClass::Random,
        start: Start::After(Nanos::ZERO),
        advice: None,
    };
    let policy = POLICIES.parse("auto").expect("a policy");
    let model = Spec::parse("ssd-sata").expect("a model");
    let machine = SimMachine { policy, seed: 1, ..SimMachine::new(model) };
    let size = [Bytes::new(PAGES * 4096)];
    let steps: Vec<ReadStep> = (0..4000).map(fault).collect();
    let scenario = Scenario {
        files: lay_out(&size, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO),
        opens: vec![SimOpenFile { only_mapped, ..SimOpenFile::new(0, AccessMethod::Mmap) }],
        readers: vec![Reader { steps: steps.into_iter() }],
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
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
