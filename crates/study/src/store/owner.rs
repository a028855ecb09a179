//! Checks that a database belongs to foreread, so that those of other programs are never written.
//!
//! SQLite stores an application number in the file header, `application_id`. Early records have 0
//! there and are recognised by their tables. The check reads the file before it is opened for
//! writing, because even the journal mode is stored in it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::sqlite;
use crate::error::StoreError;

/// "fore" in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x666f_7265;

/// The first bytes of an SQLite file (<https://www.sqlite.org/fileformat.html>).
const MAGIC: &[u8] = b"SQLite format 3\0";
/// Offset of the application number in the header; the number is big-endian.
const ID_OFFSET_BYTES: usize = 68;
const HEADER_BYTES: u64 = 100;

/// Returns whether the file exists; a dangling symbolic link counts as missing.
pub(super) fn is_there(path: &Path) -> Result<bool, StoreError> {
    path.try_exists().map_err(|source| StoreError::Io { path: path.to_owned(), source })
}

/// Returns an error if the file is not a record of foreread. A missing or empty file, or an empty
/// database, may become one.
pub(super) fn refuse_foreign(path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    let foreign =
        |what: &str| Err(StoreError::Foreign { path: path.to_owned(), what: what.to_owned() });
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
        // Opening a pipe would block.
        Ok(status) if !status.is_file() => return foreign("it is not a regular file"),
        Ok(_) => {}
    }
    let mut header = Vec::new();
    let file = File::open(path).map_err(io)?;
    file.take(HEADER_BYTES).read_to_end(&mut header).map_err(io)?;
    if header.is_empty() {
        return Ok(());
    }
    let id = header.get(ID_OFFSET_BYTES..ID_OFFSET_BYTES + 4).and_then(|id| id.try_into().ok());
    match id.map(i32::from_be_bytes).filter(|_| header.starts_with(MAGIC)) {
        None => foreign("it is not an SQLite file"),
        // Not in the header yet; the number may be in the write-ahead log.
        Some(0) => refuse_foreign_tables(path),
        Some(APPLICATION_ID) => Ok(()),
        Some(_) => foreign("it is the database of another program"),
    }
}

fn refuse_foreign_tables(path: &Path) -> Result<(), StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // Without a write-ahead log, no process is writing to the file, and opening it as immutable
    // creates no log.
    check(&connect_read_only(path, !Path::new(&log).exists())?, path)
}

/// Opens the file read-only. SQLite reads a write-ahead log only with its index, which it creates
/// if missing; where that is impossible, the file is opened as immutable, without the log.
pub(super) fn connect_read_only(path: &Path, immutable: bool) -> Result<Connection, StoreError> {
    let connect = |immutable| -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(address(path, immutable), flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        // SQLite opens the log at the first query.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let connection = match connect(immutable) {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
            ) =>
        {
            connect(true)
        }
        result => result,
    };
    connection.map_err(sqlite(path))
}

/// Returns the file as a URI (<https://www.sqlite.org/uri.html>). A file that is opened as
/// immutable is read without locks and without its write-ahead log.
fn address(path: &Path, immutable: bool) -> OsString {
    let mut address = b"file:".to_vec();
    // Two leading slashes would make the next component a host name.
    let plain: PathBuf = path.components().collect();
    for byte in plain.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => address.extend(format!("%{byte:02x}").bytes()),
            other => address.push(*other),
        }
    }
    if immutable {
        address.extend(b"?immutable=1");
    }
    OsString::from_vec(address)
}

/// Returns an error if an open database is not a record of foreread.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let number = |sql: &str| -> Result<i64, StoreError> {
        connection.query_row(sql, [], |row| row.get(0)).map_err(sqlite(path))
    };
    let id = number("PRAGMA application_id")?;
    if id == i64::from(APPLICATION_ID) {
        return Ok(());
    }
    let objects = number("SELECT count(*) FROM sqlite_schema")?;
    let blank = objects == 0 && number("PRAGMA user_version")? == 0;
    // The columns that the tables have in every schema of a record.
    let ours = number(
        "SELECT (SELECT count(*) FROM pragma_table_info('run') WHERE name IN ('plan', 'seed', \
         'grid_kib', 'found_kib', 'device_before')) + (SELECT count(*) FROM \
         pragma_table_info('trial') WHERE name IN ('run', 'settings', 'disturbances', 'record'))",
    )? == 9;
    if id == 0 && (blank || ours) {
        return Ok(());
    }
    let what = "it is the database of another program".to_owned();
    Err(StoreError::Foreign { path: path.to_owned(), what })
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::*;

    fn file(sql: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.sqlite");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        (dir, path)
    }

    fn refused(path: &Path) {
        let before = fs::read(path).unwrap();
        let beside = || fs::read_dir(path.parent().unwrap()).unwrap().count();
        let files = beside();
        for result in
            [Store::open(path).map(Some), Store::open_existing(path), Store::open_read_only(path)]
        {
            let error = result.unwrap_err();
            assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
            let said = error.to_string();
            assert!(!said.contains('\n') && said.contains("some.sqlite"), "{said}");
        }
        assert_eq!(fs::read(path).unwrap(), before, "it is as it was");
        assert_eq!(beside(), files, "nothing is left beside it");
    }

    #[test]
    fn databases_of_other_programs_are_refused_and_left_as_they_are() {
        for sql in [
            "CREATE TABLE bookmarks (url TEXT)",
            "CREATE TABLE run (id INTEGER); CREATE TABLE trial (id INTEGER)",
            "CREATE VIEW one AS SELECT 1",
            "PRAGMA application_id = 252006675",
            "PRAGMA user_version = 2",
            "PRAGMA journal_mode = WAL; CREATE TABLE places (id INTEGER)",
        ] {
            let (_dir, path) = file(sql);
            refused(&path);
        }
    }

    #[test]
    fn files_that_are_no_database_are_refused() {
        let (_dir, path) = file("");
        for text in ["hello\n", "SQLite format 3", "SQLite format 3\0 and nothing else"] {
            fs::write(&path, text).unwrap();
            refused(&path);
        }
        assert!(matches!(
            Store::open(Path::new("/dev/null")).unwrap_err(),
            StoreError::Foreign { .. }
        ));
    }

    #[test]
    fn new_and_empty_files_become_records() {
        let (_dir, path) = file("");
        fs::write(&path, "").unwrap();
        Store::open(&path).unwrap();
        let id = || {
            let connection = Connection::open(&path).unwrap();
            connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))
        };
        assert_eq!(id().unwrap(), APPLICATION_ID);
        fs::remove_file(&path).unwrap();
        Store::open(&path).unwrap();
        assert_eq!(id().unwrap(), APPLICATION_ID);
        Store::open(&path).unwrap();
        let (_dir, blank) = file("VACUUM");
        Store::open(&blank).unwrap();
    }

    #[test]
    fn a_record_without_tables_is_read_as_empty_and_unchanged() {
        for sql in ["", "PRAGMA application_id = 1718579813"] {
            let (_dir, path) = file(sql);
            let before = fs::read(&path).unwrap();
            let store = Store::open_read_only(&path).unwrap().unwrap();
            assert!(store.runs().unwrap().is_empty());
            assert_eq!(fs::read(&path).unwrap(), before);
        }
    }

    #[test]
    fn a_record_from_before_the_number_is_opened_and_gets_it() {
        for version in 1..=2 {
            let (_dir, path) = file("");
            let mut connection = Connection::open(&path).unwrap();
            super::super::schema::migrate_to(version, &mut connection).unwrap();
            connection.pragma_update(None, "application_id", 0).unwrap();
            drop(connection);
            assert!(Store::open_read_only(&path).unwrap().is_some(), "schema {version}");
            Store::open(&path).unwrap();
            let id: i32 = Connection::open(&path)
                .unwrap()
                .pragma_query_value(None, "application_id", |row| row.get(0))
                .unwrap();
            assert_eq!(id, APPLICATION_ID, "schema {version}");
        }
    }
}
