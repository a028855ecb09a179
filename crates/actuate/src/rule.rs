//! Rules that name processes or mounts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// Whom a rule is about: `pid:4711`, `user:26`, `cgroup:/system.slice/postgresql.service`,
/// `exe:/usr/bin/postgres`, `mount:/srv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRule {
    Pid(u32),
    /// A user, by number: the real one of a process, not one that a set-user-id program lends.
    User(u32),
    /// A cgroup and all below it, by its path in the unified hierarchy.
    Cgroup(String),
    /// The program that a process runs.
    Executable(PathBuf),
    /// All files of the file system that is mounted there.
    Mount(PathBuf),
}

impl fmt::Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "pid:{pid}"),
            Self::User(uid) => write!(f, "user:{uid}"),
            Self::Cgroup(path) if path.is_empty() => f.write_str("cgroup:/"),
            Self::Cgroup(path) => write!(f, "cgroup:{path}"),
            Self::Executable(path) => write!(f, "exe:{}", path.display()),
            Self::Mount(path) => write!(f, "mount:{}", path.display()),
        }
    }
}

impl Serialize for AccessRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{text:?} is no rule: {problem}; write pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH"
)]
pub struct ParseRuleError {
    text: String,
    problem: &'static str,
}

impl FromStr for AccessRule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        let fail = |problem| ParseRuleError { text: text.to_owned(), problem };
        let (kind, of) = text.split_once(':').ok_or_else(|| fail("there is no colon"))?;
        let path = || {
            let plain = of.starts_with('/') && !of.split('/').any(|part| part == "..");
            plain.then(|| PathBuf::from(of)).ok_or_else(|| fail("the path must be absolute"))
        };
        match kind {
            "pid" => of.parse().map(Self::Pid).map_err(|_| fail("that is no process's number")),
            "user" => user(of).map(Self::User).ok_or_else(|| fail("there is no such user")),
            "cgroup" => path().map(|_| Self::Cgroup(of.trim_end_matches('/').to_owned())),
            "exe" => path().map(Self::Executable),
            "mount" => path().map(Self::Mount),
            _ => Err(fail("that is no kind of rule")),
        }
    }
}

/// The number of a user, given as such or by a name of `/etc/passwd`.
fn user(name: &str) -> Option<u32> {
    if let Ok(uid) = name.parse() {
        return Some(uid);
    }
    let table = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}
