//! How often 95 % intervals contain the true value: the tables of docs/measurement.md.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Prints the tables with a test of `study`, which has the synthetic storage; returns whether it
/// succeeded.
pub fn run(root: &Path) -> Result<bool> {
    let status = Command::new(root.join("scripts/cargo"))
        .current_dir(root)
        .args(["test", "--quiet", "-p", "foreread-study", "--lib", "coverage::tables", "--"])
        .args(["--exact", "--ignored", "--nocapture"])
        .status()
        .context("cannot start scripts/cargo")?;
    Ok(status.success())
}
