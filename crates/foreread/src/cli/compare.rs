//! `foreread compare`.

use clap::Args;
use report::{Named, Pairing};

use super::report::{Opened, print_page};
use super::{Context, Format};
use crate::exit::{Exit, Usage};
use crate::output;

/// Compare runs: the same settings and workloads side by side
///
/// Each further run is compared with the first, cell by cell, for each workload and over all: other
/// filesystems, controllers, kernels, hosts, or figures that were imported. With --output and none
/// of --json, --csv and --markdown it writes an HTML page.
#[derive(Debug, Args)]
pub struct Compare {
    /// Numbers of runs, or `last`; FILE:NUMBER takes a run from another record, `-` the last of the
    /// record on standard input, 3=NAME names it
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<String>,
    #[command(flatten)]
    format: Format,
}

impl Compare {
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
            let none = "the runs have no setting and workload in common";
            return Err(Usage(none.to_owned()).into());
        }
        Ok(Exit::Fine)
    }
}
