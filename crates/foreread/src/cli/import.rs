//! `foreread import`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use results::{Report, Value};
use study::{RateUnit, Store, Table, Tables};
use sys::input::{self, InputKind};
use units::{Bytes, Kib};

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;

/// Take tables of throughput against read-ahead, measured by others, into the record
///
/// CSV: a column readahead_sectors or read_ahead_kib, a column for each workload (`8 readers`,
/// seq-1, anything_mb_s), and a column filesystem where there are several tables. JSON: as the
/// published tables of 2008 have it. Each table becomes a run, to report and compare like others.
///
/// What bonnie++, iozone, ioping, sysbench fileio, elbencho (CSV) and fio (JSON) print is taken as
/// well, pasted text included. They do not know at which read-ahead they ran, so say it, one for
/// each report in the files: --at 512K,2M. Without it the figures are only shown.
#[derive(Debug, Args)]
pub struct Import {
    /// The files; several together make one table; `-` is standard input
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// The read-ahead of each report of a benchmark, in their order, as in 512K,2M
    #[arg(long, value_name = "SIZE[,SIZE…]", value_delimiter = ',')]
    at: Vec<Bytes>,
    /// Print all figures of benchmarks' reports as JSON, and import nothing
    #[arg(long)]
    json: bool,
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
        let tables = match self.reports()? {
            Some(reports) if self.at.is_empty() || self.json => {
                return show(&reports, self.json, context);
            }
            Some(reports) => self.table_of(reports)?,
            None => self.tables()?,
        };
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

    /// The reports in all files, if they are of benchmarks.
    fn reports(&self) -> anyhow::Result<Option<Vec<Report>>> {
        let mut all = Vec::new();
        let mut tables = false;
        if self.file.iter().filter(|file| input::is_stdin(file)).count() > 1 {
            return Err(Usage("standard input (-) is named twice".to_owned()).into());
        }
        for file in &self.file {
            match study::reports(&input::read_text(file, InputKind::RESULTS)?) {
                Some(reports) => {
                    all.extend(reports.with_context(|| format!("cannot import {file:?}"))?);
                }
                None => tables = true,
            }
        }
        match (all.is_empty(), tables) {
            (true, _) if !self.at.is_empty() || self.json => {
                let known: Vec<&str> = results::FORMS.iter().map(|form| form.name).collect();
                let usage = format!("no report of {} is in it", known.join(", "));
                Err(Usage(usage).into())
            }
            (true, _) => Ok(None),
            (false, true) => {
                Err(Usage("reports of benchmarks and tables do not go together".to_owned()).into())
            }
            (false, false) => Ok(Some(all)),
        }
    }

    /// The reports as a table, each at its setting.
    fn table_of(&self, reports: Vec<Report>) -> anyhow::Result<Tables> {
        if self.at.len() != reports.len() {
            let (given, there) = (self.at.len(), reports.len());
            let usage = format!(
                "--at says {given} settings, but there are {there} reports: {}",
                reports.iter().map(|report| report.label.as_str()).collect::<Vec<_>>().join("; ")
            );
            return Err(Usage(report::clean::plain(&usage)).into());
        }
        let tool = reports.first().map_or("", |report| report.tool);
        let title =
            format!("{tool}, {}", self.file.first().map(|file| stem(file)).unwrap_or_default());
        let rows: Vec<(Kib, Report)> =
            self.at.iter().map(|size| size.to_kib_floor()).zip(reports).collect();
        let table = study::table_of(&rows, &title)?;
        Ok(Tables { tables: vec![(tool.to_owned(), table)], skipped: Vec::new() })
    }

    /// The tables that were asked for.
    fn tables(&self) -> anyhow::Result<Tables> {
        let [file] = self.file.as_slice() else {
            return Err(Usage("tables are imported one file at a time".to_owned()).into());
        };
        let text = input::read_text(file, InputKind::RESULTS)?;
        let mut tables = study::tables(&text, &stem(file), self.unit)
            .with_context(|| format!("cannot import {file:?}"))?;
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

/// Prints what reports say.
fn show(reports: &[Report], json: bool, context: &Context) -> anyhow::Result<Exit> {
    if json {
        output::print_json(&serde_json::json!({
            "schema_version": report::SCHEMA_VERSION,
            "reports": reports,
        }))?;
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for report in reports {
        let version = report.version.as_deref().unwrap_or("");
        let head = format!("{} {version} {}", report.tool, report.label);
        text.push_str(&format!("{}\n", report::clean::plain(head.trim())));
        for figure in &report.figures {
            let value = match figure.value {
                Value::Number(number) => number.to_string(),
                Value::TooFast => "too fast to measure".to_owned(),
                Value::Absent => continue,
            };
            text.push_str(&format!("  {:<32} {value}\n", figure.key()));
        }
    }
    output::print(&text)?;
    context
        .note("nothing was imported: say at which read-ahead each was measured, as in --at 128K");
    Ok(Exit::Fine)
}

/// The size that counts as the present one, where the table has it.
fn present(table: &Table, found: Option<Kib>) -> Option<Kib> {
    found.filter(|found| table.rows.contains(found))
}

/// The name that the title of what was in this file begins with.
fn stem(file: &Path) -> Cow<'_, str> {
    match input::is_stdin(file) {
        true => "standard input".into(),
        false => file.file_stem().unwrap_or_default().to_string_lossy(),
    }
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
