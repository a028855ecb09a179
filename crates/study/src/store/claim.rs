//! Claims of runs.
//!
//! The process that measures a run locks a small file next to the record. The kernel releases the
//! lock when the process exits, so a run that is marked as running but not locked was killed.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;
use crate::run_id::RunId;

/// Number of retries for a held lock, and the interval between them.
const MAX_ATTEMPTS: u32 = 5;
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// The exclusive right to add trials to a run, until dropped.
#[derive(Debug)]
pub(crate) struct RunClaim {
    path: PathBuf,
    _file: File,
}

/// The result of claiming a run.
pub(crate) enum ClaimOutcome {
    Acquired(RunClaim),
    /// Another process holds the claim; its process id, if readable.
    Busy(Option<u32>),
}

impl RunClaim {
    /// Claims a run of the store in this file.
    pub(crate) fn take(store: &Path, run: RunId) -> Result<ClaimOutcome, StoreError> {
        let path = lock_file(store, run);
        let io = |source| StoreError::Io { path: path.clone(), source };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut attempts = 0;
        loop {
            let mut file = options.open(&path).map_err(io)?;
            match file.try_lock() {
                // Another process may have removed and replaced the file in the meantime.
                Ok(()) if !is_at(&file, &path) => continue,
                Ok(()) => {
                    file.set_len(0).map_err(io)?;
                    write!(file, "{}", std::process::id()).map_err(io)?;
                    return Ok(ClaimOutcome::Acquired(Self { path, _file: file }));
                }
                // A process that only checks whether the run is claimed also holds the lock for a
                // moment.
                Err(TryLockError::WouldBlock) if attempts < MAX_ATTEMPTS => {
                    attempts += 1;
                    std::thread::sleep(RETRY_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    let _ = file.read_to_string(&mut text);
                    return Ok(ClaimOutcome::Busy(text.trim().parse().ok()));
                }
                Err(TryLockError::Error(source)) => return Err(io(source)),
            }
        }
    }

    /// Returns whether a process is measuring the run. Removes the file of a killed process.
    pub(crate) fn is_taken(store: &Path, run: RunId) -> bool {
        let path = lock_file(store, run);
        let Ok(file) = File::open(&path) else { return false };
        match file.try_lock() {
            Ok(()) => {
                if is_at(&file, &path) {
                    // In a read-only directory the file remains, which is harmless.
                    let _ = fs::remove_file(&path);
                }
                false
            }
            Err(error) => matches!(error, TryLockError::WouldBlock),
        }
    }
}

/// Returns whether this open file is the one with this name.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |status: fs::Metadata| (status.dev(), status.ino());
    let (open, named) = (file.metadata().map(number), fs::metadata(path).map(number));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

impl Drop for RunClaim {
    fn drop(&mut self) {
        // Closing the file releases the lock; a file that cannot be removed is harmless.
        let _ = fs::remove_file(&self.path);
    }
}

fn lock_file(store: &Path, run: RunId) -> PathBuf {
    store.with_extension(format!("run-{run}.lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_when_the_run_is_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("runs.sqlite");
        let left = lock_file(&store, RunId(7));
        fs::write(&left, "4711").unwrap();
        assert!(!RunClaim::is_taken(&store, RunId(7)));
        assert!(!left.exists());
        assert!(!RunClaim::is_taken(&store, RunId(7)), "nothing is made by looking");
        assert!(!left.exists());
    }

    #[test]
    fn a_claim_is_taken_until_it_is_dropped_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("runs.sqlite");
        let ClaimOutcome::Acquired(claim) = RunClaim::take(&store, RunId(1)).unwrap() else {
            panic!()
        };
        assert!(RunClaim::is_taken(&store, RunId(1)));
        let ClaimOutcome::Busy(pid) = RunClaim::take(&store, RunId(1)).unwrap() else { panic!() };
        assert_eq!(pid, Some(std::process::id()));
        drop(claim);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
