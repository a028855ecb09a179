//! The directory of a server: marked as created by foreread, locked while in use, and removed only
//! if it is marked and unlocked.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use sys::lock::Lock;

use crate::error::PgError;

/// Name of foreread's directory for a server, the same for each target, so that at most one can be
/// left behind.
pub(crate) const NAME: &str = ".foreread-postgres";
/// File that marks the directory as foreread's; locked while in use.
const MARK: &str = "made-by-foreread";

/// Marks a directory as foreread's and locks it.
pub(crate) fn mark(home: &Path) -> Result<Lock, PgError> {
    let path = home.join(MARK);
    File::create(&path).map_err(PgError::io("make", &path))?;
    let lock = Lock::try_take(&path).map_err(PgError::io("lock", &path))?;
    lock.ok_or_else(|| PgError::Busy { path: home.to_owned() })
}

/// Removes the directory of a run that was killed.
pub(crate) fn remove_left_over(home: &Path) -> Result<(), PgError> {
    if !home.exists() {
        return Ok(());
    }
    let mark = home.join(MARK);
    if !mark.is_file() {
        // An empty one: its removal was interrupted after the mark was removed.
        return fs::remove_dir(home).map_err(|_| PgError::Foreign { path: home.to_owned() });
    }
    let lock = Lock::try_take(&mark).map_err(PgError::io("lock", &mark))?;
    if lock.is_none() {
        return Err(PgError::Busy { path: home.to_owned() });
    }
    remove_home(home)
}

/// Removes foreread's directory. The mark is removed last, so that the next run recognises and
/// removes a directory that could not be removed entirely.
pub(crate) fn remove_home(home: &Path) -> Result<(), PgError> {
    let removed = remove_but_the_mark(home)
        .and_then(|()| fs::remove_file(home.join(MARK)))
        .and_then(|()| fs::remove_dir(home));
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound || home.exists() => {
            Err(PgError::io("remove", home)(error))
        }
        _ => Ok(()),
    }
}

fn remove_but_the_mark(home: &Path) -> io::Result<()> {
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_name() == MARK {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        // A server that is shutting down also removes files.
        removed.or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_and_idle_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(NAME);
        remove_left_over(&home).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(home.join("somebody's"), "text").unwrap();
        assert!(matches!(remove_left_over(&home), Err(PgError::Foreign { .. })));
        fs::remove_file(home.join("somebody's")).unwrap();
        remove_left_over(&home).unwrap();
        assert!(!home.exists(), "an empty one is nobody's");
        fs::create_dir(&home).unwrap();
        let held = mark(&home).unwrap();
        assert!(matches!(remove_left_over(&home), Err(PgError::Busy { .. })));
        held.release().unwrap();
        fs::create_dir(home.join("data")).unwrap();
        fs::write(home.join("data/file"), "text").unwrap();
        remove_left_over(&home).unwrap();
        assert!(!home.exists());
    }

    #[test]
    fn what_cannot_be_removed_whole_stays_ours() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join(NAME);
        fs::create_dir_all(home.join("data/base")).unwrap();
        fs::write(home.join("log"), "text").unwrap();
        mark(&home).unwrap().release().unwrap();
        remove_but_the_mark(&home).unwrap();
        let left: Vec<_> =
            fs::read_dir(&home).unwrap().map(|left| left.unwrap().file_name()).collect();
        assert_eq!(left, [MARK]);
        remove_left_over(&home).unwrap();
        assert!(!home.exists());
    }
}
