//! `foreread runs`.

use clap::{Args, Subcommand};
use report::{ReportInput, RunReport, TrialDetails};
use study::{Run, RunId, Store};

use super::study_options::print;
use super::{Context, Format};
use crate::exit::{Exit, Usage, bail_usage, usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread runs                        all runs, latest first
  foreread runs show last --plots
  foreread runs show 3 --csv -o run3.csv";

/// List, show or delete recorded runs
///
/// The record keeps all raw measurements of a run. The verdict is recomputed each time it is shown.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all runs, latest first
    List(List),
    /// Show the table and the verdict of a run
    Show {
        /// Number of the run, or `last`
        run: String,
        /// Also plot everything that the HTML page shows: latencies, amplification, histograms,
        /// time lines, drift
        #[arg(long, conflicts_with_all = ["json", "csv", "markdown"])]
        plots: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Delete runs from the record
    Delete {
        /// Numbers of the runs, or `last`
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Change nothing; print what would be deleted
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
}

impl RunsArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let path = context.store_path();
        let action = self.action.unwrap_or(Action::List(self.list));
        let store = match action {
            Action::Delete { dry_run: false, .. } => Store::open_existing(&path)?,
            _ => Store::open_read_only(&path)?,
        };
        match (action, store) {
            // The default record is missing until the first run.
            (Action::List(_), None) if context.global.store.is_some() => {
                bail_usage!("--store: {} does not exist", path.display());
            }
            (Action::List(list), store) => list.print(store.as_ref(), context)?,
            (_, None) => {
                bail_usage!("no runs recorded: {} does not exist", path.display());
            }
            (Action::Show { run, plots, format }, Some(store)) => {
                let mut trial_details = TrialDetails::default();
                let run = store.load_with(number(&run, &store)?, |trial, record| {
                    if plots {
                        trial_details.add(trial, record);
                    }
                })?;
                let analysis = study::analyse(&run);
                print(&RunReport { run: &run, analysis: &analysis }, &format)?;
                if plots {
                    let trial_details = Some(&trial_details);
                    let exhibit =
                        ReportInput { run: &run, analysis: &analysis, trial_details, name: None };
                    output::print(&report::terminal_plots(&exhibit, output::look()))?;
                }
            }
            (Action::Delete { runs, dry_run }, Some(store)) => {
                delete(store, &runs, dry_run, context)?;
            }
        }
        Ok(Exit::Fine)
    }
}

/// Loads the run that a word names, with all its trials.
pub fn load(word: &str, context: &Context) -> anyhow::Result<Run> {
    let path = context.store_path();
    let Some(store) = Store::open_read_only(&path)? else {
        let which = if word == "last" { "yet".to_owned() } else { report::clean::plain(word) };
        bail_usage!("there is no run {which}: {} does not exist", path.display());
    };
    Ok(store.load(number(word, &store)?)?)
}

/// Parses a run: its number, or `last`.
pub fn number(word: &str, store: &Store) -> anyhow::Result<RunId> {
    if word == "last" {
        let runs = store.runs()?;
        let last = runs.first().map(|run| run.id);
        return last.ok_or_else(|| usage!("no runs recorded"));
    }
    let number = word.parse();
    let number =
        number.map_err(|_| Usage(format!("{word:?} is not a run: give a number or last")))?;
    Ok(RunId(number))
}

fn delete(
    mut store: Store,
    words: &[String],
    dry_run: bool,
    context: &Context,
) -> anyhow::Result<()> {
    // Check all runs before the first is deleted, so that a mistyped number deletes none.
    let mut wanted = Vec::new();
    for word in words {
        let run = number(word, &store)?;
        store.load(run)?;
        wanted.push(run);
    }
    for run in store.runs()?.iter().filter(|run| wanted.contains(&run.id)) {
        if !dry_run {
            store.delete(run.id)?;
        }
        let done = if dry_run { "would delete" } else { "deleted" };
        let target = report::clean::plain(&run.target);
        context.note(&format!("{done} run {}: {target}", run.id));
    }
    Ok(())
}

impl List {
    fn print(&self, store: Option<&Store>, context: &Context) -> anyhow::Result<()> {
        let runs = store.map_or_else(|| Ok(Vec::new()), Store::runs)?;
        if self.format.json {
            output::print_json(&report::runs_json(&runs))
        } else if self.format.csv {
            output::with_stdout(|out| report::runs_csv(&runs, out))
        } else if self.format.markdown {
            output::print_document(&report::runs_markdown(&runs))
        } else if runs.is_empty() {
            context.note("no runs recorded: foreread tune TARGET records one");
            Ok(())
        } else {
            output::print(&report::runs_table(&runs))
        }
    }
}
