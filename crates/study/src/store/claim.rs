//! Who is at work on a run.
//!
//! A run's process holds a lock on a small file beside the record, which the kernel lets go of
//! whatever the process dies of; so a run that says it is running, and whose lock can be had, was
//! killed.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::{RunId, StoreError};

/// The right to add trials to a run, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    _file: File,
}

/// What came of claiming a run.
pub(crate) enum Claimed {
    /// It is ours.
    Ours(Claim),
    /// It is this process's, if that could be read.
    Theirs(Option<u32>),
}

impl Claim {
    /// Claims a run of the store in this file.
    pub(crate) fn take(store: &Path, run: RunId) -> Result<Claimed, StoreError> {
        let path = lock_file(store, run);
        let io = |source| StoreError::Io { path: path.clone(), source };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Ok(Claimed::Theirs(text.trim().parse().ok()));
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0).map_err(io)?;
        write!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Claimed::Ours(Self { path, _file: file }))
    }

    /// Whether a process is at work on the run.
    pub(crate) fn is_taken(store: &Path, run: RunId) -> bool {
        let Ok(file) = File::open(lock_file(store, run)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing the file lets go of the lock; one that cannot be removed does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

fn lock_file(store: &Path, run: RunId) -> PathBuf {
    store.with_extension(format!("run-{run}.lock"))
}
