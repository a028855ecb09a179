//! `foreread persist`: settings that outlive a boot.

use host::Storage;

use super::Context;

/// A setting that was persisted, compared with what is there.
pub struct Check {
    good: bool,
    line: String,
    json: serde_json::Value,
}

impl Check {
    /// Whether it is as it should be.
    pub fn is_good(&self) -> bool {
        self.good
    }

    /// One line for people.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The same for programs.
    pub fn json(&self) -> serde_json::Value {
        self.json.clone()
    }
}

/// Compares what was persisted with what is there.
pub fn verify(_context: &Context, _storage: Option<&Storage>) -> anyhow::Result<Vec<Check>> {
    Ok(Vec::new())
}
