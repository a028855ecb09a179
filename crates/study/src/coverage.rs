//! Tests how often 95 % intervals enclose the true value, in studies of synthetic storage.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use stats::{Estimate, INTERVAL_FROM, Spread};
use units::Kib;

use crate::analyse::{Curve, Difference, overall};
use crate::grid::Grid;
use crate::plan::Repeats;
use crate::settings::CellSettings;
use crate::strategy::Strategy;
use crate::sweep::BlockStrategy;
use crate::synthetic::{Points, Shape, World};
use crate::tune::Tuner;

const GOALS: [&str; 2] = ["seq-1", "seq-8"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strategist {
    Sweep,
    Tune,
}

/// The quantity to which an interval or a range belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Quantity {
    Throughput,
    /// Throughput of a setting relative to the current setting.
    Gain,
    /// The same ratio of the recommended setting, which chance has favoured.
    NamedGain,
}

const ENDLESS: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Noise {
    shape: Shape,
    /// Standard deviation of the drift that a block shares, as a multiple of a trial's own.
    drift: u32,
}

const fn noise(shape: Shape, drift: u32) -> Noise {
    Noise { shape, drift }
}

/// The noises from which the rules for repeats were derived.
const KNOWN: [Noise; 4] = [
    noise(Shape::Normal, 0),
    noise(Shape::HeavyTailed, 0),
    noise(Shape::Skewed, 0),
    noise(Shape::Normal, 3),
];

/// Noises that were first tested after that.
const UNSEEN: [Noise; 5] = [
    noise(Shape::Uniform, 0),
    noise(Shape::TwoRates, 0),
    noise(Shape::Laplace, 1),
    noise(Shape::SkewedUp, 0),
    noise(Shape::HeavyTailed, 3),
];

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    held: u32,
    all: u32,
    /// Sum of half widths on a log scale, relative to the noise of a trial.
    widths: f64,
}

impl Tally {
    fn add(&mut self, holds: bool, width: f64) {
        self.held += u32::from(holds);
        self.all += 1;
        self.widths += width;
    }

    fn merge(self, other: &Self) -> Self {
        let (held, all) = (self.held + other.held, self.all + other.all);
        Self { held, all, widths: self.widths + other.widths }
    }

    fn percent(&self) -> f64 {
        100.0 * f64::from(self.held) / f64::from(self.all)
    }
}

/// By quantity and repeats; with fewer than five repeats, the tallies are of ranges.
type Tallies = BTreeMap<(Quantity, usize), Tally>;

/// Returns a curve for a study, by its number: saturating, flat, with a peak, falling.
fn curve(number: u64) -> Points {
    match number % 4 {
        0 => vec![(4.0, 60.0), (128.0, 150.0), (1024.0, 280.0), (8192.0, 330.0), (65536.0, 335.0)],
        1 => vec![(4.0, 300.0), (65536.0, 300.0)],
        2 => vec![(4.0, 50.0), (512.0, 400.0), (2048.0, 330.0), (65536.0, 380.0)],
        _ => vec![(4.0, 500.0), (65536.0, 50.0)],
    }
}

/// Standard deviations of a trial, from quiet to noisy.
const DEVIATIONS: [f64; 4] = [0.003, 0.01, 0.03, 0.08];

/// Combines, by `number`, curves, deviations, disturbed trials or none, and one goal or two.
fn world(number: u64, seed: u64, noise: Noise) -> World {
    let deviation = DEVIATIONS[(number / 4 % 4) as usize];
    let goals = 1 + (number / 32 % 2) as usize;
    let curves = GOALS.into_iter().zip([curve(number), curve(number / 4)]).take(goals);
    World {
        seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93),
        noise: deviation,
        shape: noise.shape,
        drift: deviation * f64::from(noise.drift),
        spoiled_percent: if (number / 16).is_multiple_of(2) { 0 } else { 10 },
        ..World::of(curves.collect())
    }
}

fn strategy(world: &World, strategist: Strategist, grid: &Grid) -> Box<dyn Strategy> {
    world.strategy(grid, |field| match strategist {
        Strategist::Sweep => Box::new(BlockStrategy::new(field, Repeats::default())),
        Strategist::Tune => Box::new(Tuner::new(field, Repeats::default(), ENDLESS)),
    })
}

/// Adds the intervals and ranges of one study.
fn study(tallies: &mut Tallies, world: &World, strategist: Strategist, grid: &Grid) {
    let trials = world.play(strategy(world, strategist, grid).as_mut());
    let goals: Vec<Curve> = world
        .roles()
        .iter()
        .map(|(goal, _)| Curve::from_trials(&trials, goal, world.seed))
        .collect();
    for curve in &goals {
        let truth = |settings: &CellSettings| world.truth(&curve.name, settings);
        for point in &curve.points {
            if let Some(alone) = curve.alone(point) {
                let key = (Quantity::Throughput, point.values.len());
                add(tallies, world, key, &alone, truth(&point.settings));
            }
        }
        gains(tallies, world, curve, &truth);
    }
    if goals.len() > 1 {
        let mean = |settings: &CellSettings| -> f64 {
            let logs = goals.iter().map(|curve| world.truth(&curve.name, settings).ln());
            (logs.sum::<f64>() / goals.len() as f64).exp()
        };
        gains(tallies, world, &overall(&goals, world.seed), &mean);
    }
}

fn gains(
    tallies: &mut Tallies,
    world: &World,
    curve: &Curve,
    truth: &dyn Fn(&CellSettings) -> f64,
) {
    let found = world.found.and_then(|found| curve.at(&CellSettings::read_ahead(found)));
    let Some(found) = found else { return };
    let named = named(curve);
    for point in curve.points.iter().filter(|point| point.settings != found.settings) {
        let gain = truth(&point.settings) / truth(&found.settings);
        let repeats = point.values.len().min(found.values.len());
        let ratio = curve.ratio(point, found);
        add(tallies, world, (Quantity::Gain, repeats), &ratio, gain);
        if named.as_ref() == Some(&point.settings) {
            add(tallies, world, (Quantity::NamedGain, repeats), &ratio, gain);
        }
    }
}

fn add(
    tallies: &mut Tallies,
    world: &World,
    key: (Quantity, usize),
    estimate: &Estimate,
    truth: f64,
) {
    let Some((low, high)) = estimate.bounds() else { return };
    let key = match estimate.spread() {
        // The ratio comes from the few blocks that the settings share.
        Spread::Range { repeats, .. } => (key.0, repeats as usize),
        _ => key,
    };
    assert_eq!(estimate.is_interval(), key.1 >= INTERVAL_FROM, "{key:?}: {estimate:?}");
    let width = (high / low).ln() / 2.0 / world.noise;
    tallies.entry(key).or_default().add(low <= truth && truth <= high, width);
}

/// Returns the setting that a recommendation names: the smallest that is as good as the best;
/// `None` if the settings do not differ.
fn named(curve: &Curve) -> Option<CellSettings> {
    let best = curve.best().filter(|_| curve.difference() == Difference::Faster)?;
    let full = curve.confirmed().find(|point| curve.as_good(point, best));
    full.map(|point| point.settings.clone())
}

fn studies(count: u64, seed: u64, strategist: Strategist, noise: Noise, grid: &Grid) -> Tallies {
    let mut tallies = Tallies::new();
    (0..count).for_each(|n| study(&mut tallies, &world(n, seed, noise), strategist, grid));
    tallies
}

/// Returns the tally of all intervals of a quantity with this many repeats.
fn of(tallies: &Tallies, quantity: Quantity, repeats: RangeInclusive<usize>) -> Tally {
    let ours = tallies.iter().filter(|((q, n), _)| *q == quantity && repeats.contains(n));
    ours.fold(Tally::default(), |sum, (_, tally)| sum.merge(tally))
}

const INTERVALS: RangeInclusive<usize> = INTERVAL_FROM..=usize::MAX;
const QUANTITIES: [Quantity; 3] = [Quantity::Throughput, Quantity::Gain, Quantity::NamedGain];

fn of_kib(settings: &[u64]) -> Grid {
    Grid::Values(settings.iter().copied().map(Kib::new).collect())
}

fn few_settings() -> Grid {
    of_kib(&[4, 32, 128, 512, 2048, 16384])
}

#[test]
fn intervals_hold_the_truth_in_93_to_97_of_100_studies() {
    for strategist in [Strategist::Sweep, Strategist::Tune] {
        let mut all = Tallies::new();
        let grid = match strategist {
            Strategist::Sweep => few_settings(),
            Strategist::Tune => Grid::Full,
        };
        for (seed, noise) in (1..).zip(KNOWN) {
            merge(&mut all, studies(250, seed, strategist, noise, &grid));
        }
        for quantity in QUANTITIES {
            let tally = of(&all, quantity, INTERVALS);
            assert!(tally.all > 500, "{strategist:?}, {quantity:?}: {tally:?}");
            let percent = tally.percent();
            assert!((93.0..=97.0).contains(&percent), "{strategist:?}, {quantity:?}: {percent:.2}");
        }
    }
}

/// The tables of docs/measurement.md, printed by `cargo run -p xtask -- coverage`.
#[test]
#[ignore = "prints tables; takes minutes"]
fn tables() {
    let mut total = Tallies::new();
    println!("| strategy | noise of a trial | throughput | gain | recommended gain |");
    println!("|---|---|---:|---:|---:|");
    for strategist in [Strategist::Sweep, Strategist::Tune] {
        for (seed, noise) in (7001..).zip(KNOWN.into_iter().chain(UNSEEN)) {
            let mut all = Tallies::new();
            let grids = match strategist {
                Strategist::Sweep => {
                    &[of_kib(&[128]), of_kib(&[128, 2048]), few_settings(), Grid::Full][..]
                }
                Strategist::Tune => &[Grid::Full],
            };
            let count = 2000 / grids.len() as u64;
            for (at, grid) in (0..).zip(grids) {
                merge(&mut all, studies(count, 10 * seed + at, strategist, noise, grid));
            }
            let cells = QUANTITIES.map(|quantity| of(&all, quantity, INTERVALS).to_string());
            let name = format!("{strategist:?}").to_lowercase();
            println!("| `{name}` | {noise} | {} |", cells.join(" | "));
            merge(&mut total, all);
        }
    }
    println!("\n| repeats | throughput | gain | recommended gain |");
    println!("|---|---:|---:|---:|");
    for (name, repeats) in [
        ("3 (range)", 3..=3),
        ("4 (range)", 4..=4),
        ("5", 5..=5),
        ("6 to 8", 6..=8),
        ("9 and more", 9..=usize::MAX),
    ] {
        let cells = QUANTITIES.map(|quantity| of(&total, quantity, repeats.clone()).to_string());
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn merge(into: &mut Tallies, tallies: Tallies) {
    for (key, tally) in tallies {
        let sum = into.entry(key).or_default();
        *sum = sum.merge(&tally);
    }
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shape = match self.shape {
            Shape::Normal => "normal",
            Shape::HeavyTailed => "heavy-tailed (t, 3 degrees)",
            Shape::Skewed => "skewed downwards (exponential)",
            Shape::Uniform => "uniform",
            Shape::TwoRates => "two rates",
            Shape::Laplace => "Laplace",
            Shape::SkewedUp => "skewed upwards (log-normal)",
        };
        f.write_str(shape)?;
        if self.drift > 0 { write!(f, ", drift of {} σ", self.drift) } else { Ok(()) }
    }
}

/// Prints the coverage, and half the width in units of σ; a dash for fewer than 400 intervals.
impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.all < 400 {
            return f.write_str("–");
        }
        write!(f, "{:.1} % ({:.2} σ)", self.percent(), self.widths / f64::from(self.all))
    }
}
