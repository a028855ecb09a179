//! Why a text describes no device.

use thiserror::Error;
use units::Bytes;

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
    /// No preset is called so.
    #[error("there is no model {name:?}: {}", model_meant(*nearest))]
    UnknownPreset {
        /// The name as given.
        name: String,
        /// A name that looks like it.
        nearest: Option<&'static str>,
    },
    /// No model is named at all.
    #[error(
        "no model is named: give one that `foreread models` lists, or the path of a file that ends \
         in .toml"
    )]
    NoModel,
    /// No such key where it stands.
    #[error("there is no key {key:?}: {hint}")]
    UnknownKey {
        /// The key as given, with the tables around it.
        key: String,
        /// A key that looks like it, or all.
        hint: String,
    },
    /// The key stands in several tables.
    #[error("{key:?} could be {}: write one of these", candidates.join(" or "))]
    AmbiguousKey {
        /// The key as given.
        key: String,
        /// What would be unambiguous.
        candidates: Vec<String>,
    },
    /// The value is of the wrong form.
    #[error("{key} = {value:?} will not do: {problem}")]
    Value {
        /// The key, with the tables around it.
        key: String,
        /// The value as given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A table lacks a key or holds a value of the wrong form.
    #[error("{}{problem}", in_brackets(table))]
    Table {
        /// The table; none for what stands before all tables.
        table: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No device can have this value.
    #[error("{key} = {value} is impossible: allowed is {allowed}")]
    Impossible {
        /// The key, with the tables around it.
        key: String,
        /// The value.
        value: String,
        /// What would do.
        allowed: String,
    },
    /// A word of a list is no setting.
    #[error("{word:?} is no setting: write key=value")]
    NoSetting {
        /// The word.
        word: String,
    },
    /// Two commas in a row, or one at the end.
    #[error("no setting stands after \"{before},\": write key=value there, or leave out a comma")]
    EmptySetting {
        /// What stands before the comma.
        before: String,
    },
    /// A key stands there twice.
    #[error("{key} is given twice: leave one out")]
    Twice {
        /// The key.
        key: String,
    },
    /// No model gives the times that were measured.
    #[error("no model can be fitted: {problem}")]
    NoFit {
        /// What does not fit, or is missing.
        problem: String,
    },
}

/// What to do about a model that does not exist.
fn model_meant(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean {name:?}?"),
        None => "`foreread models` lists them, and a file's name ends in .toml".to_owned(),
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
