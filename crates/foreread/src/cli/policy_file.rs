//! Reads files of compliance policies.

use std::path::Path;

use doctor::check::CompliancePolicy;
use sys::input::InputKind;

use crate::exit::Usage;

/// Reads a policy and returns it with its name; an error in the policy is a usage error.
pub fn read(path: &Path) -> anyhow::Result<(String, CompliancePolicy)> {
    let (_, policy) = read_with_text(path)?;
    Ok((path.display().to_string(), policy))
}

/// Like [`read`], but returns the policy's text instead of its name.
pub fn read_with_text(path: &Path) -> anyhow::Result<(String, CompliancePolicy)> {
    let text = sys::input::read_text(path, InputKind::POLICY)?;
    let policy = CompliancePolicy::parse(&text)
        .map_err(|error| Usage(format!("policy {}, {error}", path.display())))?;
    Ok((text, policy))
}
