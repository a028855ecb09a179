//! The tree that everything is read from.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::HostError;

/// More than anybody configures by hand.
const LARGEST_CONFIGURATION: u64 = 4 << 20;

/// The largest file of a captured tree that is read.
const LARGEST_CAPTURED: u64 = 64 << 20;

/// Where `/sys`, `/proc` and `/dev` are: the machine itself, or a captured tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// The machine that foreread runs on.
    pub fn system() -> Self {
        Self { prefix: PathBuf::from("/") }
    }

    /// A tree under `prefix` that holds `sys/…` and `proc/…` as a machine would.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Self { prefix: prefix.into() }
    }

    /// Whether this is the machine itself, where system calls tell more than files.
    pub fn is_system(&self) -> bool {
        self.prefix == Path::new("/")
    }

    /// Where `path` (absolute on the machine) lies in this tree.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.prefix.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file, white space at its ends taken off.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, HostError> {
        let path = self.path(path);
        let content = if self.is_system() { fs::read(&path) } else { captured(&path) };
        match content {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(source) => Err(HostError::Read { path, source }),
        }
    }

    /// The text of a file that not every kernel or device has.
    pub fn read_if_present(&self, path: impl AsRef<Path>) -> Result<Option<String>, HostError> {
        match self.read(path) {
            Ok(text) => Ok(Some(text)),
            Err(HostError::Read { source, .. }) if is_absent(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The text of a file of somebody's configuration as it is, so that lines can be counted;
    /// `None` where it is missing, cannot be read, or is larger than people write.
    pub(crate) fn lines_of(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = limited(&self.path(path), LARGEST_CONFIGURATION).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn read_number(&self, path: impl AsRef<Path>) -> Result<u64, HostError> {
        let text = self.read(&path)?;
        text.parse().map_err(|_| HostError::Malformed {
            path: self.path(path),
            problem: format!("{text:?} is no whole number"),
        })
    }

    /// The whole number in a file, `None` where the file is missing or holds something else.
    pub fn number_if_present(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path).ok()?.parse().ok()
    }

    /// Whether something is at `path`.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// The last part of what the link at `path` points to.
    pub fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// The names in a directory, sorted; none if it is not there.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// The content of a file of a captured tree, in which anything may stand in the place of a file.
fn captured(path: &Path) -> io::Result<Vec<u8>> {
    limited(path, LARGEST_CAPTURED)
}

/// The content of a regular file that is not larger than `limit` bytes.
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

/// Whether a file is missing, or is there but has nothing to give on this device.
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
        // A device without end, a pipe without writer, and more than anybody captures.
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
