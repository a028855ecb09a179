//! Tests of the blocks.

use std::collections::HashSet;

use proptest::prelude::*;
use units::Kib;

use super::BlockStrategy;
use crate::analyse::{Alternative, analyse};
use crate::budget::Budget;
use crate::grid::Grid;
use crate::plan::{Repeats, Role};

use crate::settings::CellSettings;
use crate::strategy::{ATTEMPTS_MAX, Next, Strategy, StrategyInput};
use crate::synthetic::{Points, TRIAL_SECONDS, World, counts, published};
use crate::trial::TrialStatus;

fn world() -> World {
    World::of(vec![
        ("seq-8", published("carey-perc6-xfs-front10", "rate_8_readers")),
        ("seq-1", published("carey-perc6-xfs-front10", "rate_1_reader")),
    ])
}

fn blocks(world: &World, repeats: Repeats) -> Box<dyn Strategy> {
    world.strategy(&Grid::Full, |field| Box::new(BlockStrategy::new(field, repeats)))
}

#[test]
fn each_block_holds_every_cell_once_in_an_order_of_its_own() {
    let world = world();
    let trials = world.play(blocks(&world, Repeats::exactly(3)).as_mut());
    assert_eq!(trials.len(), 3 * 2 * 25);
    let order = |block| -> Vec<(String, CellSettings)> {
        let here = trials.iter().filter(|trial| trial.block == block);
        here.map(|trial| (trial.workload.clone(), trial.settings.clone())).collect()
    };
    for block in 0..3 {
        assert_eq!(order(block).iter().collect::<HashSet<_>>().len(), 50);
    }
    assert_ne!(order(0), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn what_a_recommendation_may_name_has_five_repeats_and_the_rest_three() {
    let quiet = World { noise: 0.002, ..world() };
    let trials = quiet.play(blocks(&quiet, Repeats::default()).as_mut());
    let advice = analyse(&quiet.run(trials.clone())).recommendation;
    let kib = |named: &Option<Alternative>| named.as_ref().map(|named| named.read_ahead_kib);
    for (goal, _) in quiet.roles() {
        let counts = counts(&trials, &goal);
        assert!(counts.values().all(|count| [3, 5].contains(count)), "{counts:?}");
        assert_eq!(counts[&CellSettings::read_ahead(Kib::new(8))], 3, "{counts:?}");
        for kib in [quiet.found, kib(&advice.best), kib(&advice.economical)] {
            assert_eq!(counts[&CellSettings::read_ahead(kib.expect("named"))], 5, "{counts:?}");
        }
    }
    assert!(advice.gain.expect("a gain").ratio.is_interval());
    assert!(advice.best.expect("a best").gain.ratio.is_interval());
}

#[test]
fn noisy_storage_is_measured_more_often() {
    let noisy = World { noise: 0.05, ..world() };
    let trials = noisy.play(blocks(&noisy, Repeats::default()).as_mut());
    let counts = counts(&trials, "seq-8");
    assert!(counts.values().all(|count| [3, 9].contains(count)), "{counts:?}");
    assert!(counts.values().filter(|count| **count == 9).count() > 8, "{counts:?}");
}

#[test]
fn what_goes_on_shares_all_its_blocks() {
    let noisy = World { noise: 0.03, ..world() };
    let trials = noisy.play(blocks(&noisy, Repeats::default()).as_mut());
    let settings_of = |block: u32| -> HashSet<CellSettings> {
        let here = trials.iter().filter(|t| t.block == block && t.workload == "seq-8");
        here.map(|trial| trial.settings.clone()).collect()
    };
    let ours = trials.iter().filter(|trial| trial.workload == "seq-8");
    let last = ours.map(|trial| trial.block).max().expect("trials");
    assert!(last > 4, "{last}");
    for block in 4..=last {
        assert_eq!(settings_of(block), settings_of(3), "block {block}");
    }
    assert!(settings_of(3).contains(&CellSettings::read_ahead(Kib::new(128))), "what was found");
}

#[test]
fn what_is_clearly_worse_is_not_measured_to_the_end() {
    let noisy = World { noise: 0.03, ..world() };
    let trials = noisy.play(blocks(&noisy, Repeats::default()).as_mut());
    let counts = counts(&trials, "seq-8");
    let of = |kib| counts[&CellSettings::read_ahead(Kib::new(kib))];
    assert!(of(4) + of(8) + of(16) < of(34816) + of(32768) + of(65536), "{counts:?}");
}

#[test]
fn prices_need_not_be_as_tight() {
    let mut world = World { noise: 0.02, ..world() };
    let random: Points = vec![(4.0, 5.0), (65536.0, 5.0)];
    world.curves.push(("rand-pread".to_owned(), Role::Cost, random));
    let trials = world.play(blocks(&world, Repeats::default()).as_mut());
    let of = |name| counts(&trials, name).values().sum::<usize>();
    assert!(of("rand-pread") < of("seq-8"));
}

#[test]
fn spoiled_trials_are_repeated_but_not_for_ever() {
    let world = World { spoiled_percent: 40, ..world() };
    let trials = world.play(blocks(&world, Repeats::exactly(2)).as_mut());
    let mut clean = 0;
    for block in 0..2 {
        for (name, _) in world.roles() {
            for settings in world.settings(&Grid::Full) {
                let cell: Vec<_> = trials
                    .iter()
                    .filter(|t| t.block == block && t.workload == name && t.settings == settings)
                    .collect();
                let (last, before) = cell.split_last().expect("measured");
                assert!(cell.len() <= ATTEMPTS_MAX as usize);
                assert!(before.iter().all(|t| t.status == TrialStatus::Disturbed));
                if last.status == TrialStatus::Clean {
                    clean += 1;
                } else {
                    assert_eq!(cell.len(), ATTEMPTS_MAX as usize);
                }
            }
        }
    }
    assert!(clean > 80, "{clean}");
}

#[test]
fn what_is_expected_falls_to_nothing() {
    let world = World { noise: 0.001, ..world() };
    let mut blocks = blocks(&world, Repeats::exactly(3));
    let mut trials = Vec::new();
    while let Some(next) = blocks.next(&trials) {
        assert_eq!(trials.len() + blocks.expected(&trials), 150);
        trials.push(world.trial(next, trials.len()));
    }
    assert_eq!(blocks.expected(&trials), 0);
}

#[test]
fn a_budget_ends_the_repeats_but_never_the_first_block() {
    let world = World { noise: 0.05, ..world() };
    let within = |seconds: f64| {
        let budget = Some(Budget::minutes(seconds / 60.0).expect("time"));
        let blocks = |field: &StrategyInput| {
            BlockStrategy::new(field, Repeats::default()).with_budget(budget)
        };
        world.study(&Grid::Full, |field| Box::new(blocks(field)))
    };
    let block = 50.0 * TRIAL_SECONDS;
    assert_eq!(within(1.0).len(), 50);
    assert_eq!(within(block).len(), 50);
    assert_eq!(within(1.5 * block).len(), 75);
    let unlimited = world.play(blocks(&world, Repeats::default()).as_mut());
    assert_eq!(within(1000.0 * block), unlimited);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A run that is killed and resumed at any point measures the same trials as an unkilled one.
    #[test]
    fn a_resumed_run_goes_on_as_it_would_have(cut in 0usize..200, seed in 0u64..1000) {
        let world = World { seed, noise: 0.03, spoiled_percent: 5, ..world() };
        let whole = world.play(blocks(&world, Repeats { min: 2, max: 4 }).as_mut());
        let cut = cut.min(whole.len());
        let mut resumed = blocks(&world, Repeats { min: 2, max: 4 });
        let mut trials = whole[..cut].to_vec();
        while let Some(Next { block, cell }) = resumed.next(&trials) {
            trials.push(world.trial(Next { block, cell }, trials.len()));
        }
        prop_assert_eq!(trials, whole);
    }
}
