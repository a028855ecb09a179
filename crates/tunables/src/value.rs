//! What a tunable can be set to.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Bytes;

/// The value of a tunable, with its unit in the type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Value {
    /// An amount of data.
    Bytes(Bytes),
}

impl Value {
    /// The amount of data, if it is one.
    pub fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(*bytes),
        }
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// Shows an amount with its unit: `128 KiB`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}
