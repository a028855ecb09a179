//! What is set, for everybody to read.
//!
//! Journals are for their owner's eyes alone, as whoever can write one could have root write
//! values. So that ordinary users can tell where a value came from, a summary of all open journals
//! stands beside them, written anew whenever one of them changes in what it says of the machine.
//! It serves no other purpose: nothing is ever undone by it.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use host::BdiId;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sys::lock::Lock;

use crate::journal::Owner;
use crate::{Purpose, Replay, Value};

/// The form of the summary.
const VERSION: u32 = 1;
/// More than a thousand settings; what is larger was not written by foreread.
const LARGEST: u64 = 1 << 20;

/// The summary of all open journals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summary {
    version: u32,
    journals: Vec<Published>,
}

/// What everybody may know of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The journal, which its owner alone may read.
    pub journal: PathBuf,
    /// The bdi.
    pub bdi: BdiId,
    /// What the changes are for.
    pub purpose: Purpose,
    owner: Owner,
    /// What was set; nothing of a study, whose values change all the time.
    pub settings: Vec<PublishedSetting>,
}

/// A value that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSetting {
    /// The tunable's name.
    pub tunable: String,
    /// Its file.
    pub file: PathBuf,
    /// The value before.
    pub original: Value,
    /// The value that it was given.
    pub value: Value,
}

impl Published {
    /// The process that is measuring there now, if one is.
    pub fn measured_by(&self) -> Option<u32> {
        let lives = self.purpose == Purpose::Study && self.owner.is_alive().unwrap_or(false);
        lives.then_some(self.owner.pid)
    }

    fn of(path: &Path, replay: &Replay) -> Option<Self> {
        let header = replay.header.as_ref()?;
        let study = header.purpose == Purpose::Study;
        let settings = replay.open.iter().filter(|open| open.asked && !study);
        let setting = |open: &crate::Open| PublishedSetting {
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
    let told = |path: &PathBuf| Published::of(path, &Replay::load(path).ok()?);
    let summary = Summary { version: VERSION, journals: paths.iter().filter_map(told).collect() };
    let path = file(state);
    if summary.journals.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let new = path.with_extension("json-new");
    let mut file = File::options().write(true).create(true).truncate(true).open(&new)?;
    // Whatever the mask of whoever applies: it is for all to read.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(&serde_json::to_vec_pretty(&summary).map_err(io::Error::from)?)?;
    fs::rename(&new, &path)
}

/// Reads the summary in a state directory; nothing, where there is none that can be believed: only
/// root's or one's own.
pub fn published(state: &Path) -> Vec<Published> {
    read(&file(state)).unwrap_or_default()
}

fn read(path: &Path) -> Option<Vec<Published>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = file.ok()?;
    let status = file.metadata().ok()?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&status.uid());
    if !status.is_file() || !own || status.mode() & 0o022 != 0 || status.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    let summary: Summary = serde_json::from_slice(&bytes).ok()?;
    (summary.version == VERSION).then_some(summary.journals)
}
