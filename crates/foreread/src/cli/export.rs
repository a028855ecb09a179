//! `foreread export`.

use std::path::{Path, PathBuf};

use clap::Args;
use units::Bytes;
use workload::fio;

use super::workload_words::workload;
use super::{Context, number};
use crate::destination::Destination;
use crate::exit::{Exit, Usage};
use crate::output;

/// Write a workload as a job file of fio
///
/// The jobs do what the workload does: the same pattern, blocks, readers, hints and rests. Of a
/// pattern that fio does not have, the requests themselves are written as I/O logs beside the job
/// file, which takes -o.
#[derive(Debug, Args)]
pub struct Export {
    /// The workload: a name (`foreread workloads`), a TOML file or trace:FILE
    #[arg(long, value_name = "WORKLOAD", required = true)]
    fio: String,
    /// The job file to write, instead of printing it; logs go beside it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
    /// The size of each file, where the workload does not say it
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    size: Bytes,
    /// Seed of random requests that are written to logs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u64>)]
    seed: u64,
}

impl Export {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let workload = workload(&self.fio)?;
        let exported = fio::export(&workload, self.size, self.seed)?;
        let file = self.output.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = file else {
            if !exported.logs.is_empty() {
                let usage = format!(
                    "fio has no pattern {:?}: its requests are written to logs beside the job \
                     file, so name that with -o FILE",
                    workload.pattern.name()
                );
                return Err(Usage(usage).into());
            }
            output::print_document(&exported.jobs)?;
            return Ok(Exit::Fine);
        };
        let dir = path.parent().map(PathBuf::from).unwrap_or_default();
        let check = |path: &Path| Destination::check("--output", path, self.force);
        // All are checked before the first is written.
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
