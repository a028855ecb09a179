//! Reports and their figures.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Units of 1024 bytes a second.
    KibPerSecond,
    /// Units of 1024² bytes a second.
    MibPerSecond,
    PerSecond,
    /// Processor time in percent.
    CpuPercent,
    Micros,
    Seconds,
    Count,
}

impl Unit {
    /// The suffix of names of figures with this unit.
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
    /// A finite number of 0 or more.
    Number(f64),
    /// The operation was too fast to measure.
    TooFast,
    /// Not measured.
    Absent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolFigure {
    /// The program's name for it, with underscores.
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

    /// The name with its unit, as in JSON.
    pub fn key(&self) -> String {
        format!("{}_{}", self.name, self.unit.suffix())
    }

    /// The number, if there is one.
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            FigureValue::Number(number) => Some(number),
            FigureValue::TooFast | FigureValue::Absent => None,
        }
    }

    /// The throughput in MiB/s, if it is one.
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

/// Accepts a number that can be a figure.
pub(crate) fn number(number: f64) -> FigureValue {
    if number.is_finite() && number >= 0.0 {
        FigureValue::Number(number)
    } else {
        FigureValue::Absent
    }
}

/// Parses a number.
pub(crate) fn parsed(text: &str) -> FigureValue {
    text.trim().parse().map_or(FigureValue::Absent, number)
}

/// One run of a program, or one row of its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedReport {
    pub tool: &'static str,
    pub version: Option<String>,
    /// Its label: host, operation, size of file and record.
    pub label: String,
    pub figures: Vec<ToolFigure>,
}

impl ParsedReport {
    /// The figure with this name, without its unit.
    pub fn figure(&self, name: &str) -> Option<&ToolFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// As JSON.
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
    /// A line that the program would not have written.
    #[error("line {line} does not have the format of {tool}: {problem}")]
    Line {
        tool: &'static str,
        /// The line, from 1.
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
