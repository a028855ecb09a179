//! Parses sysbench fileio reports, of 1.0 and of 0.4 and 0.5.

use super::report::{ParsedReport, ResultError, ToolFigure, Unit, parsed, scaled, some};

const TOOL: &str = "sysbench";

pub(crate) fn looks(text: &str) -> bool {
    let fileio = ["File operations:", "Operations performed:", "Extra file open flags"];
    text.contains("sysbench") && fileio.iter().any(|words| text.contains(words))
}

/// Lines of 1.0: the text before the colon, the figure's name and unit, and a factor.
const LINES: [(&str, &str, Unit, f64); 12] = [
    ("reads/s", "reads", Unit::PerSecond, 1.0),
    ("writes/s", "writes", Unit::PerSecond, 1.0),
    ("fsyncs/s", "fsyncs", Unit::PerSecond, 1.0),
    ("read, MiB/s", "read", Unit::MibPerSecond, 1.0),
    ("written, MiB/s", "written", Unit::MibPerSecond, 1.0),
    ("total time", "total_time", Unit::Seconds, 1.0),
    ("total number of events", "events", Unit::Count, 1.0),
    ("min", "latency_min", Unit::Micros, 1e3),
    ("avg", "latency_avg", Unit::Micros, 1e3),
    ("max", "latency_max", Unit::Micros, 1e3),
    ("95th percentile", "latency_p95", Unit::Micros, 1e3),
    ("approx.  95 percentile", "latency_p95", Unit::Micros, 1e3),
];

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let mut reports: Vec<ParsedReport> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("sysbench ") {
            let version =
                line.split_whitespace().nth(1).map(|v| v.trim_end_matches(':').to_owned());
            let label = String::new();
            reports.push(ParsedReport { tool: TOOL, version, label, figures: Vec::new() });
        }
        if reports.is_empty() {
            reports.push(ParsedReport { tool: TOOL, ..ParsedReport::default() });
        }
        let Some(report) = reports.last_mut() else { continue };
        if let Some(test) = line.strip_prefix("Doing ").and_then(|it| it.strip_suffix(" test")) {
            report.label = test.to_owned();
        }
        match line.split_once(':') {
            Some((key, value)) => report.figures.extend(figure(key.trim(), value.trim())),
            None => report.figures.extend(old(line)),
        }
        if line.starts_with("Read ") {
            report.figures.extend(old(line));
        }
    }
    reports.retain(|report| !report.figures.is_empty());
    some(TOOL, reports)
}

fn figure(key: &str, value: &str) -> Option<ToolFigure> {
    let (_, name, unit, factor) = LINES.iter().find(|(known, ..)| *known == key)?;
    let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &value[number.len()..] {
        // 0.4 prints units.
        "ms" if *unit == Unit::Micros => 1e3,
        "s" if *unit == Unit::Micros => 1e6,
        _ => *factor,
    };
    let number: f64 = number.trim().parse().ok()?;
    Some(ToolFigure::number(*name, *unit, number * scale))
}

/// Parses lines of 0.4 and 0.5 (`Mb` means MiB): `Read 1.5625Gb  Written 0b  Total transferred
/// 1.5625Gb  (159.99Mb/sec)` and `10239.28 Requests/sec executed`.
fn old(line: &str) -> Option<ToolFigure> {
    if let Some(rate) = line.strip_suffix("Requests/sec executed") {
        return Some(ToolFigure::new("requests", Unit::PerSecond, parsed(rate)));
    }
    let (_, rate) = line.split_once('(')?;
    let rate = rate.split_once("/sec)")?.0;
    let units = [("b", 1.0 / 1_048_576.0), ("Kb", 1.0 / 1024.0), ("Mb", 1.0), ("Gb", 1024.0)];
    Some(ToolFigure::number("transferred", Unit::MibPerSecond, scaled(rate, &units)?))
}
