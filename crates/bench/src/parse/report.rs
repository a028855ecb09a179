//! Parsed reports and their figures.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// KiB (1024 bytes) per second.
    KibPerSecond,
    /// MiB (1024² bytes) per second.
    MibPerSecond,
    PerSecond,
    /// CPU time in percent.
    CpuPercent,
    Micros,
    Seconds,
    Count,
}

impl Unit {
    /// Returns the suffix that figure names get for this unit.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::KibPerSecond => "kib_s",
            Self::MibPerSecond => "mib_s",
            Self::PerSecond => "per_s",
            Self::CpuPercent => "cpu_percent",
            Self::Micros => "us",
            Self::Seconds => "s",
            Self::Count => "count",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureValue {
    /// A finite number, at least 0.
    Number(f64),
    /// The operation was too fast for the program to measure.
    TooFast,
    /// The program did not measure this figure.
    Absent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolFigure {
    /// The program's name for the figure, with underscores.
    pub name: String,
    pub unit: Unit,
    pub value: FigureValue,
}

impl ToolFigure {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, value: FigureValue) -> Self {
        Self { name: name.into(), unit, value }
    }

    pub(crate) fn number(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self::new(name, unit, number(value))
    }

    /// Returns the name with the unit, as in JSON.
    pub fn key(&self) -> String {
        format!("{}_{}", self.name, self.unit.suffix())
    }

    /// Returns the number; `None` if the figure was not measured.
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            FigureValue::Number(number) => Some(number),
            FigureValue::TooFast | FigureValue::Absent => None,
        }
    }

    /// Returns the throughput in MiB/s; `None` if the figure is not a throughput.
    pub fn mib_s(&self) -> Option<f64> {
        match self.unit {
            Unit::KibPerSecond => Some(self.as_number()? / 1024.0),
            Unit::MibPerSecond => self.as_number(),
            _ => None,
        }
    }

    fn json(&self) -> Json {
        match self.value {
            FigureValue::Number(number) => json!(number),
            FigureValue::TooFast => json!("too fast to measure"),
            FigureValue::Absent => Json::Null,
        }
    }
}

/// Converts a number to a figure; `Absent` unless it is finite and at least 0.
pub(crate) fn number(number: f64) -> FigureValue {
    if number.is_finite() && number >= 0.0 {
        FigureValue::Number(number)
    } else {
        FigureValue::Absent
    }
}

/// Parses a number; `Absent` if the text is not one.
pub(crate) fn parsed(text: &str) -> FigureValue {
    text.trim().parse().map_or(FigureValue::Absent, number)
}

/// Parses a number with a unit after it, such as `4.25 k` or `159.99Mb`: multiplies the number by
/// the factor of its unit.
pub(crate) fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number.trim().parse::<f64>().ok()? * factor)
}

/// Parses the first JSON document in a program's output, which may have warnings before and text
/// after it; `None` if there is none.
pub(crate) fn first_json<T: DeserializeOwned>(text: &str) -> Option<serde_json::Result<T>> {
    let start = if text.starts_with('{') { 0 } else { text.find("\n{").map_or(0, |at| at + 1) };
    serde_json::Deserializer::from_str(&text[start..]).into_iter().next()
}

/// One run of a program, or one row of its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedReport {
    pub tool: &'static str,
    pub version: Option<String>,
    /// What was measured: host, operation, file and record size.
    pub label: String,
    pub figures: Vec<ToolFigure>,
}

impl ParsedReport {
    /// Returns the figure with this name (without the unit).
    pub fn figure(&self, name: &str) -> Option<&ToolFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// Returns the report as JSON.
    pub fn json(&self) -> Json {
        let figures: Map<String, Json> =
            self.figures.iter().map(|figure| (figure.key(), figure.json())).collect();
        json!({
            "tool": self.tool,
            "version": self.version,
            "label": self.label,
            "figures": figures,
        })
    }
}

impl Serialize for ParsedReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResultError {
    /// The text contains no report of this program.
    #[error("no result of {tool} found")]
    Nothing { tool: &'static str },
    /// A line does not have the program's format.
    #[error("line {line} does not have the format of {tool}: {problem}")]
    Line {
        tool: &'static str,
        /// Line number, from 1.
        line: usize,
        problem: String,
    },
    /// The text does not have the expected format.
    #[error("this is not a report of {tool}: {problem}")]
    Syntax { tool: &'static str, problem: String },
}

pub(crate) fn some(
    tool: &'static str,
    reports: Vec<ParsedReport>,
) -> Result<Vec<ParsedReport>, ResultError> {
    if reports.iter().all(|report| report.figures.is_empty()) {
        return Err(ResultError::Nothing { tool });
    }
    Ok(reports)
}
