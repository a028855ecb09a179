//! `foreread import`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use study::{RateUnit, Store, Table, Tables};
use units::{Bytes, Kib};

use super::Context;
use crate::exit::{Exit, Usage};

/// Take tables of throughput against read-ahead, measured by others, into the record
///
/// CSV: a column readahead_sectors or read_ahead_kib, a column for each workload (`8 readers`,
/// seq-1, anything_mb_s), and a column filesystem where there are several tables. JSON: as the
/// published tables of 2008 have it. Each table becomes a run, to report and compare like others.
#[derive(Debug, Args)]
pub struct Import {
    /// The file
    file: PathBuf,
    /// Only these tables, by the names that they have in the file
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    table: Vec<String>,
    /// How well figures repeat, if their author says so, in percent: gives them intervals
    #[arg(long, value_name = "PERCENT")]
    spread: Option<f64>,
    /// The unit of rates whose heading does not tell: MiB/s, MB/s (a million bytes), KiB/s or kB/s;
    /// all are shown in MiB/s
    #[arg(long, value_name = "UNIT")]
    unit: Option<RateUnit>,
    /// The read-ahead that counts as the present one, as in 128K or 256s
    #[arg(long, value_name = "SIZE")]
    now: Option<Bytes>,
    /// What was measured, instead of the file's name or the table's title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Only say what would be imported
    #[arg(short = 'n', long)]
    dry_run: bool,
}

impl Import {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let spread = self.spread()?;
        let found = self.now.map(Bytes::to_kib_floor);
        let tables = self.tables()?;
        for skipped in &tables.skipped {
            context.note(&format!("left out {}", report::clean::plain(skipped)));
        }
        let mut store = None;
        for (name, mut table) in tables.tables {
            if let Some(title) = &self.title {
                table.title.clone_from(title);
            }
            table.spread = spread.or(table.spread);
            let what = describe(&name, &table);
            if self.dry_run {
                context.note(&format!("would import {what}"));
                continue;
            }
            let store = match &mut store {
                Some(store) => store,
                None => store.insert(Store::open(&context.store_path())?),
            };
            let run = study::import(store, &table, present(&table, found))?;
            context.note(&format!("run {run}: {what}"));
        }
        Ok(Exit::Fine)
    }

    fn spread(&self) -> anyhow::Result<Option<f64>> {
        match self.spread {
            Some(percent) if !(percent > 0.0 && percent < 100.0) => {
                Err(Usage(format!("--spread {percent}: between 0 and 100 percent")).into())
            }
            percent => Ok(percent.map(|percent| percent / 100.0)),
        }
    }

    /// The tables that were asked for.
    fn tables(&self) -> anyhow::Result<Tables> {
        let text = read(&self.file)?;
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        let mut tables = study::tables(&text, &stem, self.unit)
            .with_context(|| format!("cannot import {:?}", self.file))?;
        if self.table.is_empty() {
            return Ok(tables);
        }
        let known: Vec<String> = tables.tables.iter().map(|(name, _)| name.clone()).collect();
        if let Some(missing) = self.table.iter().find(|name| !known.contains(name)) {
            let usage = format!("{missing:?} is no table of the file: {}", known.join(", "));
            return Err(Usage(usage).into());
        }
        tables.tables.retain(|(name, _)| self.table.contains(name));
        tables.skipped.clear();
        Ok(tables)
    }
}

/// The size that counts as the present one, where the table has it.
fn present(table: &Table, found: Option<Kib>) -> Option<Kib> {
    found.filter(|found| table.rows.contains(found))
}

fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file)
        .map_err(|error| Usage(format!("cannot read {file:?}: {error}")).into())
}

fn describe(name: &str, table: &Table) -> String {
    let figures = table.columns.iter().flat_map(|column| &column.mib_s).flatten().count();
    let names: Vec<&str> = table.columns.iter().map(|column| column.workload.as_str()).collect();
    report::clean::plain(&format!(
        "{name}: {} ({figures} figures of {})",
        table.title,
        names.join(", ")
    ))
}
