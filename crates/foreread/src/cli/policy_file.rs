//! The file of a compliance policy.

use std::path::Path;

use doctor::check::CompliancePolicy;
use sys::input::InputKind;

use crate::exit::Usage;

/// Reads a policy; an error in it is a usage error. Returns its name, too.
pub fn read(path: &Path) -> anyhow::Result<(String, CompliancePolicy)> {
    let (_, policy) = read_with_text(path)?;
    Ok((path.display().to_string(), policy))
}

/// The same with the policy's text.
pub fn read_with_text(path: &Path) -> anyhow::Result<(String, CompliancePolicy)> {
    let text = sys::input::read_text(path, InputKind::POLICY)?;
    let policy = CompliancePolicy::parse(&text)
        .map_err(|error| Usage(format!("policy {}, {error}", path.display())))?;
    Ok((text, policy))
}
