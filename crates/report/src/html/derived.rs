//! Data for charts beyond cells and trials: trade-offs, drift, predicted curves, limits.

use std::collections::BTreeMap;

use serde::Serialize;
use study::{CellSettings, TrialStatus};

use super::ReportInput;
use crate::names::brief;

/// The index of a workload by its name.
pub(super) type IndexOf<'a> = dyn Fn(&str) -> Option<usize> + 'a;

/// The gain of one workload against the change of another. Settings and workloads are indices.
#[derive(Debug, Serialize)]
pub(super) struct TradeoffData {
    goal: usize,
    other: usize,
    /// The common baseline.
    over: usize,
    points: Vec<TradePoint>,
    /// Indices of the points on the Pareto front.
    front: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct TradePoint {
    s: usize,
    gain: f64,
    keep: f64,
}

pub(super) fn tradeoffs(
    exhibit: &ReportInput<'_>,
    settings: &[CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<TradeoffData> {
    let with_places = |trade: crate::tradeoff::Tradeoff<'_>| {
        let point = |(at, gain, keep): &(CellSettings, f64, f64)| {
            let s = settings.binary_search(at).ok()?;
            Some(TradePoint { s, gain: *gain, keep: *keep })
        };
        Some(TradeoffData {
            goal: index_of(trade.goal)?,
            other: index_of(trade.other)?,
            over: settings.binary_search(&trade.over).ok()?,
            points: trade.points.iter().map(point).collect::<Option<_>>()?,
            front: trade.front,
        })
    };
    let all = crate::tradeoff::tradeoffs(&exhibit.report());
    all.into_iter().filter_map(with_places).collect()
}

/// The median of a block of trials, relative to the medians of their cells.
#[derive(Debug, Serialize)]
pub(super) struct BlockMiddle {
    at_s: f64,
    relative: f64,
}

/// Returns the median of each block's undisturbed trials, relative to their cells.
pub(super) fn drift(exhibit: &ReportInput<'_>) -> Vec<BlockMiddle> {
    let begun = exhibit.run.summary.created_unix_s;
    let medians: BTreeMap<(CellSettings, &str), f64> = exhibit
        .analysis
        .cells
        .iter()
        .map(|cell| ((cell.settings.clone(), cell.workload.as_str()), cell.throughput_mib_s.median))
        .collect();
    let mut blocks: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let clean = exhibit.run.trials.iter().filter(|trial| trial.status == TrialStatus::Clean);
    for trial in clean {
        let middle = medians.get(&(trial.settings.clone(), trial.workload.as_str()));
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

/// A fitted curve: setting, throughput, and the ends of its 95 % interval.
#[derive(Debug, Serialize)]
pub(super) struct PredictedCurve {
    w: usize,
    points: Vec<(u64, f64, f64, f64)>,
}

/// Returns the fitted curves of all goals.
pub(super) fn predicted(exhibit: &ReportInput<'_>, index_of: &IndexOf<'_>) -> Vec<PredictedCurve> {
    if exhibit.report().varied() {
        // The model covers read-ahead only.
        return Vec::new();
    }
    let goals = exhibit.report().workloads();
    let goals = goals.iter().filter(|planned| planned.role == study::Role::Goal);
    goals
        .filter_map(|planned| {
            let name = &planned.workload.name;
            let points = study::predict(exhibit.run, name).into_iter().map(|p| {
                let rate = p.throughput_mib_s;
                (p.read_ahead_kib.get(), rate.median, rate.low(), rate.high())
            });
            Some(PredictedCurve { w: index_of(name)?, points: points.collect() })
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// A limit of one workload, or of all workloads (`w` is `None`).
#[derive(Debug, Serialize)]
pub(super) struct LimitLine {
    w: Option<usize>,
    y: f64,
    label: &'static str,
}

/// Returns the known limit of a virtual disk's model, and the computed limits of a simulation.
pub(super) fn limits(exhibit: &ReportInput<'_>, index_of: &IndexOf<'_>) -> Vec<LimitLine> {
    let model = study::limit(exhibit.run).map(|limit| limit.as_mib());
    let model = model.map(|y| LimitLine { w: None, y, label: "the model streams no faster" });
    let of_workload = |limits: &study::WorkloadLimits| {
        let w = index_of(&limits.workload);
        let line = |label, seconds: f64| LimitLine { w, y: limits.useful_mib / seconds, label };
        let foreseen = limits.clairvoyant_seconds;
        [
            Some(line("no schedule is faster", limits.bound_seconds)),
            foreseen.map(|seconds| line("knowing the future", seconds)),
            Some(line("best switching of settings", limits.switching_seconds)),
        ]
    };
    let worked_out = exhibit.analysis.limits.iter().flat_map(of_workload).flatten();
    let sensible = |limit: &LimitLine| limit.y.is_finite() && limit.y > 0.0;
    model.into_iter().chain(worked_out).filter(sensible).collect()
}

/// A vendor's recommendation, drawn with the curves.
#[derive(Debug, Serialize)]
pub(super) struct Advised {
    name: String,
    low_kib: u64,
    high_kib: u64,
}

/// Returns vendors' recommendations for `read_ahead_kb` that are numbers and not outdated.
pub(super) fn advised() -> Vec<Advised> {
    let presets = doctor::presets::all().iter();
    let current = presets.filter(|preset| preset.about_device() && !preset.outdated());
    current
        .filter_map(|preset| {
            let (low, high) = preset.advice.range()?;
            // "At least" and "at most" have only the stated end.
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
