//! The tables and their migrations.
//!
//! Each entry of [`MIGRATIONS`] migrates the schema of its index to the next one; `user_version`
//! holds the version. Never edit released entries; add new ones.

use std::path::Path;

use rusqlite::Connection;

use super::owner::{self, APPLICATION_ID};
use super::sqlite;
use crate::error::StoreError;

const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        created_unix_s REAL NOT NULL,
        command TEXT NOT NULL CHECK (command IN ('sweep', 'tune')),
        target TEXT NOT NULL,
        plan TEXT NOT NULL CHECK (json_valid(plan)),
        seed INTEGER NOT NULL, -- the bits of an unsigned number
        grid_kib TEXT NOT NULL CHECK (json_valid(grid_kib)),
        found_kib INTEGER,
        workloads TEXT NOT NULL CHECK (json_valid(workloads)),
        identity TEXT NOT NULL CHECK (json_valid(identity)),
        dilation REAL NOT NULL,
        version TEXT NOT NULL,
        machine TEXT NOT NULL CHECK (json_valid(machine)),
        device_before TEXT NOT NULL CHECK (json_valid(device_before)),
        device_after TEXT CHECK (json_valid(device_after)),
        status TEXT NOT NULL CHECK (status IN ('running', 'interrupted', 'complete', 'failed')),
        error TEXT
    ) STRICT;
    CREATE INDEX run_by_plan ON run (plan, command);
    CREATE TABLE trial (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        block INTEGER NOT NULL,
        workload TEXT NOT NULL,
        settings TEXT NOT NULL CHECK (json_valid(settings)),
        started_unix_s REAL NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('clean', 'disturbed')),
        disturbances TEXT NOT NULL CHECK (json_valid(disturbances)),
        record TEXT NOT NULL CHECK (json_valid(record)),
        PRIMARY KEY (run, number)
    ) STRICT, WITHOUT ROWID;
",
    "
    -- Verbs come and go: which there are is the program's business, so the check of the command
    -- goes. SQLite makes a table anew for that.
    CREATE TABLE run_anew (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        created_unix_s REAL NOT NULL,
        command TEXT NOT NULL,
        target TEXT NOT NULL,
        plan TEXT NOT NULL CHECK (json_valid(plan)),
        seed INTEGER NOT NULL, -- the bits of an unsigned number
        grid_kib TEXT NOT NULL CHECK (json_valid(grid_kib)),
        found_kib INTEGER,
        workloads TEXT NOT NULL CHECK (json_valid(workloads)),
        identity TEXT NOT NULL CHECK (json_valid(identity)),
        dilation REAL NOT NULL,
        version TEXT NOT NULL,
        machine TEXT NOT NULL CHECK (json_valid(machine)),
        device_before TEXT NOT NULL CHECK (json_valid(device_before)),
        device_after TEXT CHECK (json_valid(device_after)),
        status TEXT NOT NULL CHECK (status IN ('running', 'interrupted', 'complete', 'failed')),
        error TEXT
    ) STRICT;
    INSERT INTO run_anew (id, created_unix_s, command, target, plan, seed, grid_kib, found_kib,
        workloads, identity, dilation, version, machine, device_before, device_after, status, error)
        SELECT id, created_unix_s, command, target, plan, seed, grid_kib, found_kib, workloads,
        identity, dilation, version, machine, device_before, device_after, status, error FROM run;
    -- The number of a deleted run is not given to another.
    DELETE FROM sqlite_sequence WHERE name = 'run_anew';
    INSERT INTO sqlite_sequence (name, seq)
        SELECT 'run_anew', seq FROM sqlite_sequence WHERE name = 'run';
    DROP TABLE run;
    ALTER TABLE run_anew RENAME TO run;
    CREATE INDEX run_by_plan ON run (plan, command);
",
];

/// Migrates the file to the latest schema, atomically.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    migrate_by(MIGRATIONS, connection, path)
}

/// Returns whether a record has no tables yet. Every schema with tables has all columns that are
/// read, so none needs a migration first.
///
/// # Errors
///
/// If the file is of another program or a later version.
pub(super) fn is_blank(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    owner::check(connection, path)?;
    version(MIGRATIONS, connection, path).map(|found| found == 0)
}

fn version(steps: &[&str], connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let found: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(sqlite(path))?;
    usize::try_from(found).ok().filter(|version| *version <= steps.len()).ok_or_else(|| {
        StoreError::TooNew { path: path.to_owned(), found, known: steps.len() as i64 }
    })
}

fn migrate_by(steps: &[&str], connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    if version(steps, connection, path)? == steps.len() && is_marked(connection, path)? {
        return Ok(());
    }
    // A migration may drop and recreate a table, which must not delete the rows that refer to it.
    connection.pragma_update(None, "foreign_keys", false).map_err(sqlite(path))?;
    // Immediate: if two processes open a new file, the second waits and finds it migrated.
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(sqlite(path))?;
    // Another program may have written to the file in the meantime.
    owner::check(&transaction, path)?;
    for step in &steps[version(steps, &transaction, path)?..] {
        transaction.execute_batch(step).map_err(sqlite(path))?;
    }
    transaction.pragma_update(None, "user_version", steps.len() as i64).map_err(sqlite(path))?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite(path))?;
    transaction.commit().map_err(sqlite(path))
}

/// Returns whether the file is marked as foreread's.
fn is_marked(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    let id = connection.pragma_query_value(None, "application_id", |row| row.get::<_, i64>(0));
    Ok(id.map_err(sqlite(path))? == i64::from(APPLICATION_ID))
}

/// Creates a record of an earlier schema; `age` is the number of migrations.
#[cfg(test)]
pub(super) fn migrate_to(age: usize, connection: &mut Connection) -> Result<(), StoreError> {
    migrate_by(&MIGRATIONS[..age], connection, Path::new("test.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "test.sqlite";

    fn tables(connection: &Connection) -> i64 {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('run', \
                   'trial')";
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn files_of_every_age_become_the_latest() {
        for age in 0..=MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate_by(&MIGRATIONS[..age], &mut connection, Path::new(PATH)).unwrap();
            migrate(&mut connection, Path::new(PATH)).unwrap();
            assert_eq!(tables(&connection), 2, "from schema {age}");
            assert_eq!(
                version(MIGRATIONS, &connection, Path::new(PATH)).unwrap(),
                MIGRATIONS.len()
            );
        }
    }

    #[test]
    fn a_later_step_keeps_what_is_there() {
        let mut connection = Connection::open_in_memory().unwrap();
        let first = ["CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (7);"];
        let both = [first[0], "ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 1;"];
        migrate_by(&first, &mut connection, Path::new(PATH)).unwrap();
        migrate_by(&both, &mut connection, Path::new(PATH)).unwrap();
        migrate_by(&both, &mut connection, Path::new(PATH)).unwrap();
        let row = connection.query_row("SELECT a, b FROM t", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        assert_eq!(row.unwrap(), (7, 1));
    }

    #[test]
    fn runs_of_the_first_schema_keep_their_trials_and_their_numbers() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        migrate_by(&MIGRATIONS[..1], &mut connection, Path::new(PATH)).unwrap();
        let insert = "INSERT INTO run (created_unix_s, command, target, plan, seed, grid_kib, \
                      workloads, identity, dilation, version, machine, device_before, status) \
                      VALUES (0, 'sweep', '/', '{}', 1, '[]', '[]', '{}', 1, '0', '{}', '{}', \
                      'complete')";
        connection.execute_batch(&format!("{insert}; {insert}; {insert};")).unwrap();
        connection
            .execute_batch(
                "DELETE FROM run WHERE id = 3;
                 INSERT INTO trial VALUES (2, 0, 0, 'seq-1', '{}', 0, 'clean', '[]', '{}');",
            )
            .unwrap();
        migrate(&mut connection, Path::new(PATH)).unwrap();
        let trials = connection.query_row("SELECT count(*) FROM trial", [], |row| row.get(0));
        assert_eq!(trials, Ok(1i64));
        connection.pragma_update(None, "foreign_keys", true).unwrap();
        connection.execute_batch(&insert.replace("sweep", "import")).unwrap();
        let last = connection.query_row("SELECT max(id) FROM run", [], |row| row.get(0));
        assert_eq!(last, Ok(4i64), "the number of the deleted run is not used again");
        connection.execute_batch("DELETE FROM run WHERE id = 2").unwrap();
        let trials = connection.query_row("SELECT count(*) FROM trial", [], |row| row.get(0));
        assert_eq!(trials, Ok(0i64), "trials still go with their run");
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE run (a INTEGER) STRICT;", "CREATE TABLE run (b INTEGER);"];
        assert!(migrate_by(&steps, &mut connection, Path::new(PATH)).is_err());
        assert_eq!(tables(&connection), 0);
        assert_eq!(version(&steps, &connection, Path::new(PATH)).unwrap(), 0);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        let error = migrate(&mut connection, Path::new(PATH)).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { found: 99, .. }));
        assert!(is_blank(&connection, Path::new(PATH)).is_err());
    }
}
