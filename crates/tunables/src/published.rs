//! What is set, for everybody to read.
//!
//! Journals are for their owner's eyes alone, as whoever can write one could have root write
//! values. So that ordinary users can tell where a value came from, a summary of all open journals
//! stands beside them, written anew whenever one of them changes in what it says of the machine.
//! It serves no other purpose: nothing is ever undone by it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use host::BdiId;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sys::lock::Lock;
use sys::replace::{Durability, FileMode, replace};

use crate::journal_entry::JournalOwner;
use crate::{JournalPurpose, Replay, Value};

const VERSION: u32 = 1;
/// More than a thousand settings; what is larger was not written by foreread.
const MAX_SUMMARY_BYTES: u64 = 1 << 20;

/// The summary of all open journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    version: u32,
    journals: Vec<PublishedJournal>,
}

/// What everybody may know of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedJournal {
    /// The journal, which its owner alone may read.
    pub journal: PathBuf,
    pub bdi: BdiId,
    pub purpose: JournalPurpose,
    owner: JournalOwner,
    /// What was set; nothing of a study, whose values change all the time.
    pub settings: Vec<PublishedSetting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSetting {
    pub tunable: String,
    pub file: PathBuf,
    pub original: Value,
    /// The value that it was given.
    pub value: Value,
}

impl PublishedJournal {
    /// The process that is measuring there now, if one is.
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

/// The summary's file in a state directory.
fn file(state: &Path) -> PathBuf {
    state.join("settings.json")
}

/// Makes the directory of journals: for their owner alone, in one that others may pass through.
pub(crate) fn make_directories(journals: &Path) -> io::Result<()> {
    if let Some(state) = journals.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(state)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(journals)
}

/// Writes the summary of the journals in a directory beside it. That this fails is no reason to
/// stop what it tells of: then others know less.
pub(crate) fn publish(journals: &Path) {
    let Some(state) = journals.parent() else { return };
    let _ = try_publish(journals, state);
}

fn try_publish(journals: &Path, state: &Path) -> io::Result<()> {
    // Two that write at once must not leave the older view.
    let _turn = Lock::take(&state.join("settings.lock"))?;
    let mut paths: Vec<PathBuf> = fs::read_dir(journals)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    paths.sort();
    let told = |path: &PathBuf| PublishedJournal::of(path, &Replay::load(path).ok()?);
    let summary = Summary { version: VERSION, journals: paths.iter().filter_map(told).collect() };
    let path = file(state);
    if summary.journals.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let text = serde_json::to_vec_pretty(&summary)?;
    // All users may read it, whatever the umask; it is written anew after a power loss.
    replace(&path, &text, FileMode::Exact(0o644), Durability::UntilReboot)
}

/// Reads the summary in a state directory; nothing, where there is none that can be believed: only
/// root's or one's own.
pub fn published(state: &Path) -> Vec<PublishedJournal> {
    read(&file(state)).unwrap_or_default()
}

fn read(path: &Path) -> Option<Vec<PublishedJournal>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.ok()?;
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
