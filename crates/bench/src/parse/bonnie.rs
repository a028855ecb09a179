//! Parses bonnie++ reports: the text of 1.9x and 2.x, and CSV (formats 1.96 to 1.98).

use super::report::{FigureValue, ParsedReport, ResultError, ToolFigure, Unit, some};

const TOOL: &str = "bonnie++";

/// Columns of the text report; each is followed by its CPU percentage.
const TEXT: [&str; 6] =
    ["char_output", "block_output", "rewrite", "char_input", "block_input", "random_seeks"];
/// File operations in the second table.
const FILES: [&str; 6] =
    ["seq_create", "seq_stat", "seq_delete", "random_create", "random_stat", "random_delete"];

pub(crate) fn looks(text: &str) -> bool {
    text.contains("------Sequential Output------") || text.lines().any(is_csv)
}

fn is_csv(line: &str) -> bool {
    let line = line.trim();
    ["1.96,", "1.97,", "1.98,"].iter().any(|form| line.starts_with(form))
        && line.split(',').count() >= 40
}

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let mut reports: Vec<ParsedReport> = Vec::new();
    let mut version = None;
    let mut columns = false;
    // Columns of the table to which the next latencies belong.
    let mut latencies: &[&str] = &[];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_csv(line) {
            let report = csv(line, number)?;
            // bonnie++ prints the same run as CSV after the text.
            match reports.last_mut().filter(|last| is_same(last, &report)) {
                Some(last) => *last = report,
                None => reports.push(report),
            }
        } else if line.contains("Sequential Output") {
            version = version_in(&words);
            (columns, latencies) = (false, &[]);
        } else if line.contains("Sequential Create") {
            // A separate table that belongs to the preceding run.
            columns = false;
            latencies = if reports.is_empty() { &[] } else { &FILES };
        } else if line.contains("%CP") {
            columns = latencies.is_empty() && line.contains("/sec");
        } else if columns && words.len() >= 13 {
            reports.push(row(&words, version.clone(), number)?);
            (columns, latencies) = (false, &TEXT);
        } else if words.first() == Some(&"Latency") {
            if let Some(report) = reports.last_mut() {
                add_latencies(report, latencies, &words[1..]);
            }
            latencies = &[];
        } else if latencies == FILES
            && words.len() >= 13
            && let Some(report) = reports.last_mut()
        {
            let cells = &words[words.len() - 12..];
            report.figures.extend(with_cpu(&FILES, cells, number).unwrap_or_default());
        }
    }
    some(TOOL, reports)
}

fn version_in(words: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| *word == "Version")?;
    words.get(at + 1).map(|version| (*version).to_owned())
}

/// Returns whether two reports describe the same run; the text of 2.x has rounded numbers.
fn is_same(text: &ParsedReport, csv: &ParsedReport) -> bool {
    let alike = |name: &str| {
        let (a, b) = (text.figure(name), csv.figure(name));
        match (a.and_then(ToolFigure::as_number), b.and_then(ToolFigure::as_number)) {
            (Some(a), Some(b)) => (a - b).abs() <= 0.06 * b.max(1.0),
            (a, b) => a.is_none() && b.is_none(),
        }
    };
    TEXT.iter().all(|name| alike(name))
}

/// Parses `host 8G 806 99 72148 8 …`. The name may contain spaces; the numbers come last.
fn row(words: &[&str], version: Option<String>, line: usize) -> Result<ParsedReport, ResultError> {
    let cells = &words[words.len() - 12..];
    let name = &words[..words.len() - 12];
    let figures = with_cpu(&TEXT, cells, line)?;
    Ok(ParsedReport { tool: TOOL, version, label: name.join(" "), figures })
}

/// Parses columns, each with its CPU percentage.
fn with_cpu(names: &[&str], cells: &[&str], line: usize) -> Result<Vec<ToolFigure>, ResultError> {
    let mut figures = Vec::new();
    for (name, pair) in names.iter().zip(cells.chunks_exact(2)) {
        let is_rate = TEXT.contains(name) && *name != "random_seeks";
        let unit = if is_rate { Unit::KibPerSecond } else { Unit::PerSecond };
        figures.push(ToolFigure::new(*name, unit, cell(pair[0], unit, line)?));
        figures.push(ToolFigure::new(*name, Unit::CpuPercent, plain(pair[1], line)?));
    }
    Ok(figures)
}

fn add_latencies(report: &mut ParsedReport, names: &[&str], words: &[&str]) {
    for (name, word) in names.iter().zip(words) {
        let name = format!("{name}_latency");
        report.figures.push(ToolFigure::new(name, Unit::Micros, latency(word)));
    }
}

/// Parses a cell: `+++++`, empty, or digits. 2.x appends `k`, `m` or `g` to long rates in KiB/s
/// (`72.2m` is 72.2 MiB/s); without a suffix the rate is in KiB/s.
fn cell(text: &str, unit: Unit, line: usize) -> Result<FigureValue, ResultError> {
    let factors = [('k', 1.0), ('m', 1024.0), ('g', 1_048_576.0)];
    let factor = factors.iter().find(|(letter, _)| text.ends_with(*letter));
    match factor {
        Some((letter, factor)) if unit == Unit::KibPerSecond => {
            match plain(text.trim_end_matches(*letter), line)? {
                FigureValue::Number(number) => Ok(super::report::number(number * factor)),
                other => Ok(other),
            }
        }
        _ => plain(text, line),
    }
}

fn plain(text: &str, line: usize) -> Result<FigureValue, ResultError> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte == b'+') {
        return Ok(FigureValue::TooFast);
    }
    if text.is_empty() {
        return Ok(FigureValue::Absent);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(FigureValue::Number(number)),
        _ => {
            let problem =
                format!("{:?} is not a number", text.chars().take(40).collect::<String>());
            Err(ResultError::Line { tool: TOOL, line, problem })
        }
    }
}

/// Converts `10976us`, `762ms` or `3s` to microseconds.
fn latency(text: &str) -> FigureValue {
    let text = text.trim();
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let found = units.iter().find_map(|(unit, micros)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * micros)
    });
    match found {
        Some(micros) => super::report::number(micros),
        None if !text.is_empty() && text.bytes().all(|byte| byte == b'+') => FigureValue::TooFast,
        None => FigureValue::Absent,
    }
}

/// Parses a CSV line: format, version, name, concurrency, seed, size, chunk; in 1.98 also seeks and
/// seek processes; then the text's columns, the file columns, and all latencies.
fn csv(line: &str, number: usize) -> Result<ParsedReport, ResultError> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let first = if fields.first() == Some(&"1.98") { 9 } else { 7 };
    let field = |at: usize| fields.get(at).copied().unwrap_or("");
    let label = [field(2), field(5)].join(" ").trim().to_owned();
    let version = Some(field(1).to_owned()).filter(|version| !version.is_empty());
    let mut report = ParsedReport { tool: TOOL, version, label, figures: Vec::new() };
    // Five fields contain the number and sizes of the files.
    let files = first + 12 + 5;
    for (names, at) in [(&TEXT, first), (&FILES, files)] {
        let cells: Vec<&str> = (at..at + 12).map(field).collect();
        report.figures.extend(with_cpu(names, &cells, number)?);
    }
    let latencies = files + 12;
    for (index, name) in TEXT.iter().chain(&FILES).enumerate() {
        let value = latency(field(latencies + index));
        report.figures.push(ToolFigure::new(format!("{name}_latency"), Unit::Micros, value));
    }
    Ok(report)
}
