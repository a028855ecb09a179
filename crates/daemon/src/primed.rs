//! Files that are primed as soon as they are read at random, because the user requested it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use host::{BdiId, HostError, Root, resolve};
use observe::OpenFile;
use thiserror::Error;
use units::{Classified, ErrorKind};

/// Maximum number of files below each named directory. Bounds memory and the time of the walk.
const MAX_FILES: usize = 65_536;

/// Why files cannot be primed on request.
#[derive(Debug, Error)]
pub enum PrimedFilesError {
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("reading {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: neither a regular file nor a directory", .0.display())]
    Kind(PathBuf),
    #[error("{}: more than {MAX_FILES} files; name the ones to prime", .0.display())]
    Many(PathBuf),
}

impl Classified for PrimedFilesError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Host(error) => error.kind(),
            Self::Read { .. } | Self::Kind(_) | Self::Many(_) => ErrorKind::Usage,
        }
    }
}

/// Files to prime, by bdi and inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrimedFiles(BTreeSet<(BdiId, u64)>);

impl PrimedFiles {
    /// Finds these files, and the regular files below these directories on the same file system.
    /// Symbolic links below a directory are not followed.
    ///
    /// # Errors
    ///
    /// If a path cannot be read, is no file or directory, or has too many files below it.
    pub fn find(root: &Root, paths: &[PathBuf]) -> Result<Self, PrimedFilesError> {
        let mut files = BTreeSet::new();
        for path in paths {
            let bdi = resolve(root, path)?.bdi;
            for inode in inodes(path)? {
                files.insert((bdi.clone(), inode));
            }
        }
        Ok(Self(files))
    }

    pub(crate) fn contains(&self, file: &OpenFile) -> bool {
        let Some(bdi) = file.bdi.as_ref().filter(|_| !self.0.is_empty()) else { return false };
        self.0.contains(&(bdi.clone(), file.inode))
    }
}

/// Returns the inode of a file, or the inodes of the regular files below a directory.
fn inodes(path: &Path) -> Result<BTreeSet<u64>, PrimedFilesError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| PrimedFilesError::Read { path, source }
    };
    let top = fs::metadata(path).map_err(failed(path))?;
    if top.is_file() {
        return Ok(BTreeSet::from([top.ino()]));
    }
    if !top.is_dir() {
        return Err(PrimedFilesError::Kind(path.to_owned()));
    }
    let (mut found, mut directories) = (BTreeSet::new(), vec![path.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(failed(&directory))? {
            let entry = entry.map_err(failed(&directory))?;
            let about = match entry.metadata() {
                Ok(about) if about.dev() == top.dev() => about,
                // Removed meanwhile, or on another file system.
                Ok(_) | Err(_) => continue,
            };
            if about.is_dir() {
                directories.push(entry.path());
            } else if about.is_file() {
                found.insert(about.ino());
            }
            if found.len() + directories.len() > MAX_FILES {
                return Err(PrimedFilesError::Many(path.to_owned()));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_the_regular_files_below_it() {
        let top = tempfile::tempdir().expect("a directory");
        let path = |name: &str| top.path().join(name);
        fs::create_dir(path("below")).expect("a directory");
        for name in ["one", "below/two"] {
            fs::write(path(name), name).expect("a file");
        }
        std::os::unix::fs::symlink("/etc/passwd", path("link")).expect("a link");
        let inode = |name: &str| fs::metadata(path(name)).expect("a file").ino();
        let found = inodes(top.path()).expect("files");
        assert_eq!(found, BTreeSet::from([inode("one"), inode("below/two")]));
        assert_eq!(inodes(&path("one")).expect("a file"), BTreeSet::from([inode("one")]));
        let none = inodes(&path("none")).expect_err("it is not there");
        assert_eq!(none.to_string(), format!("reading {}", path("none").display()));
        let device = inodes(Path::new("/dev/null")).expect_err("no regular file");
        assert_eq!(device.to_string(), "/dev/null: neither a regular file nor a directory");
    }
}
