//! Shows how far settings are from what is possible.

use study::{SettingOutcome, WorkloadLimits};

use crate::clean;
use crate::number::{ABSENT, short, whole};

/// Returns a table for each workload, below its limits.
pub(crate) fn limits_text(limits: &[WorkloadLimits]) -> String {
    limits.iter().map(of_workload).collect()
}

fn seconds(seconds: f64) -> String {
    short(seconds).map_or(ABSENT.to_owned(), |text| format!("{text} s"))
}

fn share(share: Option<f64>) -> String {
    share.map_or(ABSENT.to_owned(), |share| format!("{} %", whole(share * 100.0)))
}

/// Returns the limits from the current setting to the lower bound: name, time, and the setting.
fn references(limits: &WorkloadLimits) -> Vec<(&'static str, f64, String)> {
    let mut phases: Vec<String> =
        limits.switching.iter().map(|phase| phase.read_ahead_kib.get().to_string()).collect();
    phases.dedup();
    let kib = |kib: units::Kib| format!("{} KiB", kib.get());
    let mut lines = vec![
        ("now", limits.default_seconds, kib(limits.default_kib)),
        ("best constant setting", limits.static_seconds, kib(limits.static_kib)),
        ("best constant per file", limits.per_file_seconds, String::new()),
        ("best switching", limits.switching_seconds, format!("{} KiB", phases.join(" → "))),
    ];
    if let Some(foreseen) = limits.clairvoyant_seconds {
        lines.push(("knowing the future", foreseen, String::new()));
    }
    lines.push(("lower bound", limits.bound_seconds, String::new()));
    lines
}

/// Column names of a setting's figures.
const COLUMNS: [&str; 8] =
    ["KiB", "time", "stalled", "requests", "waste MiB", "headroom", "of future", "× bound"];

/// Returns a setting's figures, in the order of [`COLUMNS`].
fn figures(setting: &SettingOutcome) -> [String; 8] {
    [
        setting.read_ahead_kib.get().to_string(),
        seconds(setting.seconds),
        seconds(setting.stall_seconds),
        setting.device_requests.to_string(),
        short(setting.wasted_mib).unwrap_or_default(),
        share(setting.headroom_captured),
        share(setting.headroom_captured_clairvoyant),
        setting.times_bound.and_then(short).unwrap_or(ABSENT.to_owned()),
    ]
}

fn of_workload(limits: &WorkloadLimits) -> String {
    let name = clean::plain(&limits.workload);
    let useful = short(limits.useful_mib).unwrap_or_default();
    let mut text = format!("\nLimits of {name}, for {} reads of {useful} MiB:\n", limits.requests);
    for (what, taken, how) in references(limits) {
        text.push_str(&format!("  {what:<28} {:>10}  {how}\n", seconds(taken)));
    }
    let mut line = |[kib, time, stalled, requests, waste, headroom, future, times]: [&str; 8]| {
        text.push_str(&format!(
            "{kib:>10} {time:>10} {stalled:>10} {requests:>10} {waste:>10} {headroom:>9} \
             {future:>9} {times:>8}\n"
        ));
    };
    line(COLUMNS);
    for setting in &limits.settings {
        line(figures(setting).each_ref().map(String::as_str));
    }
    text
}

pub(crate) fn limits_markdown(limits: &[WorkloadLimits]) -> String {
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let of_workload = |limits: &WorkloadLimits| {
        let name = clean::markdown(&limits.workload);
        let useful = short(limits.useful_mib).unwrap_or_default();
        let mut text = format!(
            "\n#### Limits of {name}, for {} reads of {useful} MiB\n\n\
             | | time | |\n|---|---:|---|\n",
            limits.requests
        );
        for (what, taken, how) in references(limits) {
            text.push_str(&row(&[what.to_owned(), seconds(taken), how]));
        }
        text.push('\n');
        text.push_str(&row(&COLUMNS.map(str::to_owned)));
        text.push_str(&format!("|{}\n", "---:|".repeat(COLUMNS.len())));
        for setting in &limits.settings {
            text.push_str(&row(&figures(setting)));
        }
        text
    };
    limits.iter().map(of_workload).collect()
}
