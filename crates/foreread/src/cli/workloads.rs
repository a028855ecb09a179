//! `foreread workloads`.

use clap::{Args, Subcommand};
use serde::Serialize;
use workload::Workload;

use super::ResultFile;
use crate::exit::Exit;
use crate::output;

/// List the built-in workloads, or show one as TOML
///
/// The standard suite has the usual access patterns. To define your own workload, write the
/// declaration of a similar one to a file, edit the file, and pass it to --workload:
///
///   foreread workloads show seq-8 > mine.toml
///   foreread sweep /srv/data --workload mine.toml
///
/// seq-write and rewrite write to files that they create and remove, so they need a directory.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct WorkloadsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the standard suite
    List(List),
    /// Show a workload's declaration in TOML
    Show {
        /// Name of the workload, or a file with a declaration
        workload: String,
        #[command(flatten)]
        file: ResultFile,
    },
}

#[derive(Debug, Args)]
struct List {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: ResultFile,
}

/// One line of the list.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    pattern: &'static str,
    block_bytes: u64,
    readers: u32,
    streams: u32,
    access: &'static str,
    declaration_toml: String,
}

impl WorkloadsArgs {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.action.unwrap_or(Action::List(self.list)) {
            Action::List(List { json: true, .. }) => print_json()?,
            Action::List(_) => print_list()?,
            Action::Show { workload, .. } => {
                let workload = super::workload_args::workload(&workload)?;
                output::print_document(&workload.to_toml())?;
            }
        }
        Ok(Exit::Fine)
    }
}

fn access(workload: &Workload) -> &'static str {
    match workload.access {
        workload::AccessMethod::Read => "read",
        workload::AccessMethod::Mmap => "mmap",
    }
}

/// Returns the standard suite, then the workloads that write.
fn all() -> Vec<Workload> {
    Workload::suite().into_iter().chain(Workload::writing()).collect()
}

fn print_json() -> anyhow::Result<()> {
    let suite = all();
    let line = |workload| {
        let workload: &Workload = workload;
        Line {
            name: &workload.name,
            pattern: workload.pattern.name(),
            block_bytes: workload.block.get(),
            readers: workload.readers,
            streams: workload.streams(),
            access: access(workload),
            declaration_toml: workload.to_toml(),
        }
    };
    let lines: Vec<Line<'_>> = suite.iter().map(line).collect();
    output::print_versioned(&serde_json::json!({
        "workloads": lines,
    }))
}

fn print_list() -> anyhow::Result<()> {
    let mut text = format!(
        "{:<12} {:<12} {:>8} {:>8} {:>8}  {}\n",
        "NAME", "PATTERN", "BLOCK", "READERS", "STREAMS", "BY"
    );
    for workload in all() {
        text.push_str(&format!(
            "{:<12} {:<12} {:>8} {:>8} {:>8}  {}\n",
            workload.name,
            workload.pattern.name(),
            workload.block,
            workload.readers,
            workload.streams(),
            access(&workload),
        ));
    }
    output::print(&text)
}
