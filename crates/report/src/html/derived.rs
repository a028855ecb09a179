//! Data for charts beyond cells and trials: trade-offs, drift, predicted curves, limits.

use serde_json::{Value, json};
use study::CellSettings;

use super::ReportInput;
use crate::names::brief;

/// The index of a workload by its name.
pub(super) type IndexOf<'a> = dyn Fn(&str) -> Option<usize> + 'a;

/// Returns the gain of one workload against the change of another.
pub(super) fn tradeoffs(
    exhibit: &ReportInput<'_>,
    settings: &[CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<Value> {
    let with_places = |trade: crate::tradeoff::Tradeoff<'_>| {
        let point = |(at, gain, keep): &(CellSettings, f64, f64)| {
            let s = settings.binary_search(at).ok()?;
            Some(json!({ "s": s, "gain": gain, "keep": keep }))
        };
        Some(json!({
            "goal": index_of(trade.goal)?,
            "other": index_of(trade.other)?,
            "over": settings.binary_search(&trade.over).ok()?,
            "points": trade.points.iter().map(point).collect::<Option<Vec<_>>>()?,
            "front": trade.front,
        }))
    };
    let all = crate::tradeoff::tradeoffs(&exhibit.report());
    all.into_iter().filter_map(with_places).collect()
}

/// Returns the fitted curves of all goals: settings, throughput, and the ends of its 95 % interval.
pub(super) fn predicted(exhibit: &ReportInput<'_>, index_of: &IndexOf<'_>) -> Vec<Value> {
    if exhibit.report().varied() {
        // The model covers read-ahead only.
        return Vec::new();
    }
    let goals = exhibit.report().workloads();
    let goals = goals.iter().filter(|planned| planned.role == study::Role::Goal);
    let curve = |planned: &&study::PlannedWorkload| {
        let name = &planned.workload.name;
        let points = study::predict(exhibit.run, name).into_iter().map(|p| {
            let rate = p.throughput_mib_s;
            (p.read_ahead_kib, rate.median, rate.low(), rate.high())
        });
        let points: Vec<_> = points.collect();
        let w = index_of(name)?;
        (!points.is_empty()).then(|| json!({ "w": w, "points": points }))
    };
    goals.filter_map(curve).collect()
}

/// Returns the known limit of a virtual disk's model, for all workloads, and the computed limits of
/// a simulation.
pub(super) fn limits(exhibit: &ReportInput<'_>, index_of: &IndexOf<'_>) -> Vec<Value> {
    let model = study::limit(exhibit.run).map(|limit| limit.as_mib());
    let model = model.map(|y| (None, y, "the model streams no faster"));
    let of_workload = |limits: &study::WorkloadLimits| {
        let w = index_of(&limits.workload);
        let line = |label, seconds: f64| (w, limits.useful_mib / seconds, label);
        let foreseen = limits.clairvoyant_seconds;
        [
            Some(line("no schedule is faster", limits.bound_seconds)),
            foreseen.map(|seconds| line("knowing the future", seconds)),
            Some(line("best switching of settings", limits.switching_seconds)),
        ]
    };
    let worked_out = exhibit.analysis.limits.iter().flat_map(of_workload).flatten();
    let lines = model.into_iter().chain(worked_out).filter(|(_, y, _)| y.is_finite() && *y > 0.0);
    lines.map(|(w, y, label)| json!({ "w": w, "y": y, "label": label })).collect()
}

/// Returns vendors' recommendations for `read_ahead_kb` that are numbers and not outdated.
pub(super) fn advised() -> Vec<Value> {
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
            Some(json!({ "name": brief(&name), "low_kib": low, "high_kib": high }))
        })
        .collect()
}
