//! Runs programs, in particular cargo.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::MetadataCommand;

/// The exit code and output of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit code, or 128 + signal.
    pub code: i64,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Returns the last line on stderr that is not blank.
    pub fn last_line(&self) -> &str {
        let line = self.stderr.lines().rfind(|line| !line.trim().is_empty());
        line.unwrap_or("nothing on stderr")
    }
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Returns the stdout of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {}", output.status, said.trim());
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// Returns a command's output, even if it fails.
pub fn captured(command: &mut Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    let code = output.status.code().or_else(|| output.status.signal().map(|signal| 128 + signal));
    Ok(Output {
        code: code.unwrap_or(-1).into(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Returns the cargo that runs this program.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns cargo's target directory.
pub fn target_directory(root: &Path) -> Result<PathBuf> {
    let mut metadata = MetadataCommand::new();
    let metadata = metadata.manifest_path(root.join("Cargo.toml")).no_deps().exec();
    Ok(metadata.context("reading cargo metadata")?.target_directory.into_std_path_buf())
}
