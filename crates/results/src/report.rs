//! Reports and their figures.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use thiserror::Error;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Units of 1024 bytes a second.
    KibPerSecond,
    /// Units of 1024² bytes a second.
    MibPerSecond,
    /// Operations a second.
    PerSecond,
    /// A share of processor time, in percent.
    CpuPercent,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// How many.
    Count,
}

impl Unit {
    /// The end that names of figures with this unit have.
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

/// What stands in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number, never below zero and never infinite.
    Number(f64),
    /// It was over before it could be measured.
    TooFast,
    /// Nothing: it was not tried.
    Absent,
}

/// One figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What was measured, in the tool's words with underscores.
    pub name: String,
    /// In which unit.
    pub unit: Unit,
    /// What came out.
    pub value: Value,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, value: Value) -> Self {
        Self { name: name.into(), unit, value }
    }

    pub(crate) fn number(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self::new(name, unit, number(value))
    }

    /// The name with its unit at the end, as fields of JSON have it.
    pub fn key(&self) -> String {
        format!("{}_{}", self.name, self.unit.suffix())
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self.value {
            Value::Number(number) => Some(number),
            Value::TooFast | Value::Absent => None,
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
            Value::Number(number) => json!(number),
            Value::TooFast => json!("too fast to measure"),
            Value::Absent => Json::Null,
        }
    }
}

/// A number that can be a figure.
pub(crate) fn number(number: f64) -> Value {
    if number.is_finite() && number >= 0.0 { Value::Number(number) } else { Value::Absent }
}

/// A number as text, or nothing.
pub(crate) fn parsed(text: &str) -> Value {
    text.trim().parse().map_or(Value::Absent, number)
}

/// One run of a tool, or one row of its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Whose it is.
    pub tool: &'static str,
    /// The version, where it is told.
    pub version: Option<String>,
    /// What it calls itself: the host, the operation, the size of file and record.
    pub label: String,
    /// All that it says in numbers.
    pub figures: Vec<Figure>,
}

impl Report {
    /// The figure with this name, without its unit.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// All of it as JSON.
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

impl Serialize for Report {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// Why a text is no report.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResultError {
    /// Nothing that looks like a report of this tool.
    #[error("there is no result of {tool} in it")]
    Nothing {
        /// The tool.
        tool: &'static str,
    },
    /// A line of a report that is not as the tool writes it.
    #[error("line {line} is not as {tool} writes it: {problem}")]
    Line {
        /// The tool.
        tool: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// Not the form that it should be.
    #[error("this is no report of {tool}: {problem}")]
    Syntax {
        /// The tool.
        tool: &'static str,
        /// What the parser says.
        problem: String,
    },
}

pub(crate) fn some(tool: &'static str, reports: Vec<Report>) -> Result<Vec<Report>, ResultError> {
    if reports.iter().all(|report| report.figures.is_empty()) {
        return Err(ResultError::Nothing { tool });
    }
    Ok(reports)
}
