//! The root of the file tree from which facts are read.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::HostError;

/// Maximum size of a configuration file in bytes: larger than any that people write by hand.
const LARGEST_CONFIGURATION: u64 = 4 << 20;

/// Maximum size of a file in a captured tree, in bytes.
const LARGEST_CAPTURED: u64 = 64 << 20;

/// The root of `/sys`, `/proc` and `/dev`: the machine itself, or a captured tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// Returns the root of this machine.
    pub fn system() -> Self {
        Self { prefix: PathBuf::from("/") }
    }

    /// Returns the root of a tree under `prefix` that contains `sys/…` and `proc/…`.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Returns whether this is the machine itself, where system calls report more than files do.
    pub fn is_system(&self) -> bool {
        self.prefix == Path::new("/")
    }

    /// Checks that procfs and sysfs are mounted on this machine. Always succeeds for a captured
    /// tree.
    ///
    /// # Errors
    ///
    /// If `/proc` or `/sys` is not mounted.
    pub fn ensure_mounted(&self) -> Result<(), HostError> {
        let needed =
            [("/proc", "proc", "/proc/self/mountinfo"), ("/sys", "sysfs", "/sys/class/bdi")];
        let is_missing = |file: &str| self.is_system() && !self.exists(file);
        match needed.into_iter().find(|(_, _, file)| is_missing(file)) {
            Some((path, fstype, _)) => Err(HostError::NotMounted { path, fstype }),
            None => Ok(()),
        }
    }

    /// Returns the location of the absolute `path` in this tree.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.prefix.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads the text of a file, without surrounding white space.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, HostError> {
        let path = self.path(path);
        let content = if self.is_system() { fs::read(&path) } else { captured(&path) };
        match content {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(source) => Err(HostError::Read { path, source }),
        }
    }

    /// Reads a file that not every kernel or device has; `None` if it is absent.
    pub fn read_if_present(&self, path: impl AsRef<Path>) -> Result<Option<String>, HostError> {
        match self.read(path) {
            Ok(text) => Ok(Some(text)),
            Err(HostError::Read { source, .. }) if is_absent(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a configuration file, unchanged so that line numbers are right; `None` if it is
    /// missing, unreadable or too large.
    pub(crate) fn lines_of(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = limited(&self.path(path), LARGEST_CONFIGURATION).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn read_number(&self, path: impl AsRef<Path>) -> Result<u64, HostError> {
        let text = self.read(&path)?;
        text.parse().map_err(|_| HostError::Malformed {
            path: self.path(path),
            problem: format!("{text:?} is not a whole number"),
        })
    }

    /// Reads the whole number in a file; `None` if it is missing or has other content.
    pub fn number_if_present(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path).ok()?.parse().ok()
    }

    /// Returns whether `path` exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Returns the last component of the link target of `path`.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Returns the sorted names in a directory; empty if it does not exist.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// Reads a file of a captured tree. The path may be anything, such as a pipe or a device.
fn captured(path: &Path) -> io::Result<Vec<u8>> {
    limited(path, LARGEST_CAPTURED)
}

/// Reads a regular file of at most `limit` bytes.
fn limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Returns whether a file is missing, or exists without a value on this device.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, Unsupported};
    matches!(error.kind(), NotFound | NotADirectory | Unsupported | InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_a_captured_tree_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        let root = Root::at(dir.path());
        fs::write(at("good"), " text\n").expect("a file");
        assert_eq!(root.read("/good").expect("a file"), "text");
        // An endless device, a pipe without a writer, and an oversized file.
        std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo");
        assert!(made.success());
        fs::File::create(at("huge")).and_then(|file| file.set_len(1 << 40)).expect("a file");
        for name in ["/zero", "/pipe", "/huge", "/"] {
            assert!(root.read(name).is_err(), "{name}");
            assert_eq!(root.lines_of(name), None, "{name}");
        }
    }
}
