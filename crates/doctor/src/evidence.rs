//! Evidence for statements.

use host::owners::FileLocation;
use serde::Serialize;

/// A fact, and where it can be verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub fact: String,
    /// The file, and the line if there is one.
    pub place: Option<FileLocation>,
}

impl Evidence {
    /// A fact at a line of a file.
    pub fn in_line(fact: impl Into<String>, place: FileLocation) -> Self {
        Self { fact: fact.into(), place: Some(place) }
    }

    /// A fact shown by a whole file.
    pub fn in_file(fact: impl Into<String>, file: impl Into<std::path::PathBuf>) -> Self {
        Self::in_line(fact, FileLocation::new(file, 0))
    }

    /// A fact without a file.
    pub fn new(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), place: None }
    }
}
