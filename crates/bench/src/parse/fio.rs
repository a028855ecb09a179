//! Parses fio's JSON (`--output-format=json`), with or without warnings before it.

use serde_json::Value as Json;

use super::report::{ParsedReport, ResultError, ToolFigure, Unit, first_json, some};

const TOOL: &str = "fio";

pub(crate) fn looks(text: &str) -> bool {
    text.contains("\"fio version\"")
}

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let syntax =
        |error: serde_json::Error| ResultError::Syntax { tool: TOOL, problem: error.to_string() };
    let report: Json =
        first_json(text).ok_or(ResultError::Nothing { tool: TOOL })?.map_err(syntax)?;
    let version = report.get("fio version").and_then(Json::as_str).map(str::to_owned);
    let jobs = report.get("jobs").and_then(Json::as_array);
    let jobs = jobs.into_iter().flatten().map(|job| ParsedReport {
        tool: TOOL,
        version: version.clone(),
        label: job.get("jobname").and_then(Json::as_str).unwrap_or_default().to_owned(),
        figures: ["read", "write"].iter().flat_map(|way| direction(job, way)).collect(),
    });
    some(TOOL, jobs.collect())
}

/// Returns the figures of a job's reads or writes; empty if it performed none.
fn direction(job: &Json, way: &str) -> Vec<ToolFigure> {
    let Some(part) = job.get(way) else { return Vec::new() };
    let number = |path: &[&str]| {
        path.iter().try_fold(part, |value, key| value.get(key)).and_then(Json::as_f64)
    };
    if number(&["io_bytes"]).is_none_or(|bytes| bytes <= 0.0) {
        return Vec::new();
    }
    // `bw` is in KiB/s in old versions; 3.0 added `bw_bytes`.
    let rate = number(&["bw_bytes"]).map(|bytes| bytes / 1_048_576.0);
    let rate = rate.or_else(|| number(&["bw"]).map(|kib| kib / 1024.0));
    let mut figures = Vec::new();
    let mut add = |name: &str, unit: Unit, value: Option<f64>| {
        figures.extend(value.map(|value| ToolFigure::number(format!("{way}{name}"), unit, value)));
    };
    add("", Unit::MibPerSecond, rate);
    add("", Unit::PerSecond, number(&["iops"]));
    add("_time", Unit::Seconds, number(&["runtime"]).map(|ms| ms / 1e3));
    let latency = |key: &str| number(&["clat_ns", key]).map(|ns| ns / 1e3);
    add("_latency_min", Unit::Micros, latency("min"));
    add("_latency_avg", Unit::Micros, latency("mean"));
    add("_latency_max", Unit::Micros, latency("max"));
    for (key, name) in [("50.000000", "_latency_p50"), ("99.000000", "_latency_p99")] {
        let value = number(&["clat_ns", "percentile", key]);
        add(name, Unit::Micros, value.map(|ns| ns / 1e3));
    }
    figures
}
