//! Finds external programs and their versions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use units::Nanos;

use super::process::{self, RunOptions};
use crate::{BenchError, Cancel};

/// An external program and the package that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalTool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    pub(crate) version_option: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct FoundTool {
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

/// Programs found so far; their versions do not change during a study.
static FOUND: Mutex<Option<HashMap<&'static str, FoundTool>>> = Mutex::new(None);

impl ExternalTool {
    /// Finds the program and its version, and remembers them.
    pub(crate) fn find(&self) -> Result<FoundTool, BenchError> {
        let mut known = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(found) = known.get(self.program) {
            return Ok(found.clone());
        }
        let missing = || BenchError::ToolMissing { program: self.program, package: self.package };
        let path = sys::program::find_also_in(self.program, &[]).ok_or_else(missing)?;
        let found = FoundTool { version: self.version(&path)?, path };
        known.insert(self.program, found.clone());
        Ok(found)
    }

    fn version(&self, path: &Path) -> Result<String, BenchError> {
        let mut command = Command::new(path);
        command.arg(self.version_option);
        let cancel = Cancel::new();
        let limit = Nanos::from_secs(10);
        let terms = RunOptions { program: self.program, limit, cancel: &cancel, input: None };
        let ended = process::run(command, &terms, &mut || ())?;
        let said = process::last_line(&ended.stdout).or_else(|| process::last_line(&ended.stderr));
        let said = said.map(|said| said.trim_start_matches("Version:").trim().to_owned());
        said.ok_or_else(|| BenchError::Tool {
            program: self.program.to_owned(),
            problem: "does not print its version".to_owned(),
        })
    }
}

/// Returns the first two numbers of a version: (3, 33) for `fio-3.33`.
pub(crate) fn numbers(version: &str) -> Option<(u32, u32)> {
    let start = version.find(|c: char| c.is_ascii_digit())?;
    let mut parts = version[start..].split(|c: char| !c.is_ascii_digit());
    let first = parts.next()?.parse().ok()?;
    Some((first, parts.next().and_then(|part| part.parse().ok()).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(numbers("fio-3.33"), Some((3, 33)));
        assert_eq!(numbers("fio-3.36-12-gabc"), Some((3, 36)));
        assert_eq!(numbers("2.00a"), Some((2, 0)));
        assert_eq!(numbers("none"), None);
    }

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        let tool = ExternalTool {
            program: "no-such-program",
            package: "such-package",
            version_option: "-V",
        };
        let message = tool.find().unwrap_err().to_string();
        assert!(
            message.contains("no-such-program") && message.contains("apt-get install such-package")
        );
    }
}
