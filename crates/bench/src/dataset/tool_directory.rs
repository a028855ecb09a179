//! A directory inside foreread's own directory, for the files of an external program.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{BenchError, write_error};

/// The directory's fixed name, by which a later run recognises it.
pub(crate) const NAME: &str = "tool.dir";

/// A new directory, removed with its content when dropped.
#[derive(Debug)]
pub(crate) struct ToolDirectory {
    path: PathBuf,
}

impl ToolDirectory {
    /// Creates the directory inside `home`, after removing that of a run that was killed.
    pub(crate) fn make(home: &Path) -> Result<Self, BenchError> {
        let path = home.join(NAME);
        remove(&path)?;
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| write_error(home, error))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory and reports failures.
    pub(crate) fn remove(self) -> Result<(), BenchError> {
        remove(&self.path)
    }
}

impl Drop for ToolDirectory {
    fn drop(&mut self) {
        // Only `remove` reports a failure.
        let _ = remove(&self.path);
    }
}

/// Removes the directory with its content, if it exists; does not follow symbolic links.
pub(crate) fn remove(path: &Path) -> Result<(), BenchError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(BenchError::io("delete", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_all_that_a_program_left_in_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = ToolDirectory::make(home.path()).unwrap();
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(dir.path().join("below/file"), "x").unwrap();
        std::mem::forget(dir);
        let dir = ToolDirectory::make(home.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "what a dead run left has gone");
        let path = dir.path().to_owned();
        dir.remove().unwrap();
        assert!(!path.exists());
    }
}
