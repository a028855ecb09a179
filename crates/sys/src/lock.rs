//! Exclusive locks with `flock(2)`.
//!
//! The lock belongs to the open file description, not to the process. Processes that inherit the
//! descriptor also hold it. It is released when the last holder has exited for any reason.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// An exclusive lock on a file. Released when this descriptor and all duplicates are closed.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Waits for the lock on the file at `path`, and creates the file if it is missing.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        loop {
            match flock(file.as_fd(), FlockOperation::LockExclusive) {
                Err(Errno::INTR) => {}
                done => return done.map(|()| Self { file }).map_err(io::Error::from),
            }
        }
    }

    /// Acquires the lock if it is free; returns `None` otherwise.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Releases the lock at once for all holders. Dropping it instead releases it with the last
    /// duplicate; a child that another thread is starting has a duplicate until its `exec`.
    pub fn release(self) -> io::Result<()> {
        self.unlock()
    }

    /// Like `release`, for owners that cannot consume the lock, as in `Drop`.
    pub fn unlock(&self) -> io::Result<()> {
        flock(self.file.as_fd(), FlockOperation::Unlock).map_err(io::Error::from)
    }

    /// Returns the locked file, to write to it or to pass the lock to a child.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Opens the file without following a final link, so that a link cannot redirect its creation.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_all_its_holders_are_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let lock = Lock::try_take(&path).expect("a file").expect("a free lock");
        assert!(Lock::try_take(&path).expect("a file").is_none());
        let heir = lock.file().try_clone().expect("a duplicate");
        drop(lock);
        assert!(Lock::try_take(&path).expect("a file").is_none(), "the duplicate holds it");
        drop(heir);
        Lock::acquire(&path).expect("a free lock");
    }

    #[test]
    fn a_lock_released_is_free_for_all() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let lock = Lock::acquire(&path).expect("a free lock");
        let _heir = lock.file().try_clone().expect("a duplicate");
        lock.release().expect("released");
        assert!(Lock::try_take(&path).expect("a file").is_some());
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(Lock::acquire(&link).is_err());
        assert!(!target.exists());
    }
}
