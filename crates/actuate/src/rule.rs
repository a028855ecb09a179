//! Rules that select processes or mounts.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// Selects processes, or the files of a mount: `pid:4711`, `user:26`,
/// `cgroup:/system.slice/postgresql.service`, `exe:/usr/bin/postgres`, `mount:/srv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRule {
    Pid(u32),
    /// A user by number: the real user id of a process, not the effective one.
    User(u32),
    /// A cgroup with all its descendants, by its path in the unified hierarchy.
    Cgroup(String),
    /// The program that a process runs.
    Executable(PathBuf),
    /// All files of the file system that is mounted at this path.
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

impl<'de> Deserialize<'de> for AccessRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A string that cannot be parsed as a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid rule {text:?}: {problem}; use pid:N, user:NAME, cgroup:/PATH, exe:/PATH or mount:/PATH"
)]
pub struct ParseRuleError {
    text: String,
    problem: &'static str,
}

impl FromStr for AccessRule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        let fail = |problem| ParseRuleError { text: text.to_owned(), problem };
        let (kind, value) = text.split_once(':').ok_or_else(|| fail("no colon"))?;
        let path = || {
            let plain = value.starts_with('/') && !value.split('/').any(|part| part == "..");
            plain.then(|| PathBuf::from(value)).ok_or_else(|| fail("the path must be absolute"))
        };
        match kind {
            "pid" => value.parse().map(Self::Pid).map_err(|_| fail("not a process id")),
            "user" => user_id(value).map(Self::User).ok_or_else(|| fail("unknown user")),
            "cgroup" => path().map(|_| Self::Cgroup(value.trim_end_matches('/').to_owned())),
            "exe" => path().map(Self::Executable),
            "mount" => path().map(Self::Mount),
            _ => Err(fail("unknown kind of rule")),
        }
    }
}

/// Returns the id of a user, given as a number or as a name of `/etc/passwd`.
fn user_id(name: &str) -> Option<u32> {
    if let Ok(uid) = name.parse() {
        return Some(uid);
    }
    let table = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split(':').nth(2)?.parse().ok()
}
