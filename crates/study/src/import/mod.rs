//! Imports published figures as runs of the record.
//!
//! A table has a row for each read-ahead value and a column for each workload. A table becomes a
//! run with one trial for each cell, so that all commands that show or compare runs also work for
//! it. Values that the author did not measure or state (repeats, conditions) stay empty. The
//! figures have an interval only if the author states a spread.

mod csv;
mod json;
mod results;
mod unit;

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use thiserror::Error;
use units::{Kib, Nanos};
use workload::Workload;

pub use self::results::{reports, table_of};
use crate::Grid;
use crate::error::StoreError;
use crate::plan::{Plan, PlannedWorkload, Repeats};
use crate::run_id::RunId;
use crate::settings::CellSettings;
use crate::store::Store;
use crate::target::Target;
use crate::trial::{Trial, TrialFigures, TrialStatus};

pub use unit::RateUnit;

/// The reason why a file cannot be imported.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ImportError {
    /// The file is neither JSON nor CSV.
    #[error("this is neither CSV nor JSON of published tables: {0}")]
    Format(String),
    /// A column with an unknown unit.
    #[error("column {column:?}: {problem}")]
    Column { column: String, problem: String },
    /// A cell that is not a number.
    #[error("row {row}, column {column:?}: {text:?} is not a number of 0 or more")]
    Cell {
        /// Row number, counted from 1 without the heading.
        row: usize,
        column: String,
        text: String,
    },
    /// A value that is not a valid read-ahead.
    #[error("row {row}, column {column:?}: {text} is not a read-ahead value: must be 0 to 1 TiB")]
    Setting {
        /// Row number, counted from 1 without the heading.
        row: usize,
        column: String,
        text: String,
    },
    /// An unknown unit.
    #[error("{0:?} is not a unit of throughput: use MiB/s, MB/s, KiB/s or kB/s")]
    Unit(String),
    #[error("no figures found")]
    Empty,
}

impl units::Classified for ImportError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}

/// A column of a table: the throughput of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    pub workload: String,
    /// Number of readers according to the heading; 1 if it states none.
    pub readers: u32,
    /// MiB/s for each row; `None` for an empty cell.
    pub mib_s: Vec<Option<f64>>,
}

/// A table of throughputs against read-ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportTable {
    /// The author's title.
    pub title: String,
    pub rows: Vec<Kib>,
    pub columns: Vec<TableColumn>,
    /// Relative spread that the author states: 0.02 for ±2 %; `None` without a statement.
    pub spread: Option<f64>,
    /// The unit of the published rates; [`TableColumn::mib_s`] is already converted.
    pub published: RateUnit,
    /// Conditions, source and warnings about units, as far as known.
    pub about: Json,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    /// The tables with their identifiers in the file.
    pub tables: Vec<(String, ImportTable)>,
    /// The skipped tables, with the reasons.
    pub skipped: Vec<String>,
}

/// Parses a file of tables: JSON in foreread's format, or CSV. `name` is the title of tables
/// without a title, `unit` the unit of rates whose heading has none.
pub fn tables(text: &str, name: &str, unit: Option<RateUnit>) -> Result<Tables, ImportError> {
    let found = match text.trim_start().starts_with(['{', '[']) {
        true => json::tables(text, unit)?,
        false => csv::tables(text, name, unit)?,
    };
    if found.tables.is_empty() && found.skipped.is_empty() {
        return Err(ImportError::Empty);
    }
    Ok(found)
}

/// Returns the unit of a read-ahead column in KiB, from its heading.
fn setting_unit(heading: &str) -> Option<f64> {
    let heading = heading.trim().to_ascii_lowercase().replace(['-', ' ', '(', ')'], "_");
    let about_read_ahead =
        ["readahead", "read_ahead", "setra", "ra"].iter().any(|word| heading.starts_with(word));
    if !about_read_ahead {
        return None;
    }
    let units =
        [("sectors", 0.5), ("kib", 1.0), ("kb", 1.0), ("mib", 1024.0), ("bytes", 1.0 / 1024.0)];
    let unit = units.iter().find(|(unit, _)| heading.trim_end_matches('_').ends_with(unit));
    // `blockdev` counts 512-byte sectors on every disk.
    unit.map(|(_, kib)| *kib).or_else(|| (heading == "setra").then_some(0.5))
}

/// Maximum read-ahead of a table, in KiB: 1 TiB. A larger value is probably a typing error.
const LARGEST_SETTING_KIB: f64 = (1u64 << 30) as f64;

/// Converts a setting of a table; `None` if it is out of range.
fn setting(size: f64, unit_kib: f64) -> Option<Kib> {
    let kib = (size * unit_kib).round();
    (0.0..=LARGEST_SETTING_KIB).contains(&kib).then(|| Kib::new(kib as u64))
}

/// Returns workload and readers of a heading. Sequential readers get the name of the workload of
/// the suite, to make runs comparable; other names are kept, with `-` for invalid characters.
fn column_of(heading: &str) -> (String, u32) {
    let plain = heading.trim().trim_start_matches("rate_").to_ascii_lowercase();
    let number: String = plain.chars().take_while(char::is_ascii_digit).collect();
    if plain.contains("reader")
        && let Ok(readers) = number.parse::<u32>()
        && readers > 0
    {
        return (format!("seq-{readers}"), readers);
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = heading.trim().chars().map(letter).take(64).collect();
    let readers = name.strip_prefix("seq-").and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    (name, readers.unwrap_or(1))
}

impl TableColumn {
    fn new(heading: &str, mib_s: Vec<Option<f64>>) -> Self {
        let (workload, readers) = column_of(heading);
        Self { workload, readers, mib_s }
    }

    fn planned(&self) -> PlannedWorkload {
        let named = Workload::named(&self.workload).or_else(|_| Workload::named("seq-1"));
        let base = named.unwrap_or_else(|_| {
            Workload::new(&self.workload, workload::Pattern::Sequential, units::Bytes::from_kib(4))
        });
        let readers = self.readers.clamp(1, 1024);
        PlannedWorkload::goal(Workload { name: self.workload.clone(), readers, ..base })
    }
}

impl ImportTable {
    /// Returns a plan that describes the table.
    fn plan(&self, grid: &[Kib]) -> Plan {
        let mut plan = Plan::new(Target::Imported(self.title.clone()));
        plan.workloads = self.columns.iter().map(TableColumn::planned).collect();
        plan.read_ahead = Grid::Values(grid.to_vec());
        plan.repeats = Repeats::exactly(1);
        plan.trial = Nanos::ZERO;
        plan.seed = Some(0);
        plan
    }

    fn grid(&self) -> Vec<Kib> {
        self.rows.iter().copied().collect::<BTreeSet<Kib>>().into_iter().collect()
    }

    /// Returns one trial for each figure; repeated rows of a setting count as further blocks.
    fn trials(&self) -> Vec<Trial> {
        let mut trials: Vec<Trial> = Vec::new();
        for column in &self.columns {
            for (row, (kib, mib_s)) in self.rows.iter().zip(&column.mib_s).enumerate() {
                let Some(mib_s) = *mib_s else { continue };
                let block = self.rows[..row].iter().filter(|other| *other == kib).count();
                trials.push(Trial {
                    block: u32::try_from(block).unwrap_or(u32::MAX),
                    order: u32::try_from(trials.len()).unwrap_or(u32::MAX),
                    settings: CellSettings::read_ahead(*kib),
                    workload: column.workload.clone(),
                    started_unix_s: 0.0,
                    status: TrialStatus::Clean,
                    disturbances: Vec::new(),
                    figures: TrialFigures {
                        throughput_mib_s: mib_s,
                        amplification: None,
                        device_requests: None,
                        device_bytes: None,
                        refaulted: None,
                        latency_us: None,
                        random_latency_us: None,
                        measured_seconds: 0.0,
                        spread: self.spread,
                    },
                });
            }
        }
        trials
    }
}

/// Stores a table as a run. `found` is the read-ahead value that counts as the current one.
pub fn import(
    store: &mut Store,
    table: &ImportTable,
    found: Option<Kib>,
) -> Result<RunId, StoreError> {
    let grid = table.grid();
    let plan = table.plan(&grid);
    let figures = table.columns.iter().flat_map(|column| column.mib_s.iter().flatten());
    let highest = figures.copied().fold(0.0, f64::max) / table.published.mib_s();
    let note = table.published.note(highest);
    let machine = json!({ "imported": table.about, "unit_note": note });
    store.import(&plan, &grid, found, &machine, &table.trials())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{VerdictKind, analyse};

    const PUBLISHED: &str = include_str!("../../tests/data/published-tables.json");

    fn published(id: &str) -> ImportTable {
        let tables = tables(PUBLISHED, "x", None).unwrap().tables;
        tables.into_iter().find(|(name, _)| name == id).unwrap().1
    }

    #[test]
    fn headings_say_units_and_workloads() {
        assert_eq!(setting_unit("readahead_sectors"), Some(0.5));
        assert_eq!(setting_unit("read-ahead (KiB)"), Some(1.0));
        assert_eq!(setting_unit("setra"), Some(0.5));
        assert_eq!(setting_unit("read_ahead"), None, "without a unit nobody knows");
        assert_eq!(setting_unit("rate_1_reader"), None);
        assert_eq!(column_of("rate_8_readers"), ("seq-8".to_owned(), 8));
        assert_eq!(column_of("1 reader"), ("seq-1".to_owned(), 1));
        assert_eq!(column_of("pg <count>"), ("pg--count-".to_owned(), 1));
    }

    #[test]
    fn the_published_tables_become_runs_with_verdicts() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
        let table = published("carey-perc6-xfs-front10");
        assert_eq!((table.spread, table.rows.len()), (Some(0.02), 21));
        let id = import(&mut store, &table, Some(Kib::new(128))).unwrap();
        let run = store.load(id).unwrap();
        assert_eq!(run.trials.len(), 42);
        assert_eq!(run.summary.target, table.title);
        let analysis = analyse(&run);
        let eight = &analysis.per_workload[0];
        assert_eq!((eight.workload.as_str(), eight.kind), ("seq-8", VerdictKind::Better));
        assert_eq!(eight.economical_kib, Some(Kib::new(8192)));
        assert_eq!(eight.best_kib, Some(Kib::new(49152)));
        let gain = eight.best_gain.as_ref().unwrap();
        assert!((gain.ratio.median - 651.0 / 88.0).abs() < 0.01 && gain.ratio.is_bounded());
        // The rates that the author labelled MiB/s in 2008 were in units of 10⁶ bytes/s.
        let rate = |kib| {
            let trials = run.trials.iter().filter(|trial| trial.workload == "seq-8");
            let at = |trial: &&Trial| trial.settings.read_ahead == Kib::new(kib);
            trials.clone().find(at).unwrap().figures.throughput_mib_s
        };
        assert!((rate(49152) * 1.048_576 - 651.0).abs() < 1e-6, "{}", rate(49152));
        let said = "651 MB/s is 621 MiB/s";
        assert!(analysis.notes.iter().any(|note| note.ends_with(said)), "{:?}", analysis.notes);
    }

    #[test]
    fn figures_without_a_spread_have_no_interval() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
        let table = ImportTable { spread: None, ..published("carey-perc6-ext3-full") };
        let id = import(&mut store, &table, None).unwrap();
        let analysis = analyse(&store.load(id).unwrap());
        assert!(analysis.cells.iter().all(|cell| !cell.throughput_mib_s.is_bounded()));
    }

    #[test]
    fn headings_with_parentheses_are_read() {
        for (text, name, mib_s) in [
            ("read_ahead_kib,x(MB/s)\n128,100\n", "x", 100.0 / 1.048_576),
            ("read-ahead (KiB),x (best\n128,100\n", "x--best", 100.0),
            (
                r#"{"tables": [{"id": "t", "columns": ["read_ahead_kib", "x(MiB/s)"],
                    "rows": [[128, 100]]}]}"#,
                "x",
                100.0,
            ),
            (
                r#"{"tables": [{"id": "t", "columns": ["read_ahead_kib", "x(best)"],
                    "rows": [[128, 100]]}]}"#,
                "x-best-",
                100.0,
            ),
        ] {
            let found = tables(text, "file(1)", None).unwrap();
            assert_eq!(found.skipped, Vec::<String>::new(), "{text}");
            let column = &found.tables[0].1.columns[0];
            assert_eq!((column.workload.as_str(), column.mib_s[0]), (name, Some(mib_s)), "{text}");
        }
    }

    #[test]
    fn what_is_no_table_is_refused_or_named() {
        assert!(matches!(tables("{\"a\": 1}", "x", None), Err(ImportError::Format(_))));
        assert!(matches!(tables("", "x", None), Err(ImportError::Empty)));
        let all = tables(PUBLISHED, "x", None).unwrap();
        assert!(all.skipped.iter().any(|line| line.starts_with("voras-bonnie")), "{all:?}");
    }
}
