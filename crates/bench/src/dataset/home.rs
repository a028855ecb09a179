//! foreread's own directory inside the target directory.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfs, flock, open};
use rustix::io::Errno;
use units::Bytes;

use super::manifest::{MANIFEST, Manifest, is_our_name};
use super::tool_directory;
use crate::error::{BenchError, write_error};

/// The directory's name: hidden, and always the same, so that at most one can be left behind.
const NAME: &str = ".foreread-data";

/// foreread's directory, locked against other processes while this value exists.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    handle: OwnedFd,
}

impl Home {
    /// Finds and locks foreread's directory in `dir`; returns `None` if it does not exist.
    pub(crate) fn find(dir: &Path) -> Result<Option<Self>, BenchError> {
        let path = dir.join(NAME);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = match open(&path, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(foreign(&path, "it is not a directory".to_owned()));
            }
            Err(errno) => return Err(BenchError::io("open", &path)(errno.into())),
        };
        // Some network file systems return another error, as they have no locks: continue without.
        if flock(&handle, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(BenchError::Busy { path });
        }
        let home = Self { path, handle };
        home.check_ownership()?;
        Ok(Some(home))
    }

    /// Finds foreread's directory in `dir` or creates it.
    pub(crate) fn find_or_make(dir: &Path) -> Result<Self, BenchError> {
        if let Some(home) = Self::find(dir)? {
            return Ok(home);
        }
        let path = dir.join(NAME);
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| write_error(dir, error))?;
        // The manifest marks the directory as foreread's, even if this process is killed later.
        let marked = Manifest::default().write(&path);
        if let Err(problem) = marked {
            // The directory is still empty, so at most an empty directory could remain.
            let _ = fs::remove_file(path.join(super::manifest::MANIFEST_NEW));
            let _ = fs::remove_dir(&path);
            return Err(match problem {
                BenchError::Io { source, .. } => write_error(dir, source),
                other => other,
            });
        }
        Self::find(dir)?
            .ok_or_else(|| BenchError::io("open", &path)(io::Error::from(io::ErrorKind::NotFound)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory, for `statvfs(3)` and syncing.
    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    fn names(&self) -> Result<Vec<String>, BenchError> {
        let entries = fs::read_dir(&self.path).map_err(BenchError::io("list", &self.path))?;
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.map_err(BenchError::io("list", &self.path))?.file_name();
            Ok(name.to_string_lossy().into_owned())
        };
        entries.map(name).collect()
    }

    /// Accepts a directory that contains foreread's manifest, or an empty one (left by a crash
    /// right after it was created).
    fn check_ownership(&self) -> Result<(), BenchError> {
        let names = self.names()?;
        let unmarked = !names.iter().any(|name| name == MANIFEST);
        match names.iter().find(|name| unmarked && !is_our_name(name)) {
            Some(name) => Err(foreign(&self.path, format!("it contains {name}"))),
            None => Ok(()),
        }
    }

    /// Deletes the data files that `keep` rejects.
    pub(crate) fn remove_files(&self, keep: &dyn Fn(&str) -> bool) -> Result<(), BenchError> {
        for name in self.names()? {
            if is_our_name(&name) && name.ends_with(".data") && !keep(&name) {
                let path = self.path.join(&name);
                fs::remove_file(&path).map_err(BenchError::io("delete", &path))?;
            }
        }
        Ok(())
    }

    /// Deletes the files and the directory. The manifest is deleted last, so that foreread still
    /// recognises the directory after an interruption.
    pub(crate) fn remove(self) -> Result<(), BenchError> {
        self.remove_files(&|_| false)?;
        tool_directory::remove(&self.path.join(tool_directory::NAME))?;
        let mut rest = self.names()?;
        if let Some(name) = rest.iter().find(|name| !is_our_name(name)) {
            return Err(foreign(&self.path, format!("it contains {name}")));
        }
        rest.sort_by_key(|name| name == MANIFEST);
        for name in rest {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(BenchError::io("delete", &path))?;
        }
        fs::remove_dir(&self.path).map_err(BenchError::io("delete", &self.path))
    }

    /// Syncs the directory, so that the names of its files are durable.
    pub(crate) fn sync(&self) -> Result<(), BenchError> {
        let sync = || File::open(&self.path)?.sync_all();
        sync().map_err(BenchError::io("sync", &self.path))
    }

    pub(crate) fn room(&self) -> Result<Bytes, BenchError> {
        let room = rustix::fs::fstatvfs(self.handle())
            .map_err(|errno| BenchError::io("read the free space of", &self.path)(errno.into()))?;
        Ok(free(&room))
    }
}

/// Returns the space that this user can still write in a directory.
pub(crate) fn room_in(dir: &Path) -> io::Result<Bytes> {
    Ok(free(&rustix::fs::statvfs(dir)?))
}

fn free(room: &StatVfs) -> Bytes {
    Bytes::new(room.f_bavail.saturating_mul(room.f_frsize))
}

fn foreign(path: &Path, why: String) -> BenchError {
    BenchError::Foreign { path: path.to_owned(), why }
}
