//! `foreread report`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use report::{Named, ReportInput, RunReport, TrialDetails};
use study::{Analysis, Run, Store, Target};
use sys::input::{self, InputKind};

use super::Context;
use super::runs::number;
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread report last -o page.html
  foreread report 3=before 7=after -o page.html
  foreread report 3 -o trials.parquet";

/// Write runs to one HTML file: charts, tables, trials, provenance
///
/// The file is self-contained: it opens without a server, loads nothing from the network, and can
/// be sent by mail. For several runs, it plots all of them together and compares each with the
/// first.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReportArgs {
    /// Run numbers, or `last`. FILE:NUMBER is a run from another record, `-` the last run of the
    /// record on standard input. 3=NAME shows run 3 under this name
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
    /// The file to write; `-` for stdout. A file that ends in .parquet gets one row for each trial
    #[arg(id = "result_file", short = 'o', long = "output", value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// For simulated runs: also plot the limits (the lower bound, a read-ahead that knows the
    /// future, the best sequence of settings), which takes a while to compute
    #[arg(long)]
    limits: bool,
}

/// Name of the copy of a record from standard input.
const SPOOLED: &str = "record-from-standard-input.sqlite";

/// Copies a record from standard input to a temporary directory.
fn spool() -> anyhow::Result<tempfile::TempDir> {
    let content = input::read(Path::new("-"), InputKind::RECORD)?;
    let dir = tempfile::tempdir().context("cannot create a temporary directory")?;
    let path = dir.path().join(SPOOLED);
    std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(dir)
}

/// A run with the data that a page needs.
pub struct Opened {
    pub run: Run,
    pub analysis: Analysis,
    pub trial_details: TrialDetails,
    pub name: Option<String>,
}

impl Opened {
    /// Reads and analyses a run.
    pub fn read(word: &str, context: &Context) -> anyhow::Result<Self> {
        let (word, name) = match word.split_once('=') {
            Some((word, name)) => (word, Some(name.to_owned())),
            None => (word, None),
        };
        let (path, word) = match word.rsplit_once(':') {
            Some((file, run)) => (PathBuf::from(file), run),
            None if word == "-" => (PathBuf::from(word), "last"),
            None => (context.store_path(), word),
        };
        // SQLite must seek, which is impossible in a pipe.
        let spooled = input::is_stdin(&path).then(spool).transpose()?;
        let path = spooled.as_ref().map_or(path, |dir| dir.path().join(SPOOLED));
        let Some(store) = Store::open_read_only(&path)? else {
            bail_usage!("no runs recorded: {} does not exist", path.display());
        };
        let mut trial_details = TrialDetails::default();
        let run = store.load_with(number(word, &store)?, |trial, record| {
            trial_details.add(trial, record);
        })?;
        let analysis = study::analyse(&run);
        Ok(Self { run, analysis, trial_details, name })
    }

    pub fn all(words: &[String], context: &Context) -> anyhow::Result<Vec<Self>> {
        words.iter().map(|word| Self::read(word, context)).collect()
    }

    /// Returns the run in the form for a page.
    pub fn exhibit(&self) -> ReportInput<'_> {
        let (run, analysis) = (&self.run, &self.analysis);
        ReportInput {
            run,
            analysis,
            trial_details: Some(&self.trial_details),
            name: self.name.as_deref(),
        }
    }

    /// Returns the run in the form for a comparison.
    pub fn named(&self) -> Named<'_> {
        let report = RunReport { run: &self.run, analysis: &self.analysis };
        Named { report, name: self.name.as_deref() }
    }
}

/// Prints an HTML page of these runs.
pub fn print_page(opened: &[Opened]) -> anyhow::Result<()> {
    output::print_document(&page(opened))
}

/// Returns an HTML page of these runs.
pub fn page(opened: &[Opened]) -> String {
    let exhibits: Vec<ReportInput<'_>> = opened.iter().map(Opened::exhibit).collect();
    report::html(&exhibits)
}

/// Prints all trials of these runs as a Parquet table.
fn print_parquet(opened: &[Opened]) -> anyhow::Result<()> {
    let report: Vec<RunReport<'_>> = opened.iter().map(|one| one.named().report).collect();
    output::with_stdout(|out| report::write_parquet(&report, out))
}

/// Computes the limits of simulated runs.
fn add_limits(opened: &mut [Opened], context: &Context) -> anyhow::Result<()> {
    let simulated = |one: &&mut Opened| matches!(one.run.plan.target, Target::Simulation(_));
    let mut any = false;
    for one in opened.iter_mut().filter(simulated) {
        context.note(&format!("computing the limits of run {} …", one.run.summary.id));
        one.analysis.limits = study::limits(&one.run.plan, &one.run.workloads, one.run.seed)?;
        any = true;
    }
    if !any {
        bail_usage!("--limits needs a run of a simulated target");
    }
    Ok(())
}

impl ReportArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut opened = Opened::all(&self.runs, context)?;
        if self.limits {
            add_limits(&mut opened, context)?;
        }
        if self.output.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet")) {
            print_parquet(&opened)?;
        } else {
            print_page(&opened)?;
        }
        Ok(Exit::Fine)
    }
}
