//! A summary of the settings that all users may read.
//!
//! Only their owner may read and write journals, because root writes values from them. A summary of
//! all open journals lets other users find the origin of a value. foreread rewrites it when a
//! journal changes, and never uses it for undoing.

use std::fs::{self, DirBuilder};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::BdiId;
use serde::{Deserialize, Serialize};
use sys::lock::Lock;
use sys::replace::{Durability, FileMode, replace};

use crate::journal_entry::{JournalOwner, journals_in, options};
use crate::{JournalPurpose, Replay, Value};

const VERSION: u32 = 1;
/// Maximum size: more than a thousand settings need.
const MAX_SUMMARY_BYTES: u64 = 1 << 20;

/// The summary of all open journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    version: u32,
    journals: Vec<PublishedJournal>,
}

/// The public part of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedJournal {
    /// The path of the journal, which only its owner may read.
    pub journal: PathBuf,
    pub bdi: BdiId,
    pub purpose: JournalPurpose,
    owner: JournalOwner,
    /// The applied settings; empty for a study, whose values change constantly.
    pub settings: Vec<PublishedSetting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSetting {
    pub tunable: String,
    pub file: PathBuf,
    pub original: Value,
    /// The value that was set.
    pub value: Value,
}

impl PublishedJournal {
    /// Returns the process that is measuring on the bdi, if any.
    pub fn measured_by(&self) -> Option<u32> {
        let lives = self.purpose == JournalPurpose::Study && self.owner.is_alive().unwrap_or(false);
        lives.then_some(self.owner.pid)
    }

    fn of(path: &Path, replay: &Replay) -> Option<Self> {
        let header = replay.header.as_ref()?;
        let study = header.purpose == JournalPurpose::Study;
        let settings = replay.open.iter().filter(|open| open.asked && !study);
        let setting = |open: &crate::OpenChange| PublishedSetting {
            tunable: open.tunable.name().to_owned(),
            file: open.file.clone(),
            original: open.original.clone(),
            value: open.last().clone(),
        };
        Some(Self {
            journal: path.to_owned(),
            bdi: header.site.bdi.clone(),
            purpose: header.purpose,
            owner: header.owner.clone(),
            settings: settings.map(setting).collect(),
        })
    }
}

/// Returns the summary's path in a state directory.
fn file(state: &Path) -> PathBuf {
    state.join("settings.json")
}

/// Creates the directory of journals, which only its owner may read, in a directory that other
/// users may enter.
pub(crate) fn make_directories(journals: &Path) -> io::Result<()> {
    if let Some(state) = journals.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(state)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(journals)
}

/// Writes the summary of the journals to the directory above them. A failure does not stop the
/// operation; other users only see less.
pub(crate) fn publish(journals: &Path) {
    let Some(state) = journals.parent() else { return };
    let _ = try_publish(journals, state);
}

fn try_publish(journals: &Path, state: &Path) -> io::Result<()> {
    // If two processes publish concurrently, the newer state must remain.
    let _turn = Lock::acquire(&state.join("settings.lock"))?;
    let paths = journals_in(journals)?;
    let read = |path: &PathBuf| PublishedJournal::of(path, &Replay::load(path).ok()?);
    let summary = Summary { version: VERSION, journals: paths.iter().filter_map(read).collect() };
    let path = file(state);
    if summary.journals.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_vec_pretty(&summary)?;
    // All users may read it, whatever the umask. After a power loss, it is rewritten.
    replace(&path, &text, FileMode::Exact(0o644), Durability::UntilReboot)
}

/// Reads the summary in a state directory. Ignores it unless it belongs to root or this user and no
/// other user can write it.
pub fn published(state: &Path) -> Vec<PublishedJournal> {
    read(&file(state)).unwrap_or_default()
}

fn read(path: &Path) -> Option<Vec<PublishedJournal>> {
    let file = options().read(true).open(path).ok()?;
    let status = file.metadata().ok()?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&status.uid());
    if !status.is_file() || !own || status.mode() & 0o022 != 0 || status.len() > MAX_SUMMARY_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_SUMMARY_BYTES).read_to_end(&mut bytes).ok()?;
    let summary: Summary = serde_json::from_slice(&bytes).ok()?;
    (summary.version == VERSION).then_some(summary.journals)
}
