//! What the charts need beyond cells and trials: trade-offs, drift, predicted curves, limits.

use std::collections::BTreeMap;

use serde::Serialize;
use study::{Settings, TrialStatus};

use super::Exhibit;
use super::data::PlaceOf;
use crate::names::brief;

/// One workload's gain against what becomes of another.
#[derive(Debug, Serialize)]
pub(super) struct Tradeoff {
    goal: usize,
    other: usize,
    over_kib: u64,
    points: Vec<TradePoint>,
    /// Places of the points that no other beats in both.
    front: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct TradePoint {
    s: usize,
    gain: f64,
    keep: f64,
}

/// Every pair of workloads, the goals' gains first.
pub(super) fn tradeoffs(
    exhibit: &Exhibit<'_>,
    settings: &[Settings],
    place_of: &PlaceOf<'_>,
) -> Vec<Tradeoff> {
    let workloads = exhibit.findings().workloads();
    let goals = workloads.iter().filter(|planned| planned.role == study::Role::Goal);
    let mut all = Vec::new();
    for goal in goals {
        for other in &workloads {
            let (a, b) = (goal.workload.name.as_str(), other.workload.name.as_str());
            let goal_again = other.role == study::Role::Goal && place_of(b) <= place_of(a);
            if a != b && !goal_again {
                all.extend(tradeoff(exhibit, settings, place_of, (a, b)));
            }
        }
    }
    // What is bought with the random reads' loss is asked for more often.
    all.sort_by_key(|trade| std::cmp::Reverse(trade.other));
    all
}

fn tradeoff(
    exhibit: &Exhibit<'_>,
    settings: &[Settings],
    place_of: &PlaceOf<'_>,
    (a, b): (&str, &str),
) -> Option<Tradeoff> {
    let median = |name: &str, at: &Settings| {
        let cells = exhibit.analysis.cells.iter();
        let cell = cells.clone().find(|cell| cell.workload == name && cell.settings == *at)?;
        Some(cell.throughput_mib_s.median).filter(|median| *median > 0.0)
    };
    let both: Vec<(usize, f64, f64)> = settings
        .iter()
        .enumerate()
        .filter_map(|(s, at)| Some((s, median(a, at)?, median(b, at)?)))
        .collect();
    let found = both.iter().find(|(s, _, _)| Some(settings[*s].read_ahead) == exhibit.run.found);
    let (over, base_a, base_b) = *found.or(both.first())?;
    if both.len() < 3 {
        return None;
    }
    let points: Vec<TradePoint> = both
        .iter()
        .map(|(s, x, y)| TradePoint { s: *s, gain: x / base_a, keep: y / base_b })
        .collect();
    let places: Vec<(f64, f64)> = points.iter().map(|point| (point.gain, point.keep)).collect();
    Some(Tradeoff {
        goal: place_of(a)?,
        other: place_of(b)?,
        over_kib: settings[over].read_ahead.get(),
        front: stats::pareto(&places),
        points,
    })
}

/// The middle of a block of trials.
#[derive(Debug, Serialize)]
pub(super) struct BlockMiddle {
    at_s: f64,
    relative: f64,
}

/// The median of each block's clean trials, relative to their cells.
pub(super) fn drift(exhibit: &Exhibit<'_>) -> Vec<BlockMiddle> {
    let begun = exhibit.run.summary.created_unix_s;
    let medians: BTreeMap<(Settings, &str), f64> = exhibit
        .analysis
        .cells
        .iter()
        .map(|cell| ((cell.settings, cell.workload.as_str()), cell.throughput_mib_s.median))
        .collect();
    let mut blocks: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let clean = exhibit.run.trials.iter().filter(|trial| trial.status == TrialStatus::Clean);
    for trial in clean {
        let middle = medians.get(&(trial.settings, trial.workload.as_str()));
        if let Some(middle) = middle.filter(|middle| **middle > 0.0) {
            let (times, values) = blocks.entry(trial.block).or_default();
            times.push(trial.started_unix_s - begun);
            values.push(trial.figures.throughput_mib_s / middle);
        }
    }
    blocks
        .values()
        .filter_map(|(times, values)| {
            Some(BlockMiddle { at_s: stats::median(times)?, relative: stats::median(values)? })
        })
        .collect()
}

/// A fitted curve: setting, throughput, and where it lies in 95 of 100 cases.
#[derive(Debug, Serialize)]
pub(super) struct PredictedCurve {
    w: usize,
    points: Vec<(u64, f64, f64, f64)>,
}

/// The fitted curves of all goals.
pub(super) fn predicted(exhibit: &Exhibit<'_>, place_of: &PlaceOf<'_>) -> Vec<PredictedCurve> {
    let goals = exhibit.findings().workloads();
    let goals = goals.iter().filter(|planned| planned.role == study::Role::Goal);
    goals
        .filter_map(|planned| {
            let name = &planned.workload.name;
            let points = study::predict(exhibit.run, name).into_iter().map(|p| {
                let rate = p.throughput_mib_s;
                (p.read_ahead_kib.get(), rate.median, rate.low, rate.high)
            });
            Some(PredictedCurve { w: place_of(name)?, points: points.collect() })
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// What the storage cannot exceed.
#[derive(Debug, Serialize)]
pub(super) struct Limit {
    y: f64,
    label: String,
}

/// The limit of a virtual disk's model, which is known.
pub(super) fn limits(exhibit: &Exhibit<'_>) -> Vec<Limit> {
    let highest = exhibit.analysis.cells.iter().map(|cell| cell.throughput_mib_s.median);
    let highest = highest.fold(0.0, f64::max);
    study::limit(exhibit.run)
        // A limit far above everything would press the curves to the floor.
        .filter(|limit| limit.as_mib() < 3.0 * highest)
        .map(|limit| Limit { y: limit.as_mib(), label: "the model streams no faster".to_owned() })
        .into_iter()
        .collect()
}

/// What a vendor advises, to be drawn beside the curves.
#[derive(Debug, Serialize)]
pub(super) struct Advised {
    name: String,
    low_kib: u64,
    high_kib: u64,
}

/// Vendors' advice on `read_ahead_kb`, as far as it is numbers and nobody has given it up.
pub(super) fn advised() -> Vec<Advised> {
    let presets = diagnose::presets::all().iter();
    let current = presets.filter(|preset| preset.about_device() && !preset.outdated());
    current
        .filter_map(|preset| {
            let (low, high) = preset.advice.range()?;
            // Of "at least" and "at most" only the end that is given.
            let (low, high) = (low.get(), high.get());
            let (low, high) = match (low, high) {
                (low, high) if high > 1 << 40 => (low, low),
                (0, high) => (high, high),
                ends => ends,
            };
            let name = format!("{}, {}", preset.software, preset.workload);
            Some(Advised { name: brief(&name), low_kib: low, high_kib: high })
        })
        .collect()
}
