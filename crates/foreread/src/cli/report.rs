//! `foreread report`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use report::{Closeup, Exhibit};
use study::{Analysis, Run, Store};

use super::Context;
use super::runs::number;
use crate::exit::{Exit, Usage};
use crate::output;

/// Make one HTML file of runs: charts, tables, trials, provenance
///
/// The file is complete in itself: it opens from disk, loads nothing and can be mailed.
#[derive(Debug, Args)]
pub struct Report {
    /// Numbers of runs, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    runs: Vec<String>,
    /// The file to write; `-` for stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// A run with what a page needs of it.
pub struct Opened {
    pub run: Run,
    pub analysis: Analysis,
    pub closeup: Closeup,
}

impl Opened {
    /// Reads a run and works out what it shows.
    pub fn read(word: &str, store: &Store) -> anyhow::Result<Self> {
        let mut closeup = Closeup::default();
        let run = store.load_with(number(word, store)?, |trial, record| {
            closeup.add(trial, record);
        })?;
        let analysis = study::analyse(&run);
        Ok(Self { run, analysis, closeup })
    }

    /// As the report takes it.
    pub fn exhibit(&self) -> Exhibit<'_> {
        Exhibit { run: &self.run, analysis: &self.analysis, closeup: Some(&self.closeup) }
    }
}

impl Report {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let path = context.store_path();
        let Some(store) = Store::open_existing(&path)? else {
            let usage = format!("there is no run yet: {} does not exist", path.display());
            return Err(Usage(usage).into());
        };
        let opened: Vec<Opened> = self
            .runs
            .iter()
            .map(|word| Opened::read(word, &store))
            .collect::<anyhow::Result<_>>()?;
        let exhibits: Vec<Exhibit<'_>> = opened.iter().map(Opened::exhibit).collect();
        let page = report::html(&exhibits);
        if self.output.as_os_str() == "-" {
            output::print(&page)?;
        } else {
            std::fs::write(&self.output, &page)
                .with_context(|| format!("cannot write the report {:?}", self.output))?;
            context.note(&format!("wrote {}", self.output.display()));
        }
        Ok(Exit::Fine)
    }
}
