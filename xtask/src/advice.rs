//! Recommendations for all presets, next to an expert's choice: a table of the book.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Prints the table with a test of `study`; returns whether an expert would agree with every line.
pub fn run(root: &Path) -> Result<bool> {
    let status = Command::new(root.join("scripts/cargo"))
        .current_dir(root)
        .args(["test", "--quiet", "-p", "foreread-study", "--test", "advice", "table", "--"])
        .args(["--exact", "--ignored", "--nocapture"])
        .status()
        .context("cannot start scripts/cargo")?;
    Ok(status.success())
}
