//! Parses elbencho's CSV (`--csvfile`); headings identify the columns.

use super::report::{ParsedReport, ResultError, ToolFigure, Unit, parsed, some};

const TOOL: &str = "elbencho";

pub(crate) fn looks(text: &str) -> bool {
    let heading = text.lines().next().unwrap_or_default().to_ascii_lowercase();
    heading.contains("operation") && heading.contains("mib/s [last]")
}

/// Headings, figure names, units and factors. elbencho reports each result at the time when the
/// first and when the last thread finished; only the latter covers all the work.
const COLUMNS: [(&str, &str, Unit, f64); 11] = [
    ("mib/s [last]", "throughput", Unit::MibPerSecond, 1.0),
    ("mib/s [first]", "throughput_first_done", Unit::MibPerSecond, 1.0),
    ("iops [last]", "requests", Unit::PerSecond, 1.0),
    ("iops [first]", "requests_first_done", Unit::PerSecond, 1.0),
    ("entries/s [last]", "entries", Unit::PerSecond, 1.0),
    ("entries/s [first]", "entries_first_done", Unit::PerSecond, 1.0),
    ("time ms [last]", "time", Unit::Seconds, 1e-3),
    ("io lat us [min]", "latency_min", Unit::Micros, 1.0),
    ("io lat us [avg]", "latency_avg", Unit::Micros, 1.0),
    ("io lat us [max]", "latency_max", Unit::Micros, 1.0),
    ("cpu% [last]", "all", Unit::CpuPercent, 1.0),
];

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let syntax = |error: csv::Error| ResultError::Syntax { tool: TOOL, problem: error.to_string() };
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let headings: Vec<String> =
        reader.headers().map_err(syntax)?.iter().map(str::to_ascii_lowercase).collect();
    let place = |name: &str| headings.iter().position(|heading| heading == name);
    let mut reports = Vec::new();
    for record in reader.records() {
        let record = record.map_err(syntax)?;
        let field = |name: &str| place(name).and_then(|at| record.get(at)).unwrap_or("");
        // elbencho repeats the headings when it appends to a file.
        if field("operation").eq_ignore_ascii_case("operation") {
            continue;
        }
        let label = [field("label"), field("operation"), field("block size")];
        let label: Vec<&str> = label.into_iter().filter(|part| !part.is_empty()).collect();
        let figures = COLUMNS.iter().filter_map(|(heading, name, unit, factor)| {
            let text = field(heading);
            let number = ToolFigure::new(*name, *unit, parsed(text)).as_number()?;
            Some(ToolFigure::number(*name, *unit, number * factor))
        });
        reports.push(ParsedReport {
            tool: TOOL,
            version: Some(field("version").to_owned()).filter(|version| !version.is_empty()),
            label: label.join(", "),
            figures: figures.collect(),
        });
    }
    some(TOOL, reports)
}
