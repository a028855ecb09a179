//! Writes CSV: one row for each cell, with units in the column names.

use std::io::{self, Write};

use stats::Estimate;
use study::{Cell, Quantiles, WorkloadLimits};

use crate::clean;
use crate::number::full;
use crate::run_report::RunReport;
use crate::unit::unit;

const COLUMNS: &[&str] = &[
    "run",
    "target",
    "workload",
    "read_ahead_kib",
    "read_ahead_sectors",
    "marks",
    "repeats",
    "disturbed",
    "used_up",
    "throughput_mib_s_median",
    "throughput_mib_s_low",
    "throughput_mib_s_high",
    "throughput_mib_s_spread",
    "amplification_median",
    "amplification_low",
    "amplification_high",
    "device_requests_median",
    "device_requests_low",
    "device_requests_high",
    "latency_us_p50",
    "latency_us_p99",
    "random_latency_us_p50",
    "random_latency_us_p99",
    "dilation",
    "settings",
    "headroom_captured",
    "headroom_captured_clairvoyant",
    "times_bound",
    "figure",
];

/// Writes the cells of a run. The field of an unmeasured value is empty.
pub fn write_csv(report: &RunReport<'_>, out: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    for cell in &report.analysis.cells {
        writer.write_record(row(report, cell))?;
    }
    writer.flush()
}

fn row(report: &RunReport<'_>, cell: &Cell) -> Vec<String> {
    let setting = cell.settings.read_ahead;
    let mut fields = vec![
        report.run.summary.id.to_string(),
        clean::csv(&report.run.summary.target),
        clean::csv(&cell.workload),
        setting.get().to_string(),
        setting.to_sectors().get().to_string(),
        report.marks_of(&cell.settings).join(" "),
        cell.repeats.to_string(),
        cell.disturbed.to_string(),
        cell.used_up.to_string(),
    ];
    fields.extend(estimate(Some(&cell.throughput_mib_s)));
    fields.push(cell.throughput_mib_s.spread_kind().to_owned());
    fields.extend(estimate(cell.amplification.as_ref()));
    fields.extend(estimate(cell.device_requests.as_ref()));
    fields.extend(quantiles(cell.latency_us.as_ref()));
    fields.extend(quantiles(cell.random_latency_us.as_ref()));
    fields.push(full(report.analysis.dilation));
    fields.push(clean::csv(&cell.settings.to_string()));
    fields.extend(distances(report, cell));
    fields.push(clean::csv(&unit(report.run, &cell.workload)));
    fields
}

/// Returns how far a cell is from the limits of its workload, if they were computed. Limits apply
/// to read-ahead alone, so a study of other tunables has no such figures.
fn distances(report: &RunReport<'_>, cell: &Cell) -> [String; 3] {
    let of_workload = |limits: &&WorkloadLimits| limits.workload == cell.workload;
    let limits = report.analysis.limits.iter().find(of_workload);
    let limits = limits.filter(|_| report.run.plan.factors.is_empty());
    let window = cell.settings.read_ahead;
    let settings = limits.map(|limits| limits.settings.as_slice()).unwrap_or_default();
    let setting = settings.iter().find(|setting| setting.read_ahead_kib == window);
    setting.map_or_else(Default::default, |it| {
        [it.headroom_captured, it.headroom_captured_clairvoyant, it.times_bound]
            .map(|share| share.map_or_else(String::new, full))
    })
}

fn estimate(estimate: Option<&Estimate>) -> [String; 3] {
    estimate.map_or_else(Default::default, |e| [e.median, e.low(), e.high()].map(full))
}

fn quantiles(quantiles: Option<&Quantiles>) -> [String; 2] {
    quantiles.map_or_else(Default::default, |q| [q.p50, q.p99].map(full))
}
