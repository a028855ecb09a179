//! Converts between database rows and types.

use std::cell::RefCell;
use std::path::Path;

use rusqlite::{Connection, Params, Row, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::Kib;

use super::{NewRun, Run, RunClaim, RunStatus, RunSummary, sqlite};
use crate::error::StoreError;
use crate::run_id::RunId;
use crate::seed::unix_seconds;
use crate::trial::{Trial, TrialFigures, TrialRecord};

/// The columns that [`summary`] reads.
pub(super) const SUMMARY: &str = "SELECT run.id, created_unix_s, command, target, status, error, \
     (SELECT count(*) FROM trial WHERE trial.run = run.id), version FROM run";

/// Returns a value as JSON text. All values are plain types of this crate, which cannot fail.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the name of an enum variant without fields: its JSON text without the quotes.
pub(super) fn word(value: &impl Serialize) -> String {
    json(value).trim_matches('"').to_owned()
}

/// Builds errors that name the run.
struct RowErrors<'a> {
    path: &'a Path,
    run: RunId,
}

impl RowErrors<'_> {
    fn say(&self, what: impl std::fmt::Display) -> StoreError {
        let what = what.to_string();
        StoreError::Corrupt { path: self.path.to_owned(), run: self.run, what }
    }

    fn read<T: DeserializeOwned>(&self, column: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|error| self.say(format!("column {column}: {error}")))
    }
}

/// Applies `read` to each row of a query.
pub(super) fn each<T>(
    connection: &Connection,
    path: &Path,
    sql: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let say = sqlite(path);
    let mut statement = connection.prepare(sql).map_err(&say)?;
    let mut rows = statement.query(values).map_err(&say)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(&say)? {
        all.push(read(row)?);
    }
    Ok(all)
}

/// Reads one line of the list of runs.
pub(super) fn summary(row: &Row<'_>, path: &Path) -> Result<RunSummary, StoreError> {
    let sqlite = sqlite(path);
    let id = RunId(row.get(0).map_err(&sqlite)?);
    let doubt = RowErrors { path, run: id };
    let text = |column: usize| row.get::<_, String>(column).map_err(&sqlite);
    let quoted = |column: usize| text(column).map(|word| format!("\"{word}\""));
    let mut status: RunStatus = doubt.read("status", &quoted(4)?)?;
    if status == RunStatus::Running && !RunClaim::is_taken(path, id) {
        status = RunStatus::Interrupted;
    }
    Ok(RunSummary {
        id,
        created_unix_s: row.get(1).map_err(&sqlite)?,
        command: doubt.read("command", &quoted(2)?)?,
        target: text(3)?,
        status,
        error: row.get(5).map_err(&sqlite)?,
        trials: row.get(6).map_err(&sqlite)?,
        version: text(7)?,
    })
}

/// Receives the full record of each trial; imported trials have none.
pub(super) type RecordVisitor<'a> = dyn FnMut(&Trial, &TrialRecord) + 'a;

pub(super) fn load(
    connection: &Connection,
    path: &Path,
    run: RunId,
    look: &mut RecordVisitor<'_>,
) -> Result<Run, StoreError> {
    let say = sqlite(path);
    let doubt = RowErrors { path, run };
    let sql = format!("{SUMMARY} WHERE run.id = ?1");
    let summary = each(connection, path, &sql, params![run.0], |row| summary(row, path))?
        .pop()
        .ok_or_else(|| StoreError::NoRun { path: path.to_owned(), run })?;
    let sql = "SELECT plan, grid_kib, workloads, identity, machine, device_before, \
               ifnull(device_after, 'null'), seed, found_kib, dilation FROM run WHERE id = ?1";
    let row = connection.query_row(sql, params![run.0], |row| {
        let texts: [String; 7] = [
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
            row.get(6)?,
        ];
        let found: Option<i64> = row.get(8)?;
        Ok((texts, row.get::<_, i64>(7)?, found, row.get(9)?))
    });
    let ([plan, grid, workloads, identity, machine, before, after], seed, found, dilation) =
        row.map_err(&say)?;
    Ok(Run {
        summary,
        plan: doubt.read("plan", &plan)?,
        seed: seed.cast_unsigned(),
        grid: doubt.read("grid_kib", &grid)?,
        found: found.map(|kib| Kib::new(kib.cast_unsigned())),
        workloads: doubt.read("workloads", &workloads)?,
        dilation,
        identity: doubt.read("identity", &identity)?,
        machine: doubt.read("machine", &machine)?,
        device_before: doubt.read("device_before", &before)?,
        device_after: doubt.read("device_after", &after)?,
        trials: trials(connection, &doubt, look)?,
    })
}

/// The record of a trial, measured or imported.
enum Stored {
    Measured(Box<TrialRecord>),
    Imported(TrialFigures),
}

impl Stored {
    /// Chooses the kind by the start of the text, so that errors refer to that kind.
    fn read(text: &str, doubt: &RowErrors<'_>) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Import {
            imported: TrialFigures,
        }
        if text.starts_with("{\"imported\"") {
            let import: Import = doubt.read("record", text)?;
            return Ok(Self::Imported(import.imported));
        }
        Ok(Self::Measured(doubt.read("record", text)?))
    }
}

fn trials(
    connection: &Connection,
    doubt: &RowErrors<'_>,
    look: &mut RecordVisitor<'_>,
) -> Result<Vec<Trial>, StoreError> {
    let say = sqlite(doubt.path);
    let sql = "SELECT number, block, workload, settings, started_unix_s, status, disturbances, \
               record FROM trial WHERE run = ?1 ORDER BY number";
    let look = RefCell::new(look);
    each(connection, doubt.path, sql, params![doubt.run.0], |row| {
        let text = |column: usize| row.get::<_, String>(column).map_err(&say);
        let stored = Stored::read(&text(7)?, doubt)?;
        let trial = Trial {
            order: row.get(0).map_err(&say)?,
            block: row.get(1).map_err(&say)?,
            workload: text(2)?,
            settings: doubt.read("settings", &text(3)?)?,
            started_unix_s: row.get(4).map_err(&say)?,
            status: doubt.read("status", &format!("\"{}\"", text(5)?))?,
            disturbances: doubt.read("disturbances", &text(6)?)?,
            figures: match &stored {
                Stored::Measured(record) => record.figures(),
                Stored::Imported(figures) => figures.clone(),
            },
        };
        if let Stored::Measured(record) = &stored {
            (look.borrow_mut())(&trial, record);
        }
        Ok(trial)
    })
}

pub(super) fn insert_run(connection: &Connection, new: &NewRun<'_>) -> rusqlite::Result<usize> {
    let sql = "INSERT INTO run (created_unix_s, command, target, plan, seed, grid_kib, found_kib, \
               workloads, identity, dilation, version, machine, device_before, status) VALUES (?1, \
               ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 'running')";
    let facts = new.facts;
    connection.execute(
        sql,
        params![
            unix_seconds(),
            word(&new.command),
            new.plan.target.to_string(),
            json(new.plan),
            new.seed.cast_signed(),
            json(&facts.grid),
            facts.found.map(|kib| kib.get().cast_signed()),
            json(&facts.workloads),
            facts.identity.to_string(),
            facts.dilation,
            env!("CARGO_PKG_VERSION"),
            facts.machine.to_string(),
            facts.device.to_string(),
        ],
    )
}

/// Stores a trial that was measured elsewhere, of which only the figures are known.
pub(super) fn insert_import(
    connection: &Connection,
    run: RunId,
    trial: &Trial,
) -> rusqlite::Result<()> {
    insert(connection, run, trial, &json(&serde_json::json!({ "imported": trial.figures })))
}

pub(super) fn insert_trial(
    connection: &Connection,
    run: RunId,
    trial: &Trial,
    record: &TrialRecord,
) -> rusqlite::Result<()> {
    insert(connection, run, trial, &json(record))
}

fn insert(
    connection: &Connection,
    run: RunId,
    trial: &Trial,
    record: &str,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO trial (run, number, block, workload, settings, started_unix_s, status, \
               disturbances, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    connection.execute(
        sql,
        params![
            run.0,
            trial.order,
            trial.block,
            trial.workload,
            json(&trial.settings),
            trial.started_unix_s,
            word(&trial.status),
            json(&trial.disturbances),
            record,
        ],
    )?;
    Ok(())
}
