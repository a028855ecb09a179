//! Values of tunables.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// The value of a tunable, with its unit in the type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Value {
    /// An amount of data, or a data rate per second.
    Bytes(Bytes),
    /// A count, a percentage, or a switch (0 and 1).
    Number(i64),
    Time(Nanos),
    /// A word, or a list of words separated by single spaces.
    Word(String),
}

impl Value {
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(*bytes),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// Formats the value; an amount has its unit, as in `128 KiB`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::Word(word) => f.pad(word),
        }
    }
}
