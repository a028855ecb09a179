//! What is recommended for every preset, beside an expert's choice: the table of the book.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Prints the table, by a test of `study`; whether an expert would sign every line.
pub fn run(root: &Path) -> Result<bool> {
    let status = Command::new(root.join("scripts/cargo"))
        .current_dir(root)
        .args(["test", "--quiet", "-p", "foreread-study", "--test", "advice", "table", "--"])
        .args(["--exact", "--ignored", "--nocapture"])
        .status()
        .context("cannot start scripts/cargo")?;
    Ok(status.success())
}
