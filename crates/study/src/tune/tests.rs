//! Tests whether few measurements find the same settings as the whole grid.

use proptest::prelude::*;
use units::Kib;

use super::tuner::Tuner;
use crate::analyse::{Decision, analyse};
use crate::grid::Grid;
use crate::plan::{Repeats, Role};
use crate::settings::CellSettings;
use crate::synthetic::{Points, TRIAL_SECONDS, World, counts, published};
use crate::trial::Trial;

const ENDLESS: f64 = 1e9;

fn tuned(world: &World, budget: f64) -> Vec<Trial> {
    world.study(&Grid::Full, |field| Box::new(Tuner::new(field, Repeats::default(), budget)))
}

/// Returns the merit of the recommendation relative to the grid's best, and the number of trials.
fn merit(world: &World) -> (f64, usize) {
    let trials = tuned(world, ENDLESS);
    let count = trials.len();
    let advice = analyse(&world.run(trials)).recommendation;
    // Without a measurable difference the device keeps its setting.
    let best = advice.best.filter(|_| advice.decision != Decision::NoDifference);
    let chosen = best.map(|best| best.read_ahead_kib).or(world.found).expect("a setting");
    (world.merit(&CellSettings::read_ahead(chosen), &world.settings(&Grid::Full)), count)
}

fn curves() -> Vec<(&'static str, Vec<(&'static str, Points)>)> {
    let table = |id, name, column| (name, published(id, column));
    let front = "carey-perc6-xfs-front10";
    let eight = |id| vec![table(id, "seq-8", "rate_8_readers")];
    let one = || table(front, "seq-1", "rate_1_reader");
    vec![
        ("XFS, 8 readers", eight(front)),
        ("XFS, 1 reader", vec![one()]),
        ("XFS, both", vec![table(front, "seq-8", "rate_8_readers"), one()]),
        ("ext3, 8 readers", eight("carey-perc6-ext3-full")),
        ("3ware, 8 readers", eight("carey-3ware-ext3")),
        ("flat", vec![("seq-1", vec![(4.0, 300.0), (65536.0, 300.0)])]),
        ("flat from 32K", vec![("seq-1", vec![(4.0, 300.0), (32.0, 390.0), (65536.0, 400.0)])]),
        ("falling", vec![("rand-mmap", vec![(4.0, 500.0), (65536.0, 5.0)])]),
    ]
}

/// Returns merits on one curve by seed; checks that trials are at most 60 % of the grid's minimum.
fn merits(name: &str, curve: &[(&'static str, Points)], noise: f64, seeds: u64) -> Vec<f64> {
    let of_seed = |seed| {
        let world = World { seed, noise, ..World::of(curve.to_vec()) };
        let (merit, count) = merit(&world);
        let grid = world.settings(&Grid::Full).len() * curve.len() * 3;
        assert!(count * 5 <= grid * 3, "{name}, seed {seed}: {count} trials of {grid}");
        merit
    };
    (0..seeds).map(of_seed).collect()
}

#[test]
fn few_trials_find_97_percent_of_the_best_of_the_grid() {
    for (name, curve) in curves() {
        for merit in merits(name, &curve, 0.01, 10) {
            assert!(merit >= 0.97, "{name}: {merit:.3}");
        }
    }
}

/// At 2 % noise, three repeats of two settings that differ by 4 % may be equal by chance.
#[test]
fn noise_of_2_percent_rarely_costs_more_than_3() {
    let mut all = Vec::new();
    for (name, curve) in curves() {
        let merits = merits(name, &curve, 0.02, 14);
        assert!(merits.iter().all(|merit| *merit >= 0.94), "{name}: {merits:?}");
        all.extend(merits);
    }
    let missed = all.iter().filter(|merit| **merit < 0.97).count();
    assert!(missed * 20 <= all.len(), "{missed} of {} below 97 %", all.len());
}

#[test]
fn the_named_settings_are_confirmed_by_repeats() {
    let (_, curve) = curves().swap_remove(0);
    let world = World { noise: 0.01, ..World::of(curve) };
    let trials = tuned(&world, ENDLESS);
    let counts = counts(&trials, "seq-8");
    let advice = analyse(&world.run(trials)).recommendation;
    let Decision::Set(chosen) = advice.decision else { panic!("{advice:?}") };
    let best = advice.best.expect("a best").read_ahead_kib;
    for (kib, least) in [(best, 3), (chosen, 5), (world.found.expect("found"), 5)] {
        assert!(counts[&CellSettings::read_ahead(kib)] >= least, "{kib:?}: {counts:?}");
    }
    assert!(advice.gain.expect("a gain").ratio.is_interval());
}

#[test]
fn prices_are_measured_where_the_verdict_needs_them() {
    let (_, curve) = curves().swap_remove(0);
    let mut world = World { noise: 0.01, ..World::of(curve) };
    let random: Points = vec![(4.0, 8.0), (65536.0, 0.5)];
    world.curves.push(("rand-mmap".to_owned(), Role::Cost, random));
    let trials = tuned(&world, ENDLESS);
    let priced = counts(&trials, "rand-mmap");
    let advice = analyse(&world.run(trials)).recommendation;
    let harmless = advice.without_conditions.as_ref().expect("a condition").read_ahead_kib;
    for kib in [advice.value(), world.found, Some(harmless)] {
        assert!(priced[&CellSettings::read_ahead(kib.expect("named"))] >= 3, "{priced:?}");
    }
    assert!(priced.len() <= 6, "{priced:?}");
}

#[test]
fn spoiled_trials_use_up_time_but_no_knowledge() {
    let (_, curve) = curves().swap_remove(0);
    let world = World { noise: 0.01, spoiled_percent: 50, ..World::of(curve) };
    let advice = analyse(&world.run(tuned(&world, ENDLESS))).recommendation;
    let best = CellSettings::read_ahead(advice.best.as_ref().expect("a setting").read_ahead_kib);
    assert!(world.merit(&best, &world.settings(&Grid::Full)) >= 0.95, "{advice:?}");
}

#[test]
fn the_budget_is_kept() {
    let world = |at: usize, spoiled_percent| {
        let (_, curve) = curves().swap_remove(at);
        World { noise: 0.01, spoiled_percent, ..World::of(curve) }
    };
    for (world, goals) in [(world(1, 0), 1.0), (world(1, 50), 1.0), (world(2, 0), 2.0)] {
        // With any budget, each goal is measured at both ends and at the current setting.
        let least = goals * 3.0 * TRIAL_SECONDS;
        for budget in [0.0, 1.0, 6.0, 9.0, 10.0, 15.0, 20.0, 24.0, 31.0, 47.0] {
            let trials = tuned(&world, budget);
            let spent: f64 = trials.iter().map(|t| t.figures.measured_seconds).sum();
            assert!(spent <= f64::max(least, budget), "{spent} s of {budget} s");
            assert!(spent > budget / 2.0 - TRIAL_SECONDS, "{spent} s of {budget} s");
            for (goal, _) in world.roles() {
                let counts = counts(&trials, &goal);
                assert!(counts.len() >= 3, "{goal}, {budget} s: {counts:?}");
            }
        }
    }
}

#[test]
fn trials_that_take_longer_than_meant_end_the_budget_within_a_block() {
    let world = World::of(curves().swap_remove(1).1);
    let mut tuner =
        world.strategy(&Grid::Full, |field| Box::new(Tuner::new(field, Repeats::default(), 30.0)));
    let mut trials: Vec<Trial> = Vec::new();
    while let Some(next) = tuner.next(&trials) {
        let mut trial = world.trial(next, trials.len());
        // The coarse block takes 28 s instead of 14 s, so no other block fits into the budget.
        trial.figures.measured_seconds = 4.0;
        trials.push(trial);
    }
    assert_eq!(trials.len(), 7);
}

#[test]
fn a_grid_of_few_settings_is_measured_whole() {
    let world = World { noise: 0.005, ..World::of(curves().swap_remove(0).1) };
    let grid = Grid::Values([4, 128, 8192].map(Kib::new).to_vec());
    let trials =
        world.study(&grid, |field| Box::new(Tuner::new(field, Repeats::default(), ENDLESS)));
    assert_eq!(counts(&trials, "seq-8").len(), 3);
    let advice = analyse(&world.run(trials)).recommendation;
    assert_eq!(advice.decision, Decision::Set(Kib::new(8192)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// A run that is killed and resumed at any point measures the same trials as an unkilled one.
    #[test]
    fn a_resumed_run_goes_on_as_it_would_have(
        cut in 0usize..20,
        seed in 0u64..1000,
        budget in prop_oneof![Just(ENDLESS), 0.0..60.0],
    ) {
        let world = World { seed, spoiled_percent: 15, ..World::of(curves().swap_remove(1).1) };
        let whole = tuned(&world, budget);
        let mut resumed = world.strategy(&Grid::Full, |field| {
            Box::new(Tuner::new(field, Repeats::default(), budget))
        });
        let mut trials = whole[..cut.min(whole.len())].to_vec();
        while let Some(next) = resumed.next(&trials) {
            trials.push(world.trial(next, trials.len()));
        }
        prop_assert_eq!(trials, whole);
    }
}
