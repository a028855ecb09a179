//! A calibration: the probes of the device and the model, and the measured and predicted curves.

use model::calibrate::{ProbeAgreement, Purpose};
use serde_json::{Value, json};
use study::{CalibrationResult, CurvePoint};

use crate::clean;
use crate::json::{Versioned, With};
use crate::number::short_or_absent;

/// A calibration, with the measurements that check it.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationReport<'a> {
    pub target: &'a str,
    pub file: &'a str,
    /// The model, and how well it agrees with the probes.
    pub found: &'a CalibrationResult,
    /// The curve; empty if it was not measured.
    pub curve: &'a [CurvePoint],
    pub run: Option<i64>,
}

fn percent(measured: f64, model: f64) -> f64 {
    100.0 * (model / measured - 1.0)
}

/// Returns the mean of |ln(model ÷ measured)|, in percent.
fn mean_error(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let errors: Vec<f64> = pairs
        .map(|(measured, model)| 100.0 * (model / measured).ln().abs())
        .filter(|error| error.is_finite())
        .collect();
    (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64)
}

fn probe_error(report: &CalibrationReport<'_>) -> Option<f64> {
    let lines = report.found.calibration.agreement.iter();
    mean_error(lines.map(|line| (line.measured, line.model)))
}

fn curve_error(report: &CalibrationReport<'_>) -> Option<f64> {
    mean_error(report.curve.iter().map(|point| (point.measured_mib_s, point.predicted_mib_s)))
}

/// Returns the document of `calibrate --json`.
pub fn calibration_json(report: &CalibrationReport<'_>) -> Versioned<Value> {
    let calibration = &report.found.calibration;
    let probe = |line: &ProbeAgreement| {
        json!({
            "probe": words(line.purpose),
            "unit": line.unit,
            "measured": line.measured,
            "model": line.model,
            "error_percent": percent(line.measured, line.model),
        })
    };
    let point = |point: &CurvePoint| {
        let error = percent(point.measured_mib_s, point.predicted_mib_s);
        json!(With { object: point, more: json!({ "error_percent": error }) })
    };
    Versioned::new(json!({
        "target": report.target,
        "model_file": report.file,
        "kind": calibration.spec.device.kind(),
        "capacity_bytes": calibration.spec.capacity(),
        "dilation": report.found.dilation,
        "findings": calibration.findings,
        "probes": calibration.agreement.iter().map(probe).collect::<Vec<_>>(),
        "probe_error_percent": probe_error(report),
        "curve": report.curve.iter().map(point).collect::<Vec<_>>(),
        "curve_error_percent": curve_error(report),
        "curve_run": report.run,
        "description_toml": calibration.spec.to_toml(),
    }))
}

/// Describes a probe.
fn words(purpose: Purpose) -> String {
    match purpose {
        Purpose::Stream(0) => "stream at the start".to_owned(),
        Purpose::Stream(1000) => "stream at the end".to_owned(),
        Purpose::Stream(500) => "stream in the middle".to_owned(),
        Purpose::Stream(place) => format!("stream at {place} ‰"),
        Purpose::SmallStream => "stream of 4 KiB, one at a time".to_owned(),
        Purpose::Interleaved(1) => "four streams in turn".to_owned(),
        Purpose::Interleaved(depth) => format!("four streams in turn, {depth} at a time"),
        Purpose::Near => "random reads near one place".to_owned(),
        Purpose::Distance(distance) => format!("back and forth over {distance} ‰"),
        Purpose::Queue(1) => "random reads everywhere".to_owned(),
        Purpose::Queue(depth) => format!("{depth} at a time"),
        Purpose::Across(kib) => format!("across boundaries of {kib} KiB"),
        Purpose::WithinChunk(kib) => format!("next to boundaries of {kib} KiB"),
    }
}

pub fn calibration(report: &CalibrationReport<'_>) -> String {
    let calibration = &report.found.calibration;
    let mut text = format!("{}\n\n", clean::plain(report.target));
    for finding in &calibration.findings {
        text.push_str(&format!("  {finding}\n"));
    }
    text.push_str(&format!("\n{:34} {:>10} {:>10}   error\n", "probe", "measured", "model"));
    for line in &calibration.agreement {
        let off = percent(line.measured, line.model);
        let (measured, model) = (short_or_absent(line.measured), short_or_absent(line.model));
        let probe = format!("{} ({})", words(line.purpose), line.unit);
        text.push_str(&format!("{probe:<46} {measured:>8} {model:>8} {off:+6.0} %\n"));
    }
    if let Some(error) = probe_error(report) {
        text.push_str(&format!("mean error of the probes: {error:.1} %\n"));
    }
    if !report.curve.is_empty() {
        text.push_str(&curve(report));
    }
    let file = clean::plain(report.file);
    text.push_str(&format!("\nwritten to {file}: sim:{file} and virtual:{file} load it\n"));
    text
}

fn curve(report: &CalibrationReport<'_>) -> String {
    let head = ["read-ahead (KiB)", "workload", "measured (MiB/s)", "predicted", "error"];
    let [window, workload, measured, predicted, error] = head;
    let mut text =
        format!("\n{window:>16}  {workload:10} {measured:>16} {predicted:>10} {error:>8}\n");
    for point in report.curve {
        let off = percent(point.measured_mib_s, point.predicted_mib_s);
        let (measured, predicted) =
            (short_or_absent(point.measured_mib_s), short_or_absent(point.predicted_mib_s));
        let (window, workload) = (point.read_ahead_kib.get(), clean::plain(&point.workload));
        text.push_str(&format!(
            "{window:>16}  {workload:10} {measured:>16} {predicted:>10} {off:>+6.0} %\n"
        ));
    }
    if let Some(error) = curve_error(report) {
        text.push_str(&format!("mean error of the predicted curve: {error:.1} %\n"));
    }
    text
}
