//! What a trial is run under.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::Kib;

/// The values of the tunables that a study varies; so far that is read-ahead alone. A further
/// tunable becomes a further field, which older runs do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Settings {
    /// `read_ahead_kb` of the storage's bdi.
    #[serde(rename = "read_ahead_kib")]
    pub read_ahead: Kib,
}

impl Settings {
    /// Read-ahead of this much.
    pub const fn read_ahead(read_ahead: Kib) -> Self {
        Self { read_ahead }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read_ahead={}K", self.read_ahead.get())
    }
}
