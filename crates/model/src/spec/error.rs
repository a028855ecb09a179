//! Why a text describes no device.

use thiserror::Error;
use units::Bytes;
use units::text::SettingError;

use crate::drive::DriveError;

/// Why a text describes no device.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpecError {
    /// It is not TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// What the reader of TOML says, with line and column.
        message: String,
    },
    #[error("{}", no_model(name, *nearest))]
    UnknownPreset {
        name: String,
        /// A name that looks like it.
        nearest: Option<&'static str>,
    },
    /// A key that does not exist, an invalid value, or a text that is no list of settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The key stands in several tables.
    #[error("{key:?} could be {}: write one of these", candidates.join(" or "))]
    AmbiguousKey { key: String, candidates: Vec<String> },
    /// A table lacks a key or holds a value of the wrong form.
    #[error("{}{problem}", in_brackets(table))]
    Table {
        /// The table; none for what stands before all tables.
        table: String,
        problem: String,
    },
    /// No device can have this value.
    #[error("{key} = {value} is impossible: allowed is {allowed}")]
    Impossible {
        /// The key, with the tables around it.
        key: String,
        value: String,
        allowed: String,
    },
    /// No model gives the times that were measured.
    #[error("no model can be fitted: {problem}")]
    NoFit {
        /// What does not fit, or is missing.
        problem: String,
    },
}

impl units::Classified for SpecError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

fn no_model(name: &str, nearest: Option<&str>) -> String {
    let problem = match name {
        "" => "no model is named".to_owned(),
        _ => format!("there is no model {name:?}"),
    };
    match nearest {
        Some(name) => format!("{problem}: did you mean {name:?}?"),
        None => format!("{problem}: `foreread models` lists them, and a file's name ends in .toml"),
    }
}

fn in_brackets(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!("[{table}] ") }
}

impl SpecError {
    pub(crate) fn impossible(key: &str, value: String, allowed: impl Into<String>) -> Self {
        Self::Impossible { key: key.to_owned(), value, allowed: allowed.into() }
    }

    /// The same error, said of a key in this table.
    pub(crate) fn within(self, table: &str) -> Self {
        match self {
            Self::Impossible { key, value, allowed } => {
                Self::Impossible { key: format!("{table}.{key}"), value, allowed }
            }
            other => other,
        }
    }
}

impl From<DriveError> for SpecError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::OutOfRange { field: field @ "capacity", value, low, high } => {
                let [value, low, high] = [value, low, high].map(|bytes| Bytes::new(bytes as u64));
                Self::impossible(field, value.to_string(), format!("{low} to {high}"))
            }
            DriveError::OutOfRange { field, value, low, high } => {
                Self::impossible(field, number(value), format!("{low} to {high}"))
            }
            DriveError::Shorter { field, value, shorter, least } => {
                let allowed = format!("{least} or more, which {shorter} takes");
                Self::impossible(field, value.to_string(), allowed)
            }
        }
    }
}

/// Passes a number between `low` and `high`.
pub(crate) fn check(key: &str, value: f64, low: f64, high: f64) -> Result<(), SpecError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(SpecError::impossible(key, number(value), format!("{low} to {high}")))
}

/// A number as people write it: not with three hundred digits.
fn number(value: f64) -> String {
    if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") }
}

/// Passes a size between `low` and `high` bytes.
pub(crate) fn check_size(key: &str, value: Bytes, low: u64, high: u64) -> Result<(), SpecError> {
    if (low..=high).contains(&value.get()) {
        return Ok(());
    }
    let allowed = format!("{} to {}", Bytes::new(low), Bytes::new(high));
    Err(SpecError::impossible(key, value.to_string(), allowed))
}
