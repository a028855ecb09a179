//! Parses iozone reports: the printed table, and the Excel report that `-R` adds.

use super::report::{FigureValue, ParsedReport, ResultError, ToolFigure, Unit, parsed, some};

const TOOL: &str = "iozone";

/// Columns after size and record length, in the order that all versions use.
const COLUMNS: [&str; 13] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random_read",
    "random_write",
    "backward_read",
    "record_rewrite",
    "stride_read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
];

/// Titles of the Excel report's tables, and the index of their column.
const EXCEL: [(&str, usize); 13] = [
    ("writer report", 0),
    ("re-writer report", 1),
    ("reader report", 2),
    ("re-reader report", 3),
    ("random read report", 4),
    ("random write report", 5),
    ("backward read report", 6),
    ("record rewrite report", 7),
    ("stride read report", 8),
    ("fwrite report", 9),
    ("re-fwrite report", 10),
    ("fread report", 11),
    ("re-fread report", 12),
];

pub(crate) fn looks(text: &str) -> bool {
    text.lines().any(is_heading) || text.lines().any(|line| excel(line).is_some())
}

fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    matches!(words.next(), Some("kB" | "KB")) && words.next() == Some("reclen")
}

fn excel(line: &str) -> Option<usize> {
    let title = line.trim().strip_prefix('"')?.strip_suffix('"')?.to_ascii_lowercase();
    EXCEL.iter().find(|(name, _)| *name == title).map(|(_, column)| *column)
}

/// One row of either format.
#[derive(Clone, Debug)]
struct Row {
    size: u64,
    record: u64,
    values: [FigureValue; 13],
}

pub(crate) fn read(text: &str) -> Result<Vec<ParsedReport>, ResultError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut version = None;
    let mut columns: Option<Vec<usize>> = None;
    let mut report: Option<(usize, Vec<u64>)> = None;
    let mut before = "";
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.contains("Version $Revision:") {
            version = words.iter().rfind(|word| word.contains('.')).map(|word| (*word).to_owned());
        }
        if is_heading(line) {
            columns = Some(columns_of(line, before));
        } else if let Some(column) = excel(line) {
            (columns, report) = (None, Some((column, Vec::new())));
        } else if let Some((column, records)) = &mut report {
            if words.is_empty() {
                if !records.is_empty() {
                    report = None;
                }
            } else if records.is_empty() {
                *records = words.iter().filter_map(|word| quoted(word)).collect();
            } else if let Some(size) = quoted(words[0]) {
                for (record, value) in records.iter().zip(&words[1..]) {
                    set(&mut rows, size, *record, *column, parsed(value));
                }
            }
        } else if let Some(columns) = &columns
            && let [size, record, values @ ..] = words.as_slice()
            && let (Ok(size), Ok(record)) = (size.parse(), record.parse())
        {
            for (column, value) in columns.iter().zip(values) {
                set(&mut rows, size, record, *column, parsed(value));
            }
        }
        before = line;
    }
    some(TOOL, rows.iter().map(|row| row.report(version.clone())).collect())
}

/// Parses a size in kB, with or without quotes.
fn quoted(word: &str) -> Option<u64> {
    word.trim_matches('"').parse().ok()
}

/// Identifies the columns of a table. If only some tests ran, the heading has only their names, in
/// two lines; ambiguous names are resolved by position.
fn columns_of(heading: &str, above: &str) -> Vec<usize> {
    let words: Vec<&str> = heading.split_whitespace().skip(2).collect();
    let above: Vec<&str> = above.split_whitespace().collect();
    // The line `random random bkwd record stride` is above `read write read rewrite read`.
    let mut upper = above.iter();
    let mut seen: Vec<usize> = Vec::new();
    for word in &words {
        let Some(plain) = COLUMNS.iter().position(|name| name == word) else { continue };
        let first = plain >= 3 || (!seen.contains(&plain) && seen.iter().all(|s| *s < 4));
        let column = if first {
            plain
        } else {
            match (upper.next().copied(), *word) {
                (Some("random"), "read") => 4,
                (Some("random"), "write") => 5,
                (Some("bkwd"), _) => 6,
                (Some("record"), _) => 7,
                (Some("stride"), _) => 8,
                _ => continue,
            }
        };
        seen.push(column);
    }
    seen
}

fn set(rows: &mut Vec<Row>, size: u64, record: u64, column: usize, value: FigureValue) {
    // iozone prints 0 for tests that did not run.
    let value = if value == FigureValue::Number(0.0) { FigureValue::Absent } else { value };
    let found = rows.iter_mut().find(|row| (row.size, row.record) == (size, record));
    let row = match found {
        Some(row) => row,
        None => {
            rows.push(Row { size, record, values: [FigureValue::Absent; 13] });
            let last = rows.len() - 1;
            &mut rows[last]
        }
    };
    if let Some(cell) = row.values.get_mut(column)
        && value != FigureValue::Absent
    {
        *cell = value;
    }
}

impl Row {
    fn report(&self, version: Option<String>) -> ParsedReport {
        let figures =
            COLUMNS.iter().zip(self.values).filter(|(_, value)| *value != FigureValue::Absent);
        ParsedReport {
            tool: TOOL,
            version,
            label: format!("file {} KiB, record {} KiB", self.size, self.record),
            figures: figures
                .map(|(name, value)| ToolFigure::new(*name, Unit::KibPerSecond, value))
                .collect(),
        }
    }
}
