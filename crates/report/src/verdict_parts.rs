//! Parts that the recommendations for read-ahead and for several tunables share.

use study::{Role, RunStatus, Target};

use crate::clean;
use crate::run_report::RunReport;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerdictLine {
    Sentence(String),
    /// A shell command.
    Command(String),
}

/// Sanitises names for the output format.
pub(crate) type Clean = fn(&str) -> String;

/// Returns a sentence about the state of a run that is not complete.
pub(crate) fn unfinished(report: &RunReport<'_>, clean: Clean) -> String {
    let summary = &report.run.summary;
    match summary.status {
        RunStatus::Complete => String::new(),
        RunStatus::Running => "This run is still being measured; so far:".to_owned(),
        RunStatus::Interrupted => {
            "This run was interrupted: the same command resumes it. So far:".to_owned()
        }
        RunStatus::Failed => match summary.error.as_deref().filter(|error| error.len() < 400) {
            Some(error) => format!("This run ended with an error ({}); until then:", clean(error)),
            None => "This run ended with an error; until then:".to_owned(),
        },
    }
}

pub(crate) fn goals(report: &RunReport<'_>, clean: Clean) -> String {
    let workloads = report.workloads();
    let goals = workloads.iter().filter(|planned| planned.role == Role::Goal);
    let names: Vec<String> = goals.map(|planned| clean(&planned.workload.name)).collect();
    if names.is_empty() { "what was measured".to_owned() } else { join(&names) }
}

/// Joins parts as `a, b and c`.
pub(crate) fn join(parts: &[String]) -> String {
    match parts.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// Returns how to apply these settings; empty for a virtual disk, which no longer exists then.
pub(crate) fn to_apply(report: &RunReport<'_>, settings: &str) -> Vec<VerdictLine> {
    let Target::Path(_) = &report.run.plan.target else { return Vec::new() };
    let Some(bdi) = bdi(report) else { return Vec::new() };
    // A level may be any word; words with shell syntax are not put into a command.
    if settings.chars().any(|c| !(c.is_ascii_alphanumeric() || "=:-_., ".contains(c))) {
        return Vec::new();
    }
    vec![
        VerdictLine::Sentence(
            "To set it now, until the next boot, for files opened from now on (as root):"
                .to_owned(),
        ),
        VerdictLine::Command(format!("foreread apply {settings} --on {bdi}")),
        VerdictLine::Sentence("To verify it later, and to undo it:".to_owned()),
        VerdictLine::Command("foreread verify".to_owned()),
        VerdictLine::Command(format!("foreread rollback {bdi}")),
    ]
}

/// Returns the recorded bdi if its name is safe in a command.
fn bdi(report: &RunReport<'_>) -> Option<String> {
    let name = report.run.device_before.pointer("/storage/bdi")?.as_str()?;
    let harmless = |c: char| c.is_ascii_alphanumeric() || ":-_.".contains(c);
    (name.chars().all(harmless) && !name.is_empty()).then(|| clean::plain(name))
}

/// Formats a verdict as a list, with code blocks for its commands.
pub(crate) fn verdict_markdown(lines: Vec<VerdictLine>) -> String {
    let line = |line| match line {
        VerdictLine::Sentence(sentence) => format!("- {sentence}\n"),
        VerdictLine::Command(command) => format!("\n```sh\n{command}\n```\n"),
    };
    lines.into_iter().map(line).collect()
}
