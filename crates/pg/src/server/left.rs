//! Finds and removes remains of killed runs: the directories of a server's socket and data.
//!
//! A private server exits with the process that created it, but a killed process removes no files.
//! Each server therefore has a note with the path of its data next to its socket, in the directory
//! for temporary files, so that the data can be found without knowing the target.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::home::{NAME, remove_left_over};
use crate::error::PgError;

/// Prefix of socket directories; the process id follows.
const SOCKET: &str = "foreread-pg-";
const NOTE: &str = "home";

pub(crate) fn socket_directory() -> PathBuf {
    std::env::temp_dir().join(format!("{SOCKET}{}", std::process::id()))
}

/// Writes a note with the path of the data into the directory of a socket.
pub(crate) fn note(socket: &Path, home: &Path) -> Result<(), PgError> {
    let path = socket.join(NOTE);
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(home.as_os_str().as_encoded_bytes())
    };
    write().map_err(PgError::io("write", &path))
}

/// Removes the remains of killed runs, or only finds them; returns the directories. A running
/// server's socket is skipped; removing locked data is an error.
pub fn remove_left(only_look: bool) -> Vec<Result<PathBuf, PgError>> {
    remove_left_in(&std::env::temp_dir(), only_look)
}

fn remove_left_in(place: &Path, only_look: bool) -> Vec<Result<PathBuf, PgError>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(SOCKET)?.parse::<u32>().ok());
        // A process with this id exists: it is the owner, or a later run checks again.
        if pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            continue;
        }
        let socket = entry.path();
        match noted(&socket) {
            Some(home) if only_look => found.push(Ok(home)),
            Some(home) => found.push(remove(&socket, home)),
            None => {}
        }
    }
    found.sort_by_key(|found| found.as_ref().ok().cloned());
    found
}

/// Returns the data directory of the server with this socket. All users can write to the directory
/// for temporary files, so a note counts only if this user wrote it and it names a valid path.
fn noted(socket: &Path) -> Option<PathBuf> {
    let path = socket.join(NOTE);
    let plain = fs::symlink_metadata(socket).ok()?.is_dir();
    let facts = fs::symlink_metadata(&path).ok()?;
    if !plain || !facts.is_file() || facts.uid() != geteuid().as_raw() || facts.nlink() != 1 {
        return None;
    }
    let home = PathBuf::from(fs::read_to_string(&path).ok()?);
    (home.is_absolute() && home.ends_with(NAME)).then_some(home)
}

fn remove(socket: &Path, home: PathBuf) -> Result<PathBuf, PgError> {
    // A virtual disk's data has disappeared with the disk.
    remove_left_over(&home)?;
    fs::remove_dir_all(socket).map_err(PgError::io("remove", socket))?;
    Ok(home)
}

#[cfg(test)]
mod tests {
    use super::super::home::mark;
    use super::*;

    #[test]
    fn what_a_dead_run_left_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(NAME);
        // No process has an id above 4,194,304.
        let dead = dir.path().join(format!("{SOCKET}4194999"));
        let alive = dir.path().join(format!("{SOCKET}{}", std::process::id()));
        let strange = dir.path().join(format!("{SOCKET}4194998"));
        for path in [&home, &dead, &alive, &strange] {
            fs::create_dir(path).unwrap();
        }
        let held = mark(&home).unwrap();
        note(&dead, &home).unwrap();
        note(&alive, &home).unwrap();
        note(&strange, dir.path()).unwrap();
        assert!(matches!(&remove_left_in(dir.path(), false)[..], [Err(PgError::Busy { .. })]));
        held.release().unwrap();
        let looked = remove_left_in(dir.path(), true);
        assert!(matches!(&looked[..], [Ok(found)] if *found == home), "{looked:?}");
        assert!(home.exists());
        assert_eq!(remove_left_in(dir.path(), false).len(), 1);
        assert!(!home.exists() && !dead.exists());
        assert!(alive.exists() && strange.exists(), "only what this user noted is removed");
        assert!(remove_left_in(dir.path(), false).is_empty());
    }
}
