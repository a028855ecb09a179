//! The file of a compliance policy.

use std::path::Path;

use doctor::check::CompliancePolicy;
use sys::input::InputKind;

use crate::exit::Usage;

/// Reads a policy; an error in it is a usage error.
pub fn read(path: &Path) -> anyhow::Result<(String, CompliancePolicy)> {
    let name = path.display().to_string();
    let text = sys::input::read_text(path, InputKind::POLICY)?;
    let policy =
        CompliancePolicy::parse(&text).map_err(|error| Usage(format!("policy {name}, {error}")))?;
    Ok((name, policy))
}
