//! Checks that `auto` keeps the invariants of every read-ahead algorithm.

extern crate policy as foreread_policy;
extern crate sim as foreread_sim;

#[path = "../../policy/tests/contract/mod.rs"]
mod contract;
#[path = "../../sim/tests/holds/mod.rs"]
mod holds;
#[path = "../../sim/tests/scenes/mod.rs"]
mod scenes;
mod touches;

use contract::{keeps_its_contract, shape, step};
use foreread_control::POLICIES;
use holds::keeps_what_holds;
use model::Spec;
use policy::PolicySpec;
use proptest::prelude::*;
use scenes::{Scene, any_scene, same_by_extents_and_by_pages, with_policy};
use sim::{
    Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start, lay_out, run,
};
use touches::touch;
use units::{Bytes, Nanos};
use workload::{AccessClass, AccessMethod, Layout};

fn auto() -> PolicySpec {
    POLICIES.parse("auto").expect("a policy")
}

/// Returns the step in which a reader reads `length` bytes of this open file.
fn step_of(open: u32, offset: u64, length: u64) -> ReadStep {
    ReadStep {
        open,
        offset: Bytes::new(offset),
        length: Bytes::new(length),
        class: AccessClass::Stream,
        start: Start::After(Nanos::ZERO),
        advice: None,
    }
}

/// Simulates readers of as many files as `sizes` has, each through one open file, on an array.
fn simulated(policy: &str, sizes: &[Bytes], readers: Vec<Vec<ReadStep>>) -> SimOutcome {
    let policy = POLICIES.parse(policy).expect("a policy");
    let model = Spec::parse("raid10-2008").expect("a model");
    let machine = SimMachine { policy, seed: 1, ..SimMachine::new(model) };
    let opens = 0..sizes.len() as u32;
    let scenario = Scenario {
        files: lay_out(sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO),
        opens: opens.map(|file| SimOpenFile::new(file, AccessMethod::Read)).collect(),
        readers: readers.into_iter().map(|steps| Reader { steps: steps.into_iter() }).collect(),
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
}

/// Returns the decisions of this policy for four streams, each with its time.
fn timed_decisions(policy: &str) -> Vec<(Nanos, String)> {
    const BLOCK: u64 = 64 << 10;
    const BLOCKS: u64 = 2048;
    let stream = |open| (0..BLOCKS).map(|number| step_of(open, number * BLOCK, BLOCK)).collect();
    let outcome = simulated(policy, &[Bytes::new(BLOCK * BLOCKS); 4], (0..4).map(stream).collect());
    outcome.policy_stats.decisions
}

fn decisions(policy: &str) -> Vec<String> {
    timed_decisions(policy).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn another_threshold_changes_decisions() {
    let default = decisions("auto");
    assert!(!default.is_empty());
    assert_eq!(decisions("auto,idle_timeout=2s"), default);
    // Less than what all streams read in this time fits into their windows.
    assert_ne!(decisions("auto,idle_timeout=50ms"), default);
}

#[test]
fn on_a_slow_disk_decisions_come_early_in_the_time_of_the_model() {
    let first = |policy| timed_decisions(policy)[0].0.as_secs_f64();
    assert_eq!(timed_decisions("auto,dilation=1"), timed_decisions("auto"));
    assert!(first("auto,dilation=4") < 0.5 * first("auto"));
    assert!(first("auto,dilation=0.5") > 1.5 * first("auto"));
}

#[test]
fn large_calls_of_several_threads_are_read_as_they_are_asked_for() {
    const CALL: u64 = 960 << 10;
    const CALLS: u64 = 320;
    let read = |policy| {
        let place = |thread: u64, number: u64| (number * 8 + thread) * 61 % CALLS;
        let steps = |thread| {
            let calls = (0..CALLS / 8).map(|number| 4 * CALL * place(thread, number));
            calls.map(|offset| step_of(0, offset, CALL)).collect()
        };
        simulated(policy, &[Bytes::new(4 * CALLS * CALL)], (0..8).map(steps).collect())
    };
    let (with, without) = (read("auto"), read("auto,misses=off"));
    let amplification =
        |outcome: &SimOutcome| outcome.device.bytes.get() as f64 / (CALLS * CALL) as f64;
    assert!(amplification(&without) > 1.15, "{}", amplification(&without));
    assert!(amplification(&with) < 1.05, "{}", amplification(&with));
    assert!(with.elapsed < without.elapsed.scaled(0.8), "{}, {}", with.elapsed, without.elapsed);
}

#[test]
fn faults_on_cached_pages_show_that_a_mapping_is_read_backward() {
    // Backward by 1 to 8 pages. The kernel reads 16 pages before each miss, so misses are far apart
    // and at irregular distances: only the faults between them, on cached pages, show a trend.
    const PAGES: u64 = 16_384;
    let step = |number: u64| 1 + (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 8;
    let places = (1..).scan(PAGES, |page, number| {
        *page = page.checked_sub(step(number))?;
        Some((0, *page))
    });
    let touched: Vec<(u32, u64)> = places.collect();
    let decisions = |policy| {
        let open = |file| SimOpenFile::new(file, AccessMethod::Mmap);
        let outcome = touch(policy, "hdd-2008", &[PAGES], open, touched.iter().copied());
        let texts: Vec<String> =
            outcome.policy_stats.decisions.into_iter().map(|(_, text)| text).collect();
        (outcome.elapsed, texts)
    };
    let (time, with) = decisions("auto,samples=on");
    let (time_without, without) = decisions("auto");
    let is_backward = |text: &String| text.contains("it is read backward");
    assert!(with.iter().any(is_backward), "{with:?}");
    assert!(!without.iter().any(is_backward), "{without:?}");
    assert!(time.as_secs_f64() < 0.5 * time_without.as_secs_f64(), "{time}, {time_without}");
}

fn any_scene_under_auto() -> impl Strategy<Value = Scene> {
    let policy = prop_oneof![Just("auto"), Just("auto,samples=on")];
    (any_scene(), policy).prop_map(|(scene, policy)| {
        let policy = POLICIES.parse(policy).expect("a policy");
        Scene { machine: with_policy(scene.machine, policy), ..scene }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scenes::cases() / 3))]

    #[test]
    fn it_keeps_what_holds_for_any_cache_and_any_disk(scene in any_scene_under_auto()) {
        keeps_what_holds(&scene)?;
    }

    #[test]
    fn extents_and_single_pages_give_the_same(scene in any_scene_under_auto()) {
        same_by_extents_and_by_pages(&scene)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_keeps_the_contract_of_a_policy(
        shape in shape(), steps in prop::collection::vec(step(), 1..24),
    ) {
        keeps_its_contract(&auto(), shape, &steps)?;
    }
}
