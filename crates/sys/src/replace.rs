//! Atomic replacement of files: a reader sees either the old or the new content.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

/// Whether a replaced file survives a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file may be lost: it describes processes that do not survive either.
    UntilReboot,
    /// Content and name are on stable storage when the call returns.
    Synced,
}

/// Permission bits of a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// These bits, restricted by the umask.
    Masked(u32),
    Exact(u32),
}

/// Writes `NAME.new` in the same directory and renames it to `path`. Overwrites a `NAME.new` that a
/// killed process left behind.
///
/// # Errors
///
/// If the directory does not exist, or the file cannot be written, synced or renamed.
pub fn replace(
    path: &Path,
    bytes: &[u8],
    mode: FileMode,
    durability: Durability,
) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
    name.push(".new");
    match fs::remove_file(dir.join(&name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (FileMode::Masked(bits) | FileMode::Exact(bits)) = mode;
    // tempfile's own functions return errors without the system's error number.
    let new = dir.join(&name);
    let file = File::options().write(true).create_new(true).mode(bits).open(&new)?;
    // Dropping this value removes the file unless it was renamed.
    let mut file = NamedTempFile::from_parts(file, TempPath::try_from_path(new)?);
    if let FileMode::Exact(_) = mode {
        file.as_file().set_permissions(Permissions::from_mode(bits))?;
    }
    file.as_file_mut().write_all(bytes)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    match durability {
        Durability::UntilReboot => Ok(()),
        Durability::Synced => File::open(dir)?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_besides_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        fs::write(dir.path().join("state.json.new"), "left by a killed process").unwrap();
        for (text, durability) in [("one", Durability::Synced), ("two", Durability::UntilReboot)] {
            replace(&path, text.as_bytes(), FileMode::Exact(0o640), durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_has_the_number_of_the_system_call() {
        let error =
            replace(Path::new("/no/such/place"), b"", FileMode::Exact(0o600), Durability::Synced);
        assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        fs::write(&path, "old").unwrap();
        fs::create_dir(dir.path().join("state.new")).unwrap();
        assert!(replace(&path, b"new", FileMode::Masked(0o600), Durability::Synced).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    }
}
