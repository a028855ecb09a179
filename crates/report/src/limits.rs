//! How far settings are from what is possible.

use study::WorkloadLimits;

use crate::clean;
use crate::number::{ABSENT, short};

/// A table for each workload, with what its limits are above it.
pub(crate) fn limits_text(limits: &[WorkloadLimits]) -> String {
    limits.iter().map(of_workload).collect()
}

fn seconds(seconds: f64) -> String {
    short(seconds).map_or(ABSENT.to_owned(), |text| format!("{text} s"))
}

fn share(share: Option<f64>) -> String {
    share.map_or(ABSENT.to_owned(), |share| format!("{:.0} %", share * 100.0))
}

fn of_workload(limits: &WorkloadLimits) -> String {
    let name = clean::plain(&limits.workload);
    let useful = short(limits.useful_mib).unwrap_or_default();
    let mut text = format!("\nLimits of {name}, for {} reads of {useful} MiB:\n", limits.requests);
    let mut line = |what: &str, seconds_taken: f64, how: String| {
        text.push_str(&format!("  {what:<28} {:>10}  {how}\n", seconds(seconds_taken)));
    };
    line("now", limits.default_seconds, format!("{} KiB", limits.default_kib.get()));
    line(
        "best constant setting",
        limits.static_seconds,
        format!("{} KiB", limits.static_kib.get()),
    );
    line("best constant per file", limits.per_file_seconds, String::new());
    let mut phases: Vec<String> =
        limits.switching.iter().map(|phase| phase.read_ahead_kib.get().to_string()).collect();
    phases.dedup();
    line("best switching", limits.switching_seconds, format!("{} KiB", phases.join(" → ")));
    if let Some(foreseen) = limits.clairvoyant_seconds {
        line("knowing the future", foreseen, String::new());
    }
    line("lower bound", limits.bound_seconds, String::new());
    text.push_str(&format!(
        "{:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8}\n",
        "KiB", "time", "stalled", "requests", "waste MiB", "headroom", "of future", "× bound"
    ));
    for setting in &limits.settings {
        let times = setting.times_bound.and_then(short).unwrap_or(ABSENT.to_owned());
        text.push_str(&format!(
            "{:>10} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {times:>8}\n",
            setting.read_ahead_kib.get(),
            seconds(setting.seconds),
            seconds(setting.stall_seconds),
            setting.device_requests,
            short(setting.wasted_mib).unwrap_or_default(),
            share(setting.headroom_captured),
            share(setting.headroom_captured_clairvoyant),
        ));
    }
    text
}
