//! Runs any command: prepares it, empties the cache, times it and counts its I/O.

use std::path::Path;
use std::process::Command;

use host::StorageKind;
use units::{Bytes, Nanos};
use workload::Metric;

use super::process::{self, RunOptions, failure};
use super::{as_reader, eviction, metric, problem};
use crate::dataset::DataFile;
use crate::input::TrialInput;
use crate::{BenchError, Sample, ToolReport};

/// Every program reads up to this much when it starts: libraries, locales.
const MIN_USEFUL_READ: Bytes = Bytes::from_kib(64);

pub(super) fn trial(
    input: &TrialInput<'_>,
    script: &str,
    prepare: Option<&str>,
    figure: &Metric,
    limit: Nanos,
) -> Result<Sample, BenchError> {
    let target = &input.storage.path;
    let cancel = &input.options.cancel;
    if let Some(prepare) = prepare {
        let terms = RunOptions { program: "--prepare", limit, cancel, input: None };
        let ended = process::run(shell(prepare, target), &terms, &mut || ())?;
        if let Some(failure) = failure(&ended) {
            return Err(problem("--prepare", failure));
        }
    }
    let files = data(input)?;
    let cold = input.cold(&files)?;
    let terms = RunOptions { program: "the command", limit, cancel, input: None };
    let data = files.iter().map(|file| file.length).sum();
    let outcome = input.run_program(shell(script, target), &terms, cold, data)?;
    if let Some(failure) = failure(&outcome.ended) {
        return Err(problem("the command", failure));
    }
    let mut sample = outcome.sample;
    let metric = metric::read(figure, &outcome.ended.stdout)?;
    let asked = outcome.ended.account.map_or(Bytes::ZERO, |account| account.asked);
    if asked < MIN_USEFUL_READ && metric.is_none() {
        let why = "read almost nothing by read(2), so it has no throughput: name a figure that it \
                   prints (--metric)";
        return Err(problem("the command", why));
    }
    sample.readers = vec![as_reader(asked, outcome.ended.elapsed)];
    sample.settled = sample.settled.max(sample.elapsed);
    let seconds = outcome.ended.elapsed.as_secs_f64() / input.options.dilation;
    let figures = [("seconds".to_owned(), seconds)].into_iter().collect();
    sample.tool =
        Some(ToolReport { program: "sh".to_owned(), metric, figures, ..Default::default() });
    Ok(sample)
}

/// Returns the shell command, with the target in its environment.
fn shell(script: &str, target: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env("FOREREAD_TARGET", target);
    command
}

/// Returns the data that a command may read on this target.
fn data(input: &TrialInput<'_>) -> Result<Vec<DataFile>, BenchError> {
    let path = &input.storage.path;
    if input.storage.kind == StorageKind::Directory {
        return eviction::files_below(path);
    }
    input.dataset.whole()
}
