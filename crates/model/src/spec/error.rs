//! Errors in specifications.

use thiserror::Error;
use units::Bytes;
use units::text::SettingError;

/// Why a specification is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpecError {
    /// The text is not TOML.
    #[error("not TOML: {message}")]
    Syntax {
        /// The message of the TOML parser, with line and column.
        message: String,
    },
    #[error("{}", no_model(name, *nearest))]
    UnknownPreset {
        name: String,
        /// The preset with the most similar name.
        nearest: Option<&'static str>,
    },
    /// An unknown key, an invalid value, or a text that is not a list of settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A key that exists in several tables.
    #[error("{key:?} is ambiguous: write {}", candidates.join(" or "))]
    AmbiguousKey { key: String, candidates: Vec<String> },
    /// A table that lacks a key or has a value of the wrong type.
    #[error("{}{problem}", in_brackets(table))]
    Table {
        /// The path of the table; empty for the top level.
        table: String,
        problem: String,
    },
    /// A value that no device can have.
    #[error("{key} = {value} is invalid: must be {allowed}")]
    Impossible {
        /// The full path of the key.
        key: String,
        value: String,
        allowed: String,
    },
    /// No model fits the measurements.
    #[error("no model can be fitted: {problem}")]
    NoFit {
        /// What does not fit, or which measurement is missing.
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

    /// Returns the same error for a key in `table`.
    pub(crate) fn within(self, table: &str) -> Self {
        match self {
            Self::Impossible { key, value, allowed } => {
                Self::Impossible { key: format!("{table}.{key}"), value, allowed }
            }
            other => other,
        }
    }
}

/// Returns an error if a number is not between `low` and `high`.
pub(crate) fn check(key: &str, value: f64, low: f64, high: f64) -> Result<(), SpecError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(SpecError::impossible(key, number(value), format!("{low} to {high}")))
}

/// Formats a number in readable form, without hundreds of digits.
fn number(value: f64) -> String {
    if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") }
}

/// Returns an error if a size is not between `low` and `high` bytes.
pub(crate) fn check_size(key: &str, value: Bytes, low: u64, high: u64) -> Result<(), SpecError> {
    if (low..=high).contains(&value.get()) {
        return Ok(());
    }
    let allowed = format!("{} to {}", Bytes::new(low), Bytes::new(high));
    Err(SpecError::impossible(key, value.to_string(), allowed))
}
