//! `foreread export`.

use std::path::{Path, PathBuf};

use clap::Args;
use units::Bytes;

use super::workload_args::workload;
use super::{Context, number};
use crate::destination::Destination;
use crate::exit::{Exit, bail_usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread export --fio seq-8
  foreread export --fio mine.toml -o mine.fio
  foreread export --fio trace:app.trace -o app.fio";

/// Write a workload as an fio job file
///
/// The jobs have the same pattern, block sizes, readers, advice and think times as the workload. If
/// fio does not have the pattern, the requests themselves are written as I/O logs next to the job
/// file; this needs -o.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct ExportArgs {
    /// The workload: a name (`foreread workloads`), a TOML file or trace:FILE
    #[arg(long, value_name = "WORKLOAD", required = true)]
    fio: String,
    /// Write the job file here instead of to stdout; logs are written next to it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// Size of each file, if the workload does not give it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    size: Bytes,
    /// Seed of the random requests in logs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u64>)]
    seed: u64,
}

impl ExportArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let workload = workload(&self.fio)?;
        let exported = workload::export_fio(&workload, self.size, self.seed)?;
        let file = self.output.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = file else {
            if !exported.logs.is_empty() {
                bail_usage!(
                    "fio has no pattern {:?}: its requests are written to logs next to the job \
                     file, which needs -o FILE",
                    workload.pattern.name()
                );
            }
            output::print_document(&exported.jobs)?;
            return Ok(Exit::Fine);
        };
        let dir = path.parent().map(PathBuf::from).unwrap_or_default();
        let check = |path: &Path| Destination::check("--output", path, self.force);
        // Check all destinations before the first file is written.
        let jobs = check(path)?;
        let logs: Vec<_> = exported
            .logs
            .iter()
            .map(|(name, log)| check(&dir.join(name)).map(|destination| (destination, log)))
            .collect::<Result<_, _>>()?;
        for (destination, log) in logs {
            destination.write(log.as_bytes())?;
        }
        jobs.write(exported.jobs.as_bytes())?;
        let logs = match exported.logs.len() {
            0 => String::new(),
            count => format!(" and {count} logs"),
        };
        context.note(&format!("{}{logs} written", path.display()));
        Ok(Exit::Fine)
    }
}
