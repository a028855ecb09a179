//! Tests of decisions whose correct answer is known.

use units::Kib;

use super::*;
use crate::analyse::analyse;
use crate::grid::Grid;
use crate::plan::{Repeats, Role};
use crate::sweep::BlockStrategy;
use crate::synthetic::{Points, World};

/// Returns the points of a curve over KiB.
fn points(of: &[(u64, f64)]) -> Points {
    of.iter().map(|(kib, rate)| (*kib as f64, *rate)).collect()
}

/// Returns a goal with these rates, and random reads of mapped files whose time grows with the
/// window and is doubled at a window of `doubles` KiB.
fn world(goal: &[(u64, f64)], doubles: f64) -> World {
    let mut world = World { noise: 0.004, ..World::of(vec![("seq-8", points(goal))]) };
    let kib = (2..=16).map(|power| f64::from(1u32 << power));
    let mapped = kib.map(|kib| (kib, 100.0 / (1.0 + kib / doubles))).collect();
    world.curves.push(("rand-mmap".to_owned(), Role::Cost, mapped));
    world
}

fn of(world: &World, purpose: StudyPurpose) -> Recommendation {
    let trials =
        world.study(&Grid::Full, |field| Box::new(BlockStrategy::new(field, Repeats::exactly(5))));
    let mut run = world.run(trials);
    run.grid = world.settings(&Grid::Full).iter().map(|s| s.read_ahead).collect();
    run.plan = run.plan.for_purpose(purpose);
    analyse(&run).recommendation
}

const RISING_CURVE: [(u64, f64); 5] =
    [(4, 10.0), (128, 100.0), (1024, 200.0), (8192, 290.0), (65536, 300.0)];

#[test]
fn the_economical_setting_leads_and_its_cost_is_a_condition() {
    let advice = of(&world(&RISING_CURVE, 1000.0), StudyPurpose::Mixed);
    // The threshold is 100 + 80 % of 200; windows of 17·2ⁿ and 2ⁿ pages reach 260 at 4 to 8 MiB.
    let Decision::Set(kib) = advice.decision else { panic!("{advice:?}") };
    assert!((4096..=8192).contains(&kib.get()), "{kib}");
    assert_eq!(advice.conditions.len(), 1);
    assert_eq!(advice.conditions[0].workload, "rand-mmap");
    let harmless = advice.without_conditions.unwrap();
    assert!((512..=1088).contains(&harmless.read_ahead_kib.get()), "{harmless:?}");
    assert!(harmless.changes[0].throughput_ratio.median >= 0.5);
    assert!(advice.best.unwrap().read_ahead_kib > kib);
}

#[test]
fn a_larger_setting_leads_only_if_it_gains_a_tenth_more_and_costs_nothing() {
    let steep = [(4, 10.0), (128, 100.0), (1024, 280.0), (32768, 281.0), (65536, 330.0)];
    let free = of(&world(&steep, 1e9), StudyPurpose::Mixed);
    assert_eq!(free.decision, Decision::Set(Kib::new(65536)));
    assert!(free.caveats.contains(&Caveat::EdgeOfRange { read_ahead_kib: Kib::new(65536) }));
    let costly = of(&world(&steep, 1000.0), StudyPurpose::Mixed);
    let Decision::Set(kib) = costly.decision else { panic!("{costly:?}") };
    assert!(kib.get() <= 1088, "{kib}");
    let streaming = of(&world(&steep, 1000.0), StudyPurpose::Streaming);
    assert_eq!(streaming.decision, Decision::Set(Kib::new(65536)));
    assert!(streaming.conditions.is_empty());
    assert!(!streaming.cost.unwrap().changes.is_empty(), "what it costs is reported all the same");
}

#[test]
fn under_a_tenth_of_gain_the_present_setting_is_kept() {
    let low = [(4, 10.0), (128, 100.0), (8192, 108.0), (65536, 109.0)];
    let advice = of(&world(&low, 1000.0), StudyPurpose::Mixed);
    assert_eq!(advice.decision, Decision::Keep(Kib::new(128)));
    assert!(advice.gain.is_none() && advice.conditions.is_empty() && advice.caveats.is_empty());
}

#[test]
fn a_smaller_setting_leads_if_it_is_as_fast_and_saves_what_a_person_notices() {
    let flat = [(4, 10.0), (64, 100.0), (65536, 100.0)];
    let advice = of(&world(&flat, 40.0), StudyPurpose::Mixed);
    assert_eq!(advice.decision, Decision::Set(Kib::new(64)));
    assert_eq!(advice.saving.unwrap().changes[0].workload, "rand-mmap");
    let unweighed = of(&world(&flat, 40.0), StudyPurpose::Streaming);
    assert_eq!(unweighed.decision, Decision::Keep(Kib::new(128)));
    let large = World { found: Some(Kib::new(65536)), ..world(&flat, 1e9) };
    let advice = of(&large, StudyPurpose::Streaming);
    assert_eq!(advice.decision, Decision::Set(Kib::new(64)));
    assert!(advice.saving.unwrap().memory_mib > 1000.0);
}

#[test]
fn what_counts_fully_is_weighed_like_a_stream() {
    let advice = of(&world(&RISING_CURVE, 1000.0), StudyPurpose::Mmap);
    // Random reads are eight times slower at 8 MiB, which outweighs the gain of the streams.
    assert!(advice.value().is_none_or(|kib| kib.get() <= 1088), "{advice:?}");
    assert!(advice.conditions.is_empty());
}

#[test]
fn one_setting_alone_decides_nothing_and_is_no_failure() {
    let world = world(&RISING_CURVE, 1000.0);
    let grid = Grid::Values(vec![Kib::new(128)]);
    let trials =
        world.study(&grid, |field| Box::new(BlockStrategy::new(field, Repeats::exactly(3))));
    let advice = analyse(&world.run(trials)).recommendation;
    assert_eq!(advice.decision, Decision::Inconclusive(InconclusiveReason::NothingToCompare));
    assert!(!advice.is_inconclusive());
}

#[test]
fn every_question_is_answered_in_the_end() {
    use crate::tune::Tuner;
    for seed in 0..20 {
        let world = World { seed, ..world(&RISING_CURVE, 1000.0) };
        let tuner = |field: &crate::strategy::StrategyInput| -> Box<dyn crate::strategy::Strategy> {
            Box::new(Tuner::new(field, Repeats::default(), 1e9))
        };
        let mut run = world.run(world.study(&Grid::Full, tuner));
        run.grid = world.settings(&Grid::Full).iter().map(|s| s.read_ahead).collect();
        let advice = analyse(&run).recommendation;
        let Decision::Set(kib) = advice.decision else { panic!("seed {seed}: {advice:?}") };
        assert!((4096..=8192).contains(&kib.get()), "seed {seed}: {kib}");
        assert!(advice.caveats.is_empty(), "seed {seed}: {:?}", advice.caveats);
        assert!(advice.gain.unwrap().ratio.is_interval(), "seed {seed}");
        let harmless = advice.without_conditions.unwrap().read_ahead_kib.get();
        assert!((256..=1088).contains(&harmless), "seed {seed}: {harmless}");
        assert!(run.trials.len() < 90, "seed {seed}: {}", run.trials.len());
    }
}
