//! `foreread sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use policy::golden;
use sys::input::InputKind;

use super::sim_batch::{PlanArgs, ResultsArgs, ShardArgs};
use crate::exit::{Exit, Usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread sim policies                        the read-ahead algorithms, with their parameters
  foreread sim keys                            the keys that may follow sim:MODEL
  foreread sim golden decisions.json           does linux-6.18 decide as the kernel did?
  foreread sim plan plan.json --out results    divide simulations of many traces into shards
  foreread sim shard MANIFEST --index 0 --out results

The simulation itself is a target: foreread sweep sim:raid10-2008,cache=8G";

/// List policies and keys; check the simulator; simulate many traces
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct SimArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Replay the recorded decisions of a kernel: print a line for each sequence, exit with 3 if
    /// any differs
    Golden(Golden),
    /// List the read-ahead algorithms with their parameters
    Policies,
    /// List the keys of a simulation, in addition to those of its model and its policy
    Keys,
    /// Divide the simulations of a plan into shards, and write them to a manifest; finished cells
    /// are left out
    Plan(PlanArgs),
    /// Simulate one shard of a manifest and publish its results as a Parquet file
    Shard(ShardArgs),
    /// Count the results in a directory and print their digest
    Results(ResultsArgs),
}

#[derive(Debug, Args)]
pub struct Golden {
    /// Recording in JSON, in the schema of the recordings in the project's tests; `-` is standard
    /// input
    file: PathBuf,
}

impl SimArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.what {
            What::Golden(golden) => golden.run(),
            What::Plan(plan) => plan.run(),
            What::Shard(shard) => shard.run(),
            What::Results(results) => results.run(),
            What::Policies => {
                output::print(&policies())?;
                Ok(Exit::Fine)
            }
            What::Keys => {
                let mut text = String::new();
                for (key, summary) in sim::KEYS {
                    text.push_str(&format!("{key:<12} {summary}\n"));
                }
                output::print(&text)?;
                Ok(Exit::Fine)
            }
        }
    }
}

impl Golden {
    fn run(&self) -> anyhow::Result<Exit> {
        let name = report::clean::plain(&self.file.display().to_string());
        let text = sys::input::read_text(&self.file, InputKind::DECISIONS)?;
        let results = golden::run(&text).map_err(|error| Usage(explain(&name, &error)))?;
        let mut lines = String::new();
        for result in &results {
            lines.push_str(&report::clean::plain(&result.to_string()));
            lines.push('\n');
        }
        output::print(&lines)?;
        let failed = results.iter().filter(|result| !result.passed()).count();
        if failed == 0 {
            return Ok(Exit::Fine);
        }
        output::note(&format!("{failed} of {} sequences were not reproduced", results.len()));
        Ok(Exit::Drift)
    }
}

/// Describes an error in a recording, with its position if known.
fn explain(name: &str, error: &golden::GoldenError) -> String {
    match error {
        golden::GoldenError::Schema(place) => format!("{name}: {error}: {place}"),
        other => format!("{name}: {other}"),
    }
}

fn policies() -> String {
    let mut text = String::new();
    for entry in control::POLICIES.entries() {
        text.push_str(&format!("{:<16} {}\n", entry.name, entry.summary));
        for parameter in entry.parameters {
            let setting = format!("{}={}", parameter.name, parameter.default);
            text.push_str(&format!("{:<16}   {setting:<26} {}\n", "", parameter.summary));
        }
    }
    text
}
