//! What a statement rests on.

use host::owners::FileLocation;
use serde::Serialize;

/// A fact, and where anybody can see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub fact: String,
    /// The file, and the line if there is one.
    pub place: Option<FileLocation>,
}

impl Evidence {
    /// A fact that a file shows.
    pub fn at(fact: impl Into<String>, place: FileLocation) -> Self {
        Self { fact: fact.into(), place: Some(place) }
    }

    /// A fact that a file as a whole shows.
    pub fn in_file(fact: impl Into<String>, file: impl Into<std::path::PathBuf>) -> Self {
        Self::at(fact, FileLocation::new(file, 0))
    }

    /// A fact that no single file shows.
    pub fn of(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), place: None }
    }
}
