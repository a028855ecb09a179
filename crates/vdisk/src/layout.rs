//! Files of a virtual disk.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use host::Dirs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sys::replace::{Durability, FileMode, replace};
use units::Bytes;

use crate::error::VdiskError;

/// The directory of one virtual disk, `<runtime>/vdisk/<name>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskDirs {
    dir: PathBuf,
}

/// The server's parameters, which the creator writes before it starts the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerJob {
    pub(crate) model: String,
    pub(crate) size: Bytes,
    pub(crate) dilation: f64,
    pub(crate) seed: u64,
    /// Whether the disk is removed at end of file on the server's standard input.
    pub(crate) dies_with_creator: bool,
}

/// Facts about a running server, which it writes before it reports that it is ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServerFacts {
    pub(crate) pid: u32,
    /// Start time of the process in clock ticks, to detect a reused process id.
    pub(crate) started: u64,
    /// Number of the FUSE connection under `/sys/fs/fuse/connections`.
    pub(crate) connection: u32,
    pub(crate) realtime: bool,
}

/// Name of the only file in the FUSE mount.
pub(crate) const DISK_FILE: &str = "disk";

impl DiskDirs {
    /// Returns the directory of the disk with this name.
    pub(crate) fn new(dirs: &Dirs, name: &str) -> Result<Self, VdiskError> {
        check_name(name)?;
        Ok(Self { dir: folder(dirs).join(name) })
    }

    /// Returns the directory that was passed to a server.
    pub(crate) fn from_path(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Creates the directory of a new disk; fails if it exists.
    pub(crate) fn claim(dirs: &Dirs, name: &str) -> Result<Self, VdiskError> {
        let home = Self::new(dirs, name)?;
        let parent = folder(dirs);
        fs::create_dir_all(&parent).map_err(VdiskError::io("making directory", &parent))?;
        match fs::DirBuilder::new().mode(0o755).create(&home.dir) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(VdiskError::NameTaken { name: name.to_owned() });
            }
            Err(error) => return Err(VdiskError::io("making directory", &home.dir)(error)),
        }
        for part in [home.fuse(), home.mountpoint()] {
            fs::create_dir(&part).map_err(VdiskError::io("making directory", &part))?;
        }
        Ok(home)
    }

    /// Creates the directory of a new disk with the first free name of `stem-1`, `stem-2` ….
    pub(crate) fn claim_numbered(dirs: &Dirs, stem: &str) -> Result<Self, VdiskError> {
        let stem: String = stem.chars().filter(|c| is_name_char(*c)).take(40).collect();
        let mut number = 1;
        loop {
            let name = format!("{}-{number}", if stem.is_empty() { "disk" } else { &stem });
            match Self::claim(dirs, &name) {
                Err(VdiskError::NameTaken { .. }) => number += 1,
                claimed => return claimed,
            }
        }
    }

    /// Locks the disk for its creator or owner until the lock is dropped or the process exits.
    /// Returns `None` while another process holds the lock.
    pub(crate) fn hold(&self) -> Result<Option<File>, VdiskError> {
        let lock = || {
            let dir = File::open(&self.dir)?;
            match dir.try_lock() {
                Ok(()) => Ok(Some(dir)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        lock().map_err(VdiskError::io("locking", &self.dir))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    pub(crate) fn fuse(&self) -> PathBuf {
        self.dir.join("fuse")
    }

    pub(crate) fn disk_file(&self) -> PathBuf {
        self.fuse().join(DISK_FILE)
    }

    pub(crate) fn mountpoint(&self) -> PathBuf {
        self.dir.join("mnt")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("control")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    pub(crate) fn job(&self) -> PathBuf {
        self.dir.join("job.json")
    }

    pub(crate) fn server_facts(&self) -> PathBuf {
        self.dir.join("server.json")
    }

    pub(crate) fn loop_device(&self) -> PathBuf {
        self.dir.join("loop.json")
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("disk.json")
    }

    /// Returns all files that may be in the directory, so that removal touches nothing else.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let jsons = [self.job(), self.server_facts(), self.loop_device(), self.record()];
        let halves = jsons.iter().map(|json| json.with_extension("json.new"));
        halves.chain(jsons.clone()).chain([self.socket(), self.log()]).collect()
    }

    /// Returns the last lines of the server's log, for an error message.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(3).collect();
        let words: Vec<&str> = lines.into_iter().rev().collect();
        if words.is_empty() { "it exited without a message".to_owned() } else { words.join("; ") }
    }
}

/// Returns the directory of all virtual disks.
pub(crate) fn folder(dirs: &Dirs) -> PathBuf {
    dirs.runtime.join("vdisk")
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

fn check_name(name: &str) -> Result<(), VdiskError> {
    let fits = (1..=48).contains(&name.len())
        && name.chars().all(is_name_char)
        && !name.starts_with(['.', '-']);
    if fits { Ok(()) } else { Err(VdiskError::BadName { name: name.to_owned() }) }
}

/// Writes a file atomically. Its content is valid only until reboot.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), VdiskError> {
    let write = || {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        replace(path, &text, FileMode::Masked(0o666), Durability::UntilReboot)
    };
    write().map_err(VdiskError::io("writing", path))
}

/// Reads a file that `write_json` wrote; `None` if it does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, VdiskError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| VdiskError::io("reading", path)(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(VdiskError::io("reading", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_file_names_are_refused() {
        let dirs = Dirs::under("/nowhere");
        for name in ["", ".", "..", "-x", "a/b", "a b", &"x".repeat(49), "é"] {
            assert!(
                matches!(DiskDirs::new(&dirs, name), Err(VdiskError::BadName { .. })),
                "{name:?} was taken"
            );
        }
        for name in ["a", "raid10-2008", "x_y.z", &"x".repeat(48)] {
            assert!(DiskDirs::new(&dirs, name).is_ok(), "{name:?} was refused");
        }
    }

    #[test]
    fn a_name_can_be_claimed_once() {
        let base = tempfile::tempdir().unwrap();
        let dirs = Dirs::under(base.path());
        let home = DiskDirs::claim(&dirs, "one").unwrap();
        assert!(home.fuse().is_dir() && home.mountpoint().is_dir());
        assert!(matches!(DiskDirs::claim(&dirs, "one"), Err(VdiskError::NameTaken { .. })));
    }

    #[test]
    fn numbered_names_skip_those_that_are_taken() {
        let base = tempfile::tempdir().unwrap();
        let dirs = Dirs::under(base.path());
        let names: Vec<String> =
            (0..3).map(|_| DiskDirs::claim_numbered(&dirs, "hdd 2008").unwrap().name()).collect();
        assert_eq!(names, ["hdd2008-1", "hdd2008-2", "hdd2008-3"]);
        assert_eq!(DiskDirs::claim_numbered(&dirs, "//").unwrap().name(), "disk-1");
    }

    #[test]
    fn a_missing_file_is_no_error_and_a_broken_one_is() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("job.json");
        assert!(read_json::<ServerJob>(&path).unwrap().is_none());
        fs::write(&path, "{").unwrap();
        assert!(read_json::<ServerJob>(&path).is_err());
    }
}
