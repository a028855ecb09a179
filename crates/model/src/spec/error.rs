//! Why a text describes no device.

use std::fmt;

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
    #[error("there is no model {name:?}{}", DidYouMean(nearest))]
    UnknownPreset {
        /// The name as given.
        name: String,
        /// A name that looks like it.
        nearest: Option<String>,
    },
    /// No such key where it stands.
    #[error("there is no key {key:?}{}", DidYouMean(nearest))]
    UnknownKey {
        /// The key as given, with the tables around it.
        key: String,
        /// A key that looks like it.
        nearest: Option<String>,
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
    #[error("[{table}] {problem}")]
    Table {
        /// The table.
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
}

/// `; did you mean "chunk"?`, or nothing.
struct DidYouMean<'a>(&'a Option<String>);

impl fmt::Display for DidYouMean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "; did you mean {name:?}?"),
            None => Ok(()),
        }
    }
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
            DriveError::OutOfRange { field, value, low, high } => {
                Self::impossible(field, value.to_string(), format!("{low} to {high}"))
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
    Err(SpecError::impossible(key, value.to_string(), format!("{low} to {high}")))
}

/// Passes a size between `low` and `high` bytes.
pub(crate) fn check_size(key: &str, value: Bytes, low: u64, high: u64) -> Result<(), SpecError> {
    if (low..=high).contains(&value.get()) {
        return Ok(());
    }
    let allowed = format!("{} to {}", Bytes::new(low), Bytes::new(high));
    Err(SpecError::impossible(key, value.to_string(), allowed))
}
