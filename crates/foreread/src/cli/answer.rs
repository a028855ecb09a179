//! Shared by verbs that answer one question: they run until they are done or interrupted, then
//! print the answer.

use clap::Args;
use study::{Environment, Findings};

use super::study_options::{Ran, run};
use super::{Context, ResultFile};
use crate::exit::Exit;
use crate::output;
use crate::progress::StudyProgress;

/// Output format of an answer.
#[derive(Clone, Debug, Default, Args)]
pub struct AnswerFormat {
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown, to paste into an issue or a wiki
    #[arg(long)]
    pub markdown: bool,
    /// Print a line of JSON after each trial, then the document of --json as the last line
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub json_lines: bool,
    #[command(flatten)]
    pub file: ResultFile,
}

/// Runs an experiment and prints the answer.
pub fn ask<E: Into<anyhow::Error>>(
    context: &Context,
    format: &AnswerFormat,
    simulated: bool,
    question: impl FnOnce(&Environment, &mut StudyProgress) -> Result<Findings, E>,
) -> anyhow::Result<Exit> {
    let answer = match run(context, simulated, format.json_lines, question)? {
        Ran::Done(answer, _) => answer,
        Ran::Stopped(signal) => return Ok(Exit::Signal(signal)),
    };
    if format.json_lines {
        output::print_json_line(&report::answer_json(&answer))?;
    } else if format.json {
        output::print_json(&report::answer_json(&answer))?;
    } else if format.markdown {
        output::print_document(&report::answer_markdown(&answer))?;
    } else {
        output::print(&report::answer(&answer, output::look()))?;
    }
    Ok(if answer.decided { Exit::Fine } else { Exit::Inconclusive })
}
