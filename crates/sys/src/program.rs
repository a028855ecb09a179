//! Finds programs by name, as a shell does.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Directories of administrators' programs, which other users may not have in `PATH`.
const ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Returns the program that a shell would start for this word, which is a path or a name.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    which::which(program).ok()
}

/// Like `find`, but searches the directories in `first`, then `PATH`, then the administrators'
/// directories.
pub fn find_also_in(program: &str, first: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = first.iter().cloned().chain(env::split_paths(&path));
    let directories = directories.chain(ADMINISTRATORS.map(PathBuf::from));
    // A directory with a colon in its name cannot be in a search path.
    let directories: Vec<PathBuf> = directories.filter(|it| joinable(it)).collect();
    which::which_in_global(program, env::join_paths(directories).ok()).ok()?.next()
}

fn joinable(directory: &Path) -> bool {
    !directory.as_os_str().as_encoded_bytes().contains(&b':')
}

/// Returns why a program cannot be started: missing or not executable. `None` if it can.
pub fn obstacle(program: &OsStr) -> Option<io::ErrorKind> {
    if find(program).is_some() {
        return None;
    }
    let exists = if program.as_encoded_bytes().contains(&b'/') {
        Path::new(program).exists()
    } else {
        let path: OsString = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).any(|directory| directory.join(program).exists())
    };
    Some(if exists { io::ErrorKind::PermissionDenied } else { io::ErrorKind::NotFound })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_by_name_by_path_and_in_further_directories() {
        assert!(find("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(find("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!((find("no-such-program"), find("/no/such")), (None, None));

        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("sh");
        fs::write(&own, "#!/bin/sh\n").unwrap();
        let first = [directory.path().to_owned()];
        assert_ne!(find_also_in("sh", &first), Some(own.clone()), "it is not executable");
        fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_also_in("sh", &first), Some(own));
    }

    #[test]
    fn what_exists_but_may_not_be_executed_is_not_missing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        fs::write(&file, "x").unwrap();
        assert_eq!(obstacle(file.as_os_str()), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(obstacle(OsStr::new("no-such-program")), Some(io::ErrorKind::NotFound));
        assert_eq!(obstacle(OsStr::new("sh")), None);
    }
}
