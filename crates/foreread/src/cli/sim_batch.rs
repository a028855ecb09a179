//! `foreread sim plan`, `sim shard` and `sim results`: simulations of many traces.

use std::path::PathBuf;

use batch::{BatchPlan, SIMULATOR_VERSION};
use clap::Args;
use serde_json::json;

use crate::exit::{Exit, Usage, bail_usage};
use crate::output;

/// A plan, and where its results go.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Plan in JSON: traces, a grid of values for fields of a cell, further cells, shard_seconds;
    /// `-` is standard input
    plan: PathBuf,
    /// Directory of the results, which all machines share
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A line of a manifest.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Manifest that sim plan wrote
    manifest: PathBuf,
    /// Line of the manifest, counted from 0: the index of an array task or an indexed job
    #[arg(long, value_name = "N")]
    index: usize,
    /// Directory of the results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A directory of results.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    /// Directory of the results
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl PlanArgs {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let (summary, manifest) = BatchPlan::read(&self.plan)?.write_manifest(&self.out)?;
        let seconds: f64 = summary.shards.iter().map(|shard| shard.estimated_seconds).sum();
        let path = report::clean::plain(&manifest.path.display().to_string());
        if self.json {
            output::print_versioned(&json!({
                "simulator_version": SIMULATOR_VERSION,
                "manifest": path,
                "shards": manifest.shards,
                "cells": summary.cells,
                "finished_cells": summary.finished,
                "estimated_seconds": seconds,
            }))?;
            return Ok(Exit::Fine);
        }
        let mut text = format!(
            "{} of {} cells are finished, {} shards are left, about {seconds:.0} s on one \
             processor\nmanifest: {path}\n",
            summary.finished, summary.cells, manifest.shards,
        );
        if let Some(last) = manifest.shards.checked_sub(1) {
            let out = report::clean::plain(&self.out.display().to_string());
            text.push_str(&format!(
                "to simulate them here: seq 0 {last} | xargs -P \"$(nproc)\" -I{{}} foreread sim \
                 shard {path} --index {{}} --out {out}\n"
            ));
        }
        output::print(&text)?;
        Ok(Exit::Fine)
    }
}

impl ShardArgs {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let shards = batch::read_manifest(&self.manifest)?;
        let count = shards.len();
        let shard = shards.into_iter().nth(self.index).ok_or_else(|| {
            Usage(format!("--index {}: the manifest has {count} shards, from 0", self.index))
        })?;
        if shard.is_finished(&self.out) {
            return self.print(&shard.name, shard.cells.len(), None);
        }
        let done = shard.run(&self.out)?;
        self.print(&shard.name, done.cells, Some(&done))
    }

    fn print(
        &self,
        name: &str,
        cells: usize,
        done: Option<&batch::ShardReport>,
    ) -> anyhow::Result<Exit> {
        let name = report::clean::plain(name);
        if self.json {
            output::print_versioned(&json!({
                "shard": name,
                "cells": cells,
                "was_finished": done.is_none(),
                "error_cells": done.map(|done| done.errors),
                "decoding_seconds": done.map(|done| done.decoding.as_secs_f64()),
                "simulating_seconds": done.map(|done| done.simulating.as_secs_f64()),
            }))?;
            return Ok(Exit::Fine);
        }
        let text = match done {
            None => format!("shard {name}: {cells} cells, finished before\n"),
            Some(done) => format!(
                "shard {name}: {cells} cells, {} errors, {:.2} s\n",
                done.errors,
                (done.decoding + done.simulating).as_secs_f64(),
            ),
        };
        output::print(&text)?;
        Ok(Exit::Fine)
    }
}

impl ResultsArgs {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let set = batch::read_result_set(&self.dir)?;
        if set.paths.is_empty() {
            let dir = report::clean::plain(&self.dir.display().to_string());
            bail_usage!("{dir} has no results: foreread sim plan makes a plan");
        }
        if self.json {
            output::print_versioned(&json!({
                "files": set.paths.len(),
                "cells": set.cells,
                "digest": set.digest,
            }))?;
            return Ok(Exit::Fine);
        }
        let cells: Vec<String> =
            set.cells.iter().map(|(status, count)| format!("{count} {status}")).collect();
        output::print(&format!(
            "{} files, cells: {}\ndigest: {}\n",
            set.paths.len(),
            report::clean::plain(&cells.join(", ")),
            set.digest
        ))?;
        Ok(Exit::Fine)
    }
}
