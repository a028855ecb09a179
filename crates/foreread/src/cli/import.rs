//! `foreread import`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bench::parse::{FigureValue, ParsedReport};
use clap::Args;
use study::{ImportTable, RateUnit, Store, Tables};
use sys::input::{self, InputKind};
use units::{Bytes, Kib};

use super::Context;
use crate::exit::{Exit, Usage, bail_usage, usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread import table.csv --title \"array of 2008\"
  foreread import bonnie-128.txt bonnie-1m.txt --read-ahead 128K,1M
  foreread import fio.json --json      print the figures, import nothing";

/// Import results that other programs measured
///
/// CSV tables have a column readahead_sectors or read_ahead_kib, a column for each workload
/// (`8 readers`, seq-1, anything_mb_s), and a column filesystem if the file holds several tables.
/// JSON has the form of the tables published in 2008. Each table becomes a run, which `report` and
/// `compare` accept like any other.
///
/// The output of bonnie++, iozone, ioping, sysbench fileio, elbencho (CSV) and fio (JSON) can be
/// imported, too, also as pasted text. It does not contain the read-ahead setting, so give one for
/// each report: --read-ahead 512K,2M. Without --read-ahead, the figures are only printed.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ImportArgs {
    /// Files to import; several files make one table; `-` is standard input
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// The read-ahead at which each benchmark report was measured, in the order of the reports
    #[arg(long, alias = "at", value_name = "SIZE[,SIZE…]", value_delimiter = ',')]
    read_ahead: Vec<Bytes>,
    /// Print all figures of benchmark reports as JSON; import nothing
    #[arg(long)]
    json: bool,
    /// Import only these tables of the file
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    table: Vec<String>,
    /// Spread of repeated measurements in percent, if known; the figures then have intervals
    #[arg(long, value_name = "PERCENT")]
    spread: Option<f64>,
    /// Unit of rates whose heading names none: MiB/s, MB/s (a million bytes), KiB/s or kB/s; all
    /// rates are shown in MiB/s
    #[arg(long, value_name = "UNIT")]
    unit: Option<RateUnit>,
    /// The read-ahead that the system had when this was measured, as in 128K or 256s
    #[arg(long, alias = "now", value_name = "SIZE")]
    current: Option<Bytes>,
    /// Title of the run; default: the name of the file or the title of the table
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Change nothing; print what would be imported
    #[arg(short = 'n', long)]
    dry_run: bool,
}

impl ImportArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let spread = self.spread()?;
        let found = self.current.map(Bytes::to_kib_floor);
        let tables = match self.reports()? {
            Some(reports) if self.read_ahead.is_empty() || self.json => {
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
                Err(usage!("--spread {percent}: must be between 0 and 100 percent"))
            }
            percent => Ok(percent.map(|percent| percent / 100.0)),
        }
    }

    /// Reads the benchmark reports in all files; `None` if the files contain tables.
    fn reports(&self) -> anyhow::Result<Option<Vec<ParsedReport>>> {
        let mut all = Vec::new();
        let mut tables = false;
        if self.file.iter().filter(|file| input::is_stdin(file)).count() > 1 {
            bail_usage!("standard input (-) is given twice");
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
            (true, _) if !self.read_ahead.is_empty() || self.json => {
                let known: Vec<&str> = bench::parse::FORMS.iter().map(|form| form.name).collect();
                Err(usage!("no report of {} found", known.join(", ")))
            }
            (true, _) => Ok(None),
            (false, true) => {
                Err(usage!("benchmark reports and tables cannot be imported together"))
            }
            (false, false) => Ok(Some(all)),
        }
    }

    /// Makes a table of the reports, each with its setting.
    fn table_of(&self, reports: Vec<ParsedReport>) -> anyhow::Result<Tables> {
        if self.read_ahead.len() != reports.len() {
            let (given, there) = (self.read_ahead.len(), reports.len());
            let usage = format!(
                "--read-ahead has {given} values for {there} reports: {}",
                reports.iter().map(|report| report.label.as_str()).collect::<Vec<_>>().join("; ")
            );
            return Err(Usage(report::clean::plain(&usage)).into());
        }
        let tool = reports.first().map_or("", |report| report.tool);
        let title =
            format!("{tool}, {}", self.file.first().map(|file| stem(file)).unwrap_or_default());
        let rows: Vec<(Kib, ParsedReport)> =
            self.read_ahead.iter().map(|size| size.to_kib_floor()).zip(reports).collect();
        let table = study::table_of(&rows, &title)?;
        Ok(Tables { tables: vec![(tool.to_owned(), table)], skipped: Vec::new() })
    }

    /// Reads the requested tables.
    fn tables(&self) -> anyhow::Result<Tables> {
        let [file] = self.file.as_slice() else {
            bail_usage!("tables are imported one file at a time");
        };
        let text = input::read_text(file, InputKind::RESULTS)?;
        let mut tables = study::tables(&text, &stem(file), self.unit)
            .with_context(|| format!("cannot import {file:?}"))?;
        if self.table.is_empty() {
            return Ok(tables);
        }
        let known: Vec<String> = tables.tables.iter().map(|(name, _)| name.clone()).collect();
        if let Some(missing) = self.table.iter().find(|name| !known.contains(name)) {
            bail_usage!("the file has no table {missing:?}: {}", known.join(", "));
        }
        tables.tables.retain(|(name, _)| self.table.contains(name));
        tables.skipped.clear();
        Ok(tables)
    }
}

/// Prints the figures of reports.
fn show(reports: &[ParsedReport], json: bool, context: &Context) -> anyhow::Result<Exit> {
    if json {
        output::print_versioned(&serde_json::json!({
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
                FigureValue::Number(number) => number.to_string(),
                FigureValue::TooFast => "too fast to measure".to_owned(),
                FigureValue::Absent => continue,
            };
            text.push_str(&format!("  {:<32} {value}\n", figure.key()));
        }
    }
    output::print(&text)?;
    context
        .note("nothing was imported: give the read-ahead of each report, as in --read-ahead 128K");
    Ok(Exit::Fine)
}

/// Returns the current setting if the table contains it.
fn present(table: &ImportTable, found: Option<Kib>) -> Option<Kib> {
    found.filter(|found| table.rows.contains(found))
}

/// Returns the title prefix for the tables of this file.
fn stem(file: &Path) -> Cow<'_, str> {
    match input::is_stdin(file) {
        true => "standard input".into(),
        false => file.file_stem().unwrap_or_default().to_string_lossy(),
    }
}

fn describe(name: &str, table: &ImportTable) -> String {
    let figures = table.columns.iter().flat_map(|column| &column.mib_s).flatten().count();
    let names: Vec<&str> = table.columns.iter().map(|column| column.workload.as_str()).collect();
    report::clean::plain(&format!(
        "{name}: {} ({figures} figures of {})",
        table.title,
        names.join(", ")
    ))
}
