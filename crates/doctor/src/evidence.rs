//! Evidence for origins and findings.

use host::owners::FileLocation;
use serde::Serialize;

/// A fact, and the file that proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub fact: String,
    /// The file, and the line if there is one; `None` if no file shows the fact.
    pub place: Option<FileLocation>,
}

impl Evidence {
    /// Creates evidence from a line of a file.
    pub fn in_line(fact: impl Into<String>, place: FileLocation) -> Self {
        Self { fact: fact.into(), place: Some(place) }
    }

    /// Creates evidence from a whole file.
    pub fn in_file(fact: impl Into<String>, file: impl Into<std::path::PathBuf>) -> Self {
        Self::in_line(fact, FileLocation::new(file, 0))
    }

    /// Creates evidence without a file.
    pub fn new(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), place: None }
    }
}
