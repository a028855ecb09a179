//! The data for the page's script: one JSON document in the page. It contains the figures of the
//! analysis in full; names are sanitised. Settings and workloads are indices into the lists of the
//! run.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use stats::Estimate;
use study::{CellSettings, Decision, Quantiles, Role, Trial, TrialStatus};

use super::ReportInput;
use super::derived::{self, IndexOf};
use crate::names::{brief, settings_label};
use crate::number::setting;
use crate::trial_details::{Detail, Raw, TimeSlot, Watched, bucket_us};
use crate::unit::unit;

pub(crate) fn page_data(runs: impl Iterator<Item = Value>) -> Value {
    json!({ "runs": list(runs), "advised": derived::advised() })
}

pub(crate) fn run_data(exhibit: &ReportInput<'_>, label: &str) -> Value {
    let report = exhibit.report();
    let settings = report.all_settings();
    let workloads = report.workloads();
    let index_of = |name: &str| workloads.iter().position(|w| w.workload.name == name);
    let of_setting = |at: &CellSettings| {
        json!({
            "kib": at.read_ahead,
            "label": setting(at.read_ahead),
            // Other settings, if the study varied more than read-ahead.
            "labels": settings_label(at),
        })
    };
    let of_workload = |planned: &&study::PlannedWorkload| {
        json!({
            "name": brief(&planned.workload.name),
            "goal": planned.role == Role::Goal,
            "unit": brief(&unit(exhibit.run, &planned.workload.name)),
        })
    };
    let bends = exhibit.analysis.per_workload.iter().filter_map(|alone| {
        Some(json!({
            "w": index_of(&alone.workload)?,
            "economical_kib": alone.economical_kib,
            "best_kib": alone.best_kib,
            "knee_kib": alone.knee_kib,
        }))
    });
    json!({
        "run": exhibit.run.summary.id.0,
        "label": label,
        "settings": list(settings.iter().map(of_setting)),
        "workloads": list(workloads.iter().map(of_workload)),
        "cells": cells(exhibit, &settings, &index_of),
        "marks": marks(exhibit),
        "curves": list(bends),
        "trials": trials(exhibit, &settings, &index_of),
        "details": details(exhibit, &settings, &index_of),
        "tradeoffs": derived::tradeoffs(exhibit, &settings, &index_of),
        "drift": report.drift(),
        "predicted": derived::predicted(exhibit, &index_of),
        "limits": derived::limits(exhibit, &index_of),
    })
}

fn list<T: Serialize>(items: impl Iterator<Item = T>) -> Value {
    items.map(|item| json!(item)).collect()
}

/// A median and the ends of its interval or range.
fn three(estimate: &Estimate) -> [f64; 3] {
    [estimate.median, estimate.low(), estimate.high()]
}

fn two(quantiles: &Quantiles) -> [f64; 2] {
    [quantiles.p50, quantiles.p99]
}

fn cells(
    exhibit: &ReportInput<'_>,
    settings: &[CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<Value> {
    let details = exhibit.trial_details;
    let cell = |cell: &study::Cell| {
        Some(json!({
            "s": settings.binary_search(&cell.settings).ok()?,
            "w": index_of(&cell.workload)?,
            "repeats": cell.repeats,
            "disturbed": cell.disturbed,
            "throughput_mib_s": three(&cell.throughput_mib_s),
            "amplification": cell.amplification.as_ref().map(three),
            "device_requests": cell.device_requests.as_ref().map(three),
            "latency_us": cell.latency_us.as_ref().map(two),
            "random_latency_us": cell.random_latency_us.as_ref().map(two),
            // Mean size of a device request.
            "request_kib": details.and_then(|details| request_kib(exhibit, details, cell)),
        }))
    };
    exhibit.analysis.cells.iter().filter_map(cell).collect()
}

/// Returns the median, over the trials, of their mean request size.
fn request_kib(
    exhibit: &ReportInput<'_>,
    trial_details: &crate::TrialDetails,
    cell: &study::Cell,
) -> Option<f64> {
    let trials = cell.trials(exhibit.run).into_iter();
    let sizes: Vec<f64> = trials
        .filter_map(|trial| trial_details.trials.get(&trial.order)?.request_kib)
        .filter(|kib| *kib > 0.0)
        .collect();
    stats::median(&sizes)
}

fn marks(exhibit: &ReportInput<'_>) -> Vec<Value> {
    let advice = &exhibit.analysis.recommendation;
    if let Decision::Keep(kib) = advice.decision {
        let label = "now, and to be kept";
        return vec![json!({ "kib": kib, "kind": "recommended", "label": label })];
    }
    let without = advice.without_conditions.as_ref().map(|other| other.read_ahead_kib);
    let named = [
        ("now", "now", exhibit.run.found),
        ("other", "unconditional", without),
        ("recommended", "recommended", advice.value()),
    ];
    let mark = |(kind, label, kib): (&str, &str, Option<units::Kib>)| {
        Some(json!({ "kib": kib?, "kind": kind, "label": label }))
    };
    named.into_iter().filter_map(mark).collect()
}

/// Returns the trials by column, which takes half the space of rows.
fn trials(exhibit: &ReportInput<'_>, settings: &[CellSettings], index_of: &IndexOf<'_>) -> Value {
    let place = |trial: &Trial| {
        Some((settings.binary_search(&trial.settings).ok()?, index_of(&trial.workload)?))
    };
    let trials: Vec<(&Trial, (usize, usize))> =
        exhibit.run.trials.iter().filter_map(|trial| Some((trial, place(trial)?))).collect();
    let relative_throughput = exhibit.report().relative_throughput();
    let own = |of: &dyn Fn(&Trial) -> Value| -> Value {
        trials.iter().map(|(trial, _)| of(trial)).collect()
    };
    let figure = |of: &dyn Fn(&Trial) -> Option<f64>| own(&|trial| json!(of(trial).map(Rounded)));
    let raw = |of: fn(&Raw) -> Option<f64>| {
        let all = exhibit.trial_details.map(|details| &details.trials);
        figure(&|trial| of(all?.get(&trial.order)?))
    };
    let why = |trial: &Trial| {
        (!trial.disturbances.is_empty()).then(|| brief(&trial.disturbances.join("; ")))
    };
    json!({
        "order": own(&|trial| json!(trial.order)),
        "block": own(&|trial| json!(trial.block)),
        "s": list(trials.iter().map(|(_, (s, _))| s)),
        "w": list(trials.iter().map(|(_, (_, w))| w)),
        "started_s": figure(&|t| Some(t.started_unix_s - exhibit.run.summary.created_unix_s)),
        "clean": own(&|trial| json!(u8::from(trial.status == TrialStatus::Clean))),
        "throughput_mib_s": figure(&|trial| Some(trial.figures.throughput_mib_s)),
        "amplification": figure(&|trial| trial.figures.amplification),
        "requests": own(&|trial| json!(trial.figures.device_requests)),
        "p50_us": figure(&|trial| Some(trial.figures.latency_us?.p50)),
        "p99_us": figure(&|trial| Some(trial.figures.latency_us?.p99)),
        "seconds": figure(&|trial| Some(trial.figures.measured_seconds)),
        "useful_mib": raw(|raw| Some(raw.useful_mib)),
        "ahead_mib": raw(|raw| Some(raw.ahead_mib)),
        "device_mib": raw(|raw| raw.device_mib),
        "request_kib": raw(|raw| raw.request_kib),
        "queue": raw(|raw| raw.queue),
        "busy": raw(|raw| raw.busy),
        "cpu_ms": raw(|raw| Some(raw.cpu_ms)),
        // Throughput relative to the median of its cell; shows drift.
        "relative": figure(&relative_throughput),
        "why": own(&|trial| json!(why(trial))),
    })
}

/// A raw number for display, with six significant digits.
#[derive(Debug, Clone, Copy)]
struct Rounded(f64);

impl Serialize for Rounded {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if !value.is_finite() {
            return serializer.serialize_none();
        }
        if value == 0.0 {
            return serializer.serialize_u64(0);
        }
        let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
        let rounded = (value * scale).round() / scale;
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

fn details(
    exhibit: &ReportInput<'_>,
    settings: &[CellSettings],
    index_of: &IndexOf<'_>,
) -> Vec<Value> {
    let cells = exhibit.trial_details.map(|details| &details.cells).into_iter().flatten();
    let detail = |((at, workload), detail): (&(CellSettings, String), &Detail)| {
        // Lower bounds of latency buckets with their counts.
        let buckets = |of: &BTreeMap<i32, u64>| -> Vec<_> {
            of.iter().map(|(bucket, count)| (Rounded(bucket_us(*bucket)), *count)).collect()
        };
        let rate = |sum: f64, over: f64| Rounded(if over > 0.0 { sum / over } else { 0.0 });
        let course = &detail.course;
        let slot = detail.slot_seconds;
        let read = course.iter().take_while(|slot| slot.trials > 0.0);
        let seen = course.iter().take_while(|slot| slot.moments > 0.0);
        let request_kib = |slot: &TimeSlot| {
            let some = slot.device_requests > 0.0;
            some.then(|| Rounded(slot.device_mib * 1024.0 / slot.device_requests))
        };
        let sizes = detail.sizes.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        Some(json!({
            "s": settings.binary_search(at).ok()?,
            "w": index_of(workload)?,
            "stream_us": buckets(&detail.stream),
            "random_us": buckets(&detail.random),
            // Number of device requests by size: powers of two from 4 KiB.
            "sizes": detail.sizes[..sizes],
            "slot_seconds": Rounded(slot),
            "mib_s": list(read.clone().map(|s| rate(s.mib, s.trials * slot))),
            "requests_s": list(read.map(|s| rate(s.requests, s.trials * slot))),
            "device_mib_s": list(seen.clone().map(|s| rate(s.device_mib, s.moments))),
            "queue": list(seen.clone().map(|s| rate(s.queue, s.moments))),
            "device_request_kib": list(seen.map(request_kib)),
            "series": list(detail.series.iter().map(series)),
        }))
    };
    cells.filter_map(detail).collect()
}

/// Returns another quantity over time.
fn series(watched: &Watched) -> Value {
    let points = watched.means().into_iter().map(|(at, value)| (Rounded(at), Rounded(value)));
    json!({ "name": brief(&watched.name), "unit": brief(&watched.unit), "points": list(points) })
}

/// Serialises the data as text for a script element: it cannot close the element or open another,
/// and contains no JavaScript line terminator.
pub(crate) fn text(data: &impl Serialize) -> String {
    let json = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    let mut text = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_stay_of_a_raw_number() {
        let said = |value: f64| serde_json::to_string(&Rounded(value)).unwrap();
        for (value, expected) in [
            (0.0, "0"),
            (1234.5678, "1234.57"),
            (0.000_123_456_78, "0.000123457"),
            (5e9, "5000000000"),
            (-1.5, "-1.5"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(said(value), expected);
        }
    }

    #[test]
    fn nothing_in_the_data_ends_their_element() {
        let said = text(&"</script><!--&\u{2028}");
        assert!(!said.contains(['<', '>', '&', '\u{2028}']), "{said}");
        assert_eq!(serde_json::from_str::<String>(&said).unwrap(), "</script><!--&\u{2028}");
    }
}
