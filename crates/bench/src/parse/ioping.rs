//! Parses ioping reports: the statistics at the end, and the line of numbers of `-B`.

use super::report::{ParsedReport, ResultError, ToolFigure, Unit, scaled, some};

const TOOL: &str = "ioping";

pub(crate) fn looks(text: &str) -> bool {
    text.contains("ioping statistics ---") || text.lines().any(|line| batch(line).is_some())
}

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let mut reports: Vec<ParsedReport> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_suffix("ioping statistics ---") {
            let label = label.trim_start_matches("---").trim().to_owned();
            reports.push(ParsedReport { tool: TOOL, version: None, label, figures: Vec::new() });
        } else if let Some(figures) = batch(line) {
            reports.push(ParsedReport { tool: TOOL, version: None, label: String::new(), figures });
        } else if let Some(report) = reports.last_mut() {
            report.figures.extend(statistics(line));
        }
    }
    some(TOOL, reports)
}

/// Parses a line of at least eight numbers: requests, their total time in ns, requests/s, bytes/s,
/// and the minimum, mean, maximum and mean deviation of their time in ns.
fn batch(line: &str) -> Option<Vec<ToolFigure>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if !(8..=16).contains(&words.len()) {
        return None;
    }
    let numbers: Vec<f64> = words
        .iter()
        .map(|word| word.parse::<u64>().ok().map(|number| number as f64))
        .collect::<Option<_>>()?;
    let micros = |name: &str, at: usize| ToolFigure::number(name, Unit::Micros, numbers[at] / 1e3);
    // A line with inconsistent numbers is not an ioping result.
    let (least, mean, most) = (numbers[4], numbers[5], numbers[6]);
    if !(least <= mean && mean <= most) || numbers[0] < 1.0 {
        return None;
    }
    Some(vec![
        ToolFigure::number("requests", Unit::Count, numbers[0]),
        ToolFigure::number("requests", Unit::PerSecond, numbers[2]),
        ToolFigure::number("read", Unit::MibPerSecond, numbers[3] / 1_048_576.0),
        micros("latency_min", 4),
        micros("latency_avg", 5),
        micros("latency_max", 6),
        micros("latency_mdev", 7),
    ])
}

fn statistics(line: &str) -> Vec<ToolFigure> {
    if line.contains("requests completed in") {
        return completed(line);
    }
    let Some(rest) = line.strip_prefix("min/avg/max/mdev =") else { return Vec::new() };
    let names = ["latency_min", "latency_avg", "latency_max", "latency_mdev"];
    let values = rest.split('/').map(|time| scaled(time, &TIMES));
    names
        .iter()
        .zip(values)
        .filter_map(|(name, value)| Some(ToolFigure::number(*name, Unit::Micros, value?)))
        .collect()
}

/// Parses `4.25 k requests completed in 300.5 ms, 16.6 MiB read, 14.1 k iops, 55.2 MiB/s`.
fn completed(line: &str) -> Vec<ToolFigure> {
    let mut figures = Vec::new();
    for part in line.split(',').map(str::trim) {
        if let Some((requests, _)) = part.split_once(" requests completed in") {
            let requests = scaled(requests, &SUFFIXES);
            figures.extend(requests.map(|n| ToolFigure::number("requests", Unit::Count, n)));
        } else if let Some(rate) = part.strip_suffix(" iops") {
            let rate = scaled(rate, &SUFFIXES);
            figures.extend(rate.map(|n| ToolFigure::number("requests", Unit::PerSecond, n)));
        } else if let Some(rate) = part.strip_suffix("/s") {
            let rate = scaled(rate, &SIZES);
            figures.extend(rate.map(|n| ToolFigure::number("read", Unit::MibPerSecond, n)));
        }
    }
    figures
}

/// Decimal suffixes of a number.
const SUFFIXES: [(&str, f64); 6] =
    [("", 1.0), ("k", 1e3), ("m", 1e6), ("M", 1e6), ("g", 1e9), ("G", 1e9)];

/// Sizes in MiB.
const SIZES: [(&str, f64); 5] = [
    ("B", 1.0 / 1_048_576.0),
    ("KiB", 1.0 / 1024.0),
    ("MiB", 1.0),
    ("GiB", 1024.0),
    ("TiB", 1_048_576.0),
];

/// Times in microseconds.
const TIMES: [(&str, f64); 5] = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6), ("min", 60e6)];
