//! Tables of the book that a test of the crate `study` prints: it has the presets and the synthetic
//! storage.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Runs this test; returns whether it succeeded.
pub fn run(root: &Path, test: &[&str]) -> Result<bool> {
    let status = Command::new(root.join("scripts/cargo"))
        .current_dir(root)
        .args(["test", "--quiet", "-p", "foreread-study"])
        .args(test)
        .args(["--", "--exact", "--ignored", "--nocapture"])
        .status()
        .context("cannot start scripts/cargo")?;
    Ok(status.success())
}
