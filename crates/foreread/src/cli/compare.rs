//! `foreread compare`.

use clap::Args;
use report::{Named, Pairing};

use super::report::{Opened, print_page};
use super::{Context, Format};
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread compare 3 7
  foreread compare 3=xfs 7=ext4 -o page.html
  foreread compare last other.sqlite:2 --json";

/// Compare runs: the same settings and workloads side by side
///
/// Compares each further run with the first: each cell, each workload, and all cells together. The
/// runs may come from other filesystems, controllers, kernels or hosts, or from imported figures.
/// With --output and without --json, --csv and --markdown, it writes an HTML page.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CompareArgs {
    /// Run numbers, or `last`. FILE:NUMBER is a run from another record, `-` the last run of the
    /// record on standard input. 3=NAME shows run 3 under this name
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<String>,
    #[command(flatten)]
    format: Format,
}

impl CompareArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let opened = Opened::all(&self.runs, context)?;
        let Format { json, csv, markdown, ref file } = self.format;
        if file.output.is_some() && !(json || csv || markdown) {
            print_page(&opened)?;
            return Ok(Exit::Fine);
        }
        let named: Vec<Named<'_>> = opened.iter().map(Opened::named).collect();
        let pairings = Pairing::all(&named);
        if json {
            output::print_json(&report::compare_json(&pairings))?;
        } else if csv {
            output::with_stdout(|out| report::compare_csv(&pairings, out))?;
        } else if markdown {
            output::print_document(&report::compare_markdown(&pairings))?;
        } else {
            output::print(&report::compare_terminal(&pairings, output::look()))?;
        }
        if pairings.iter().all(|pairing| pairing.comparison.cells.is_empty()) {
            bail_usage!("no workload was measured at the same setting in both runs");
        }
        Ok(Exit::Fine)
    }
}
