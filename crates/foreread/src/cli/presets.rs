//! `foreread presets`.

use anyhow::Context as _;
use clap::Args;
use diagnose::{Windows, presets};
use host::BdiId;
use report::{NameOf, Presets as View};

use super::doctor::{Tree, examine};
use super::{Context, ResultFile};
use crate::exit::{Exit, Usage};
use crate::output;

/// Show what vendors advise, which of it is about what runs here, and where it contradicts itself
///
/// Advice is never applied by itself. Each piece has its source and the year of that source.
#[derive(Debug, Args)]
pub struct Presets {
    /// A software: its name in the list, or any word of it; what is about this machine if none is
    /// named
    #[arg(value_name = "SOFTWARE")]
    software: Option<String>,
    /// All advice, whether it is about something here or not
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

impl Presets {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let asked: Vec<&presets::Preset> = match &self.software {
            Some(word) => named(word)?,
            None => presets::all().iter().collect(),
        };
        let host = self.tree.host(context)?;
        if let Some(tree) = &host.tree {
            context.note(&format!("note: the host in {tree}, not this machine"));
        }
        let examination = examine(&host, &[], Windows::not_asked())?;
        let scene = examination.scenes.first().context("nothing was looked at")?;
        let here: Vec<_> = presets::running(scene)
            .iter()
            .map(|applies| (applies, presets::compare(scene, applies)))
            .collect();
        let contradictions = presets::contradictions(scene);
        let names = Names(scene);
        let view = View {
            asked: &asked,
            here: &here,
            contradictions: &contradictions,
            named: self.software.is_some() || self.all,
            name_of: &names,
        };
        if self.json {
            output::print_json(&report::presets_json(&view))?;
        } else {
            output::print(&report::presets_text(&view, output::look()))?;
        }
        Ok(Exit::Fine)
    }
}

fn named(word: &str) -> anyhow::Result<Vec<&'static presets::Preset>> {
    let found = presets::named(word);
    if found.is_empty() {
        let names: Vec<&str> = presets::groups().iter().map(|group| group.name.as_str()).collect();
        let problem = format!("there is no advice for {word:?}; there is for {}", names.join(", "));
        return Err(Usage(problem).into());
    }
    Ok(found)
}

#[derive(Debug)]
struct Names<'a>(&'a diagnose::Scene);

impl NameOf for Names<'_> {
    fn name(&self, bdi: &BdiId) -> String {
        let subject = self.0.subject(bdi);
        subject.map_or_else(|| bdi.to_string(), report::storage_name)
    }
}
