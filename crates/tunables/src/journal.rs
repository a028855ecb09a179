//! The journal: what was changed, on stable storage before it was changed.
//!
//! One file of JSON lines for each run under `<state>/journal`. The first line names the owner and
//! the device; then comes a line before each change, a line for each tunable that was put back, and
//! the file is removed when all have been. A last line without its end was never followed by a
//! change, as each is synced first; it counts as not written. Anything else that foreread would not
//! have written makes the whole file refused: it says where root is to write what.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use host::Dirs;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::published::{make_directories, publish};
use crate::replay::Replay;
use crate::{Identity, Outcome, Site, Value};

/// The form of journal that this foreread writes; it reads [`OLDEST`] too.
pub(crate) const VERSION: u32 = 2;
/// The oldest form that it reads: without purpose, and with read-ahead alone.
pub(crate) const OLDEST: u32 = 1;

/// More than a run of a million changes; what is larger was not written by foreread.
const LARGEST: u64 = 512 << 20;

/// Why a journal cannot be read, written or believed.
#[derive(Debug, Error)]
pub enum JournalError {
    /// A line that foreread would not have written: nothing is undone by such a journal.
    #[error(
        "journal {path}, line {line}: {problem}; nothing is undone by it (remove it once the \
         settings are as they should be)",
        path = path.display()
    )]
    Refused {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file is not one of foreread's own.
    #[error("journal {path} {problem}; nothing is undone by it", path = path.display())]
    NotOurs {
        /// The journal.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
    /// The apply that wrote it died before it was done, or the end of the file is lost.
    #[error(
        "journal {path} has no end: the apply that wrote it died, or the file was cut; \
         `foreread rollback` undoes what it says", path = path.display()
    )]
    Unfinished {
        /// The journal.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("cannot {doing} journal {path}", path = path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The journal.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    Begin(Header),
    Change(Change),
    /// What the change of this number upset has been seen to.
    Calm(Calm),
    /// All that was to be applied is in place, and stays when the process ends.
    Kept(Kept),
    Undone(Settled),
}

/// See [`Entry::Calm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calm {
    pub number: u64,
}

/// See [`Entry::Kept`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub unix_ms: u64,
}

/// What the changes of a journal are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To be measured, and put back when that ends.
    #[default]
    Study,
    /// To stay until they are rolled back.
    Apply,
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The form of the journal.
    pub version: u32,
    /// The process that makes the changes.
    pub owner: Owner,
    /// Where.
    pub site: Site,
    /// Which device that was.
    pub identity: Identity,
    /// What for.
    #[serde(default)]
    pub purpose: Purpose,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// A process, so named that no other will ever be meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
    /// The boot.
    pub boot_id: String,
}

/// One change, written before it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Counts the changes of this journal from 1.
    pub number: u64,
    /// The tunable's name.
    pub tunable: String,
    /// Its file; one of those that the registry knows it may have there.
    pub file: PathBuf,
    /// The value found.
    pub old: Value,
    /// The value about to be written.
    pub new: Value,
    /// Whether nobody asked for it: another change upsets the tunable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// A tunable that was seen to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settled {
    pub tunable: String,
    /// `None` in the first form: the only file that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    pub outcome: Outcome,
    pub unix_ms: u64,
}

/// A journal open for writing.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The length of its first line, if it was written here.
    beginning: Option<u64>,
}

impl Journal {
    /// Starts a journal, and has file and directory on stable storage.
    pub(crate) fn create(dirs: &Dirs, header: Header) -> Result<Self, JournalError> {
        let dir = directory(dirs);
        let fail = |doing| {
            let path = dir.clone();
            move |source| JournalError::Io { doing, path, source }
        };
        make_directories(&dir).map_err(fail("make the directory of"))?;
        let name = format!("{}-{}-{}.jsonl", header.unix_ms, header.owner.pid, header.site.bdi);
        let path = std::path::absolute(dir.join(name)).map_err(fail("find a place for"))?;
        let file =
            options().append(true).create_new(true).mode(0o600).open(&path).map_err(|source| {
                JournalError::Io { doing: "create", path: path.clone(), source }
            })?;
        let mut journal = Self { path, file, beginning: None };
        journal.append(&Entry::Begin(header))?;
        journal.sync_directory()?;
        let length = journal.file.metadata().map_err(|source| journal.error("look at", source))?;
        journal.beginning = Some(length.len());
        journal.publish();
        Ok(journal)
    }

    /// Opens a journal to go on after its last whole line.
    pub(crate) fn reopen(replay: &Replay) -> Result<Self, JournalError> {
        let path = replay.path.clone();
        let open = options().append(true).open(&path).and_then(|file| {
            file.set_len(replay.sound_bytes)?;
            Ok(file)
        });
        match open {
            Ok(file) => Ok(Self { path, file, beginning: None }),
            Err(source) => Err(JournalError::Io { doing: "open", path, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line and returns when it is on stable storage.
    pub(crate) fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        line.and_then(|line| {
            self.file.write_all(format!("{line}\n").as_bytes())?;
            self.file.sync_data()
        })
        .map_err(|source| self.error("write", source))
    }

    /// Forgets all but the first line: nothing of it is left to undo. This need not be on stable
    /// storage, as a journal is read to the same end with and without what has been undone.
    pub(crate) fn begin_anew(&mut self) -> Result<(), JournalError> {
        let Some(beginning) = self.beginning else { return Ok(()) };
        self.file.set_len(beginning).map_err(|source| self.error("cut", source))
    }

    /// Removes the journal: nothing of it is left to undo.
    pub(crate) fn remove(self) -> Result<(), JournalError> {
        match fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(self.error("remove", source))
            }
            _ => {
                self.publish();
                self.sync_directory()
            }
        }
    }

    /// Lets everybody know what the journals say now.
    pub(crate) fn publish(&self) {
        if let Some(dir) = self.path.parent() {
            publish(dir);
        }
    }

    fn sync_directory(&self) -> Result<(), JournalError> {
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|source| self.error("sync the directory of", source))
    }

    fn error(&self, doing: &'static str, source: io::Error) -> JournalError {
        JournalError::Io { doing, path: self.path.clone(), source }
    }
}

/// Where journals are.
pub(crate) fn directory(dirs: &Dirs) -> PathBuf {
    dirs.state.join("journal")
}

/// The journals that are there, oldest first.
pub(crate) fn list(dirs: &Dirs) -> Result<Vec<PathBuf>, JournalError> {
    let dir = directory(dirs);
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(JournalError::Io { doing: "list", path: dir, source }),
    };
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_journal).collect();
    paths.sort();
    Ok(paths)
}

/// Reads a journal; `None` if it has been removed meanwhile.
pub(crate) fn load(path: &Path) -> Result<Option<Replay>, JournalError> {
    match Replay::load(path) {
        Ok(replay) => Ok(Some(replay)),
        Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Reads a journal's bytes, if it is a file that only this user can have written.
pub fn read_own(path: &Path) -> Result<Vec<u8>, JournalError> {
    let fail = |source| JournalError::Io { doing: "read", path: path.to_owned(), source };
    let refuse = |problem| JournalError::NotOurs { path: path.to_owned(), problem };
    let file = options().read(true).open(path).map_err(fail)?;
    let status = file.metadata().map_err(fail)?;
    if !status.is_file() {
        return Err(refuse("is no regular file"));
    }
    if status.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse("belongs to another user"));
    }
    if status.mode() & 0o022 != 0 {
        return Err(refuse("can be written by other users"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > LARGEST {
        return Err(refuse("is larger than any that foreread writes"));
    }
    Ok(bytes)
}

/// Options that follow no link and wait for no pipe.
fn options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits() as i32);
    options
}

/// Milliseconds since 1970, for people who read a journal.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
