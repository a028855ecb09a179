//! `foreread reproduce`.

use clap::Args;
use reproduce::{EXPERIMENTS, Effort, Reproduction};

use super::{ResultFile, number};
use crate::exit::Exit;
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread reproduce                    list the tables
  foreread reproduce xfs-2008           the array of 2008: published, simulated, error
  foreread reproduce all --json         everything, for programs

Each table lists the fitted parameters, and marks cells with an error above 20 % with *. The exit
code is 1 if a required check fails; other checks are printed, but do not count.";

/// Compare published read-ahead tables with simulated ones
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ReproduceArgs {
    /// Name of a table, or `all`; without it, the tables are listed
    table: Option<String>,
    /// Number of seeds; each figure is the mean over them
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = number::repeats)]
    seeds: u32,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    file: ResultFile,
}

impl ReproduceArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        let Some(name) = &self.table else {
            list(self.json)?;
            return Ok(Exit::Fine);
        };
        let effort = Effort { seeds: self.seeds };
        let chosen = match name.as_str() {
            "all" => EXPERIMENTS.iter().collect(),
            name => vec![reproduce::named(name)?],
        };
        let tables: Vec<Reproduction> =
            chosen.into_iter().map(|table| table.run(effort)).collect::<Result<_, _>>()?;
        self.print(&tables)?;
        let holds = tables.iter().all(Reproduction::holds);
        Ok(if holds { Exit::Fine } else { Exit::Failed })
    }

    fn print(&self, tables: &[Reproduction]) -> anyhow::Result<()> {
        if self.json {
            return output::print_json(&report::reproductions_json(tables));
        }
        let look = output::look();
        let texts = tables.iter().map(|table| match self.markdown {
            true => report::reproduction_markdown(table),
            false => report::reproduction(table, look),
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let text = format!("{text}\n{}", report::reproductions_summary(tables));
        if self.markdown { output::print_document(&text) } else { output::print(&text) }
    }
}

fn list(json: bool) -> anyhow::Result<()> {
    if json {
        let tables: Vec<_> = EXPERIMENTS
            .iter()
            .map(|table| serde_json::json!({ "name": table.name, "title": table.title }))
            .collect();
        return output::print_versioned(&serde_json::json!({
            "tables": tables,
            "not_simulated": reproduce::NOT_SIMULATED,
        }));
    }
    let widest = EXPERIMENTS.iter().map(|table| table.name.len()).max().unwrap_or(0);
    let lines =
        EXPERIMENTS.iter().map(|table| format!("{:widest$}  {}\n", table.name, table.title));
    let mut text: String = lines.collect();
    text.push_str("\nNot simulated:\n");
    for table in reproduce::NOT_SIMULATED {
        text.push_str(&format!("  {}: {}\n", table.table, table.reason));
    }
    output::print(&text)
}
