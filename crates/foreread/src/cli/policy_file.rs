//! Reads files of compliance policies.

use std::path::Path;

use doctor::check::CompliancePolicy;
use sys::input::InputKind;

use crate::exit::Usage;

/// Reads a policy and returns it with its text; an error in the policy is a usage error.
pub fn read(path: &Path) -> anyhow::Result<(CompliancePolicy, String)> {
    let text = sys::input::read_text(path, InputKind::POLICY)?;
    let policy = CompliancePolicy::parse(&text)
        .map_err(|error| Usage(format!("policy {}, {error}", path.display())))?;
    Ok((policy, text))
}
