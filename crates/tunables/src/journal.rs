//! The journal: records changes on stable storage before they are made.
//!
//! Each run has one file of JSON lines under `<state>/journal`. The first line names the owner and
//! the device. A line precedes each change, and a line follows each restored tunable; when all are
//! restored, foreread removes the file. An incomplete last line is ignored: each line is synced
//! before its change is made, so no change followed it. Any other content that foreread would not
//! have written makes the whole file invalid, because root writes values from it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use host::Dirs;

use crate::error::JournalError;
use crate::journal_entry::{JournalEntry, JournalHeader, journals_in, options};
use crate::published::{make_directories, publish};
use crate::replay::Replay;

#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The length of the first line in bytes; `None` if the journal was reopened.
    beginning: Option<u64>,
}

impl Journal {
    /// Creates a journal; syncs the file and its directory.
    pub(crate) fn create(dirs: &Dirs, header: JournalHeader) -> Result<Self, JournalError> {
        let dir = directory(dirs);
        let fail = |doing| {
            let path = dir.clone();
            move |source| JournalError::Io { doing, path, source }
        };
        make_directories(&dir).map_err(fail("create the directory of"))?;
        let name = format!("{}-{}-{}.jsonl", header.unix_ms, header.owner.pid, header.site.bdi);
        let path = std::path::absolute(dir.join(name)).map_err(fail("choose a name for"))?;
        let file =
            options().append(true).create_new(true).mode(0o600).open(&path).map_err(|source| {
                JournalError::Io { doing: "create", path: path.clone(), source }
            })?;
        let mut journal = Self { path, file, beginning: None };
        journal.append(&JournalEntry::Begin(header))?;
        journal.sync_directory()?;
        let length = journal.file.metadata().map_err(|source| journal.error("look at", source))?;
        journal.beginning = Some(length.len());
        journal.publish();
        Ok(journal)
    }

    /// Opens a journal to append after its last complete line.
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line and syncs the file.
    pub(crate) fn append(&mut self, entry: &JournalEntry) -> Result<(), JournalError> {
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        line.and_then(|line| {
            self.file.write_all(format!("{line}\n").as_bytes())?;
            self.file.sync_data()
        })
        .map_err(|source| self.error("write", source))
    }

    /// Truncates the journal to its first line, when nothing is left to undo. This need not be
    /// synced, because a journal with undone changes has the same meaning.
    pub(crate) fn begin_anew(&mut self) -> Result<(), JournalError> {
        let Some(beginning) = self.beginning else { return Ok(()) };
        self.file.set_len(beginning).map_err(|source| self.error("cut", source))
    }

    /// Removes the journal, when nothing is left to undo.
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

    /// Updates the summary that other users may read.
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

pub(crate) fn directory(dirs: &Dirs) -> PathBuf {
    dirs.state.join("journal")
}

/// Returns the paths of the existing journals, oldest first.
pub(crate) fn list(dirs: &Dirs) -> Result<Vec<PathBuf>, JournalError> {
    let dir = directory(dirs);
    match journals_in(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        paths => paths.map_err(|source| JournalError::Io { doing: "list", path: dir, source }),
    }
}

/// Reads a journal; `None` if it has been removed.
pub(crate) fn load(path: &Path) -> Result<Option<Replay>, JournalError> {
    match Replay::load(path) {
        Ok(replay) => Ok(Some(replay)),
        Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
