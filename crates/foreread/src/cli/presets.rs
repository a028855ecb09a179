//! `foreread presets`.

use anyhow::Context as _;
use clap::Args;
use doctor::{Windows, host_presets, presets};
use host::BdiId;
use report::PresetsReport;

use super::examination::{Tree, examine};
use super::{Context, ResultFile};
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread presets                     for the software of this machine
  foreread presets postgresql
  foreread presets --all --json";

/// Show published recommendations of vendors and which apply here
///
/// Recommendations are never applied automatically. The source and the year of each are shown.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct PresetsArgs {
    /// Name of software in the list, or a word of the name; default: the software on this machine
    #[arg(value_name = "SOFTWARE")]
    software: Option<String>,
    /// Show all recommendations, not only those that apply to this machine
    #[arg(long, conflicts_with = "software")]
    all: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tree: Tree,
    #[command(flatten)]
    file: ResultFile,
}

impl PresetsArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let asked: Vec<&presets::VendorPreset> = match &self.software {
            Some(word) => named(word)?,
            None => presets::all().iter().collect(),
        };
        let host = self.tree.host(context)?;
        if let Some(tree) = &host.tree {
            context.note(&format!("note: the host in {tree}, not this machine"));
        }
        let examination = examine(&host, &[], Windows::not_asked())?;
        let snapshot = examination.snapshots.first().context("no storage was examined")?;
        let here: Vec<_> = host_presets::running(snapshot)
            .iter()
            .map(|applies| (applies, host_presets::compare(snapshot, applies)))
            .collect();
        let contradictions = host_presets::contradictions(snapshot);
        let name_of = |bdi: &BdiId| {
            let subject = snapshot.subject(bdi);
            subject.map_or_else(|| bdi.to_string(), report::storage_name)
        };
        let view = PresetsReport {
            asked: &asked,
            here: &here,
            contradictions: &contradictions,
            named: self.software.is_some() || self.all,
            name_of: &name_of,
        };
        if self.json {
            output::print_json(&report::presets_json(&view))?;
        } else {
            output::print(&report::presets_text(&view, output::look()))?;
        }
        Ok(Exit::Fine)
    }
}

fn named(word: &str) -> anyhow::Result<Vec<&'static presets::VendorPreset>> {
    let found = presets::named(word);
    if found.is_empty() {
        let names: Vec<&str> = presets::groups().iter().map(|group| group.name.as_str()).collect();
        bail_usage!("no recommendations for {word:?}; there are some for {}", names.join(", "));
    }
    Ok(found)
}
