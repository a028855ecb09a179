//! Runs bonnie++ in its own directory.

use std::process::Command;

use crate::parse::{self, FigureValue, ResultError};
use units::{Bytes, Nanos};

use super::process::{RunOptions, failure};
use super::tool::{ExternalTool, FoundTool};
use super::{as_reader, problem};
use crate::input::TrialInput;
use crate::{BenchError, Sample, ToolReport};

const BONNIE: ExternalTool =
    ExternalTool { program: "bonnie++", package: "bonnie++", version_option: "-v" };

pub(super) struct Sizes {
    pub(super) size: Option<Bytes>,
    pub(super) chunk: Option<Bytes>,
    pub(super) files: u32,
}

pub(super) fn find() -> Result<FoundTool, BenchError> {
    BONNIE.find()
}

/// Runs bonnie++ once; the sample's throughput is the rate of its block input.
pub(super) fn trial(
    input: &TrialInput<'_>,
    sizes: &Sizes,
    limit: Nanos,
) -> Result<Sample, BenchError> {
    let found = find()?;
    let Some(home) = input.dataset.directory() else {
        return Err(problem("bonnie++", "writes files, so the target must be a directory"));
    };
    let own = crate::dataset::ToolDirectory::make(home)?;
    let cold = input.cold(&[])?;
    let mut command = Command::new(&found.path);
    command.arg("-d").arg(own.path()).args(arguments(sizes, input)?);
    let cancel = &input.options.cancel;
    let limit = limit.scaled(input.options.dilation);
    let terms = RunOptions { program: "bonnie++", limit, cancel, input: None };
    let outcome = input.run_program(command, &terms, cold, Bytes::ZERO);
    let removed = own.remove();
    let outcome = outcome?;
    removed?;
    if let Some(failure) = failure(&outcome.ended) {
        return Err(problem("bonnie++", failure));
    }
    let text = String::from_utf8_lossy(&outcome.ended.stdout);
    let garbage = |error: ResultError| problem("bonnie++", error.to_string());
    let form = parse::form("bonnie++").map(|form| form.read(&text));
    let run = form.transpose().map_err(garbage)?.and_then(|mut runs| runs.pop());
    let run = run.ok_or_else(|| problem("bonnie++", "printed no result"))?;
    let mut sample = outcome.sample;
    let mut tool = ToolReport {
        program: "bonnie++".to_owned(),
        version: run.version.clone().unwrap_or(found.version),
        ..Default::default()
    };
    for figure in &run.figures {
        match figure.value {
            FigureValue::Number(value) => drop(tool.figures.insert(figure.key(), value)),
            FigureValue::TooFast => {
                tool.notes.push(format!("{}: too fast to measure", figure.key()))
            }
            FigureValue::Absent => {}
        }
    }
    let Some(rate) = run.figure("block_input").and_then(parse::ToolFigure::mib_s) else {
        let why = "its block input was too fast to measure: use a larger --size";
        return Err(problem("bonnie++", why));
    };
    // bonnie++ does not print the duration of its phases: record the data of one second.
    let useful = Bytes::new((rate * 1_048_576.0) as u64);
    sample.readers = vec![as_reader(useful, Nanos::from_secs(1))];
    sample.settled = sample.settled.max(sample.elapsed);
    sample.tool = Some(tool);
    Ok(sample)
}

fn arguments(sizes: &Sizes, input: &TrialInput<'_>) -> Result<Vec<String>, BenchError> {
    let memory = host::Machine::read(input.root)?.memory;
    let size = sizes.size.unwrap_or(Bytes::new(memory.get().saturating_mul(2)));
    let room = input.storage.space()?.available;
    if size > room {
        let needed = size;
        let path = input.storage.path.clone();
        return Err(BenchError::NoSpace { path, needed, available: room, source: None });
    }
    let mib = (size.get() >> 20).max(1);
    let size = match sizes.chunk {
        Some(chunk) => format!("{mib}M:{}k", (chunk.get() >> 10).max(1)),
        None => format!("{mib}M"),
    };
    // bonnie++ refuses a size below twice the memory, unless `-r` states the memory.
    let ram = (mib / 2).min(memory.get() >> 20).to_string();
    let words = ["-s", &size, "-n", &sizes.files.to_string(), "-r", &ram, "-q", "-m", "foreread"];
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if rustix::process::geteuid().is_root() {
        words.extend(["-u".to_owned(), "root".to_owned()]);
    }
    Ok(words)
}
