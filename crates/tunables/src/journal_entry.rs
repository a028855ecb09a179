//! The lines of a journal.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::{Identity, TunableScope, Value};

/// The version that foreread writes; it reads versions from [`OLDEST_VERSION`].
pub(crate) const VERSION: u32 = 2;
/// The oldest version that foreread reads: without purpose, and with read-ahead only.
pub(crate) const OLDEST_VERSION: u32 = 1;

/// Maximum size: more than a run of a million changes writes.
const MAX_JOURNAL_BYTES: u64 = 512 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum JournalEntry {
    Begin(JournalHeader),
    Change(JournaledChange),
    /// The side effects of a change were handled.
    #[serde(rename = "calm")]
    Confirmed {
        number: u64,
    },
    /// All settings were applied and stay when the process exits.
    Kept {
        unix_ms: u64,
    },
    Undone(UndoneEntry),
}

/// Why a journal's changes are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalPurpose {
    /// To measure; restored when the study ends.
    #[default]
    Study,
    /// To stay until they are rolled back.
    Apply,
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalHeader {
    pub version: u32,
    /// The process that makes the changes.
    pub owner: JournalOwner,
    pub site: TunableScope,
    pub identity: Identity,
    #[serde(default)]
    pub purpose: JournalPurpose,
    /// Creation time in milliseconds since 1970.
    pub unix_ms: u64,
}

/// A process, uniquely identified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalOwner {
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    pub boot_id: String,
}

/// One change; written before the change is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournaledChange {
    /// The number of the change in this journal, from 1.
    pub number: u64,
    pub tunable: String,
    /// The changed file, which must be one that the registry allows for the tunable.
    pub file: PathBuf,
    pub old: Value,
    /// The value that will be written.
    pub new: Value,
    /// True if the change was not requested, but may occur as a side effect.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Time in milliseconds since 1970.
    pub unix_ms: u64,
}

/// The result of undoing the changes of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoneEntry {
    pub tunable: String,
    /// The file; `None` in version 1, where a tunable has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    pub outcome: RestoreOutcome,
    pub unix_ms: u64,
}

/// The result of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// The old value was written and read back.
    Restored,
    /// The file already had the old value.
    AlreadySo,
    /// The device no longer exists, or another device has its number.
    DeviceGone,
    /// Another process has set another value, which is kept.
    LeftAlone { present: Value },
}

/// Returns the paths of the journals in a directory, oldest first.
pub(crate) fn journals_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    let entries = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = entries.filter(is_journal).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a journal if no other user can have written it.
pub fn read_own(path: &Path) -> Result<Vec<u8>, JournalError> {
    let fail = |source| JournalError::Io { doing: "read", path: path.to_owned(), source };
    let refuse = |problem| JournalError::NotOurs { path: path.to_owned(), problem };
    let file = options().read(true).open(path).map_err(fail)?;
    let status = file.metadata().map_err(fail)?;
    if !status.is_file() {
        return Err(refuse("is not a regular file"));
    }
    if status.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("belongs to another user"));
    }
    if status.mode() & 0o022 != 0 {
        return Err(refuse("can be written by other users"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_JOURNAL_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > MAX_JOURNAL_BYTES {
        return Err(refuse("is larger than any journal of foreread"));
    }
    Ok(bytes)
}

/// Returns options that neither follow a symbolic link nor wait for a pipe.
pub(crate) fn options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits() as i32);
    options
}

pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
