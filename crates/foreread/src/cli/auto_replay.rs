//! `foreread auto replay`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use daemon::{ActionKind, FileAction, SessionDifference, SessionReport};
use serde::Serialize;
use sys::input::{self, InputError, InputKind};
use units::Nanos;
use units::text::plain;

use crate::exit::Exit;
use crate::output;

/// Replay a file of --record, and show why each decision was made
///
/// Passes the recorded observations to the same control loop. The exit code is 1 if a decision
/// differs from the recorded one, for example because another version of foreread has other rules.
///
///   foreread auto /srv/data --record session.gz
///   foreread auto replay session.gz --file table.ibd
#[derive(Clone, Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct AutoReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Show only decisions on open files whose path contains this text
    #[arg(long, value_name = "TEXT")]
    file: Option<String>,
    /// Print each decision, and at the end the summary, as a line of JSON
    #[arg(long)]
    json: bool,
}

/// A decision of a replay, as JSON.
#[derive(Serialize)]
struct ReplayedDecision<'a> {
    at_s: f64,
    path: Option<&'a str>,
    #[serde(flatten)]
    kind: &'a ActionKind,
    why: &'a str,
}

impl AutoReplayArgs {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let path = &self.recording;
        let file = input::open(path, InputKind::RECORDING)?;
        let entries = daemon::read_session(file)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut printed = Ok(());
        let report = daemon::replay_session(entries, |at, action, name| {
            if printed.is_ok() && self.is_wanted(name) {
                printed = self.print(at, action, name);
            }
        });
        let report = report.map_err(|error| broken(path, error))?;
        printed?;
        self.print_summary(&report)?;
        if let Some(difference) = &report.difference {
            anyhow::bail!("{}", describe(difference));
        }
        Ok(Exit::Fine)
    }

    fn is_wanted(&self, name: Option<&str>) -> bool {
        let Some(wanted) = &self.file else { return true };
        name.is_some_and(|name| name.contains(wanted.as_str()))
    }

    fn print(&self, at: Nanos, action: &FileAction, path: Option<&str>) -> anyhow::Result<()> {
        let (kind, why) = (&action.kind, &*action.why);
        if self.json {
            return output::print_json_line(&ReplayedDecision {
                at_s: at.as_secs_f64(),
                path,
                kind,
                why,
            });
        }
        let file = path.map_or_else(|| format!("open file {:x}", action.file.get()), plain);
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        output::print(&format!("{:9.3} s  {file}  {kind}{why}\n", at.as_secs_f64()))
    }

    fn print_summary(&self, report: &SessionReport) -> anyhow::Result<()> {
        if self.json {
            return output::print_json_line(report);
        }
        let SessionReport { steps, events, open_files, actions, .. } = report;
        let end = match (&report.failed, report.is_cut) {
            (Some(error), _) => format!("; it ended with an error: {}", plain(error)),
            (None, true) => "; it is incomplete".to_owned(),
            (None, false) => String::new(),
        };
        output::print(&format!(
            "recorded by foreread {}: {:.1} s, {steps} steps, {events} events; open \
             files: {open_files}, actions: {actions}{end}\n",
            plain(&report.foreread),
            report.duration_ns.as_secs_f64(),
        ))?;
        if report.difference.is_none() {
            output::print("every decision is as recorded\n")?;
        }
        Ok(())
    }
}

/// Describes a difference in one line: the first line of an error escapes line breaks.
fn describe(difference: &SessionDifference) -> String {
    let SessionDifference { step, at_ns, recorded, decided } = difference;
    let (recorded, decided) = (json_text(recorded.as_ref()), json_text(decided.as_ref()));
    format!(
        "step {step}, at {:.3} s, differs: recorded {recorded}, decided {decided}",
        at_ns.as_secs_f64()
    )
}

/// Formats a value as in the recording.
fn json_text(value: Option<&impl Serialize>) -> String {
    let text = value.and_then(|value| serde_json::to_string(value).ok());
    text.map_or_else(|| "none".to_owned(), |text| plain(&text))
}

/// Explains why a recording cannot be read.
fn broken(path: &Path, error: daemon::SessionError) -> anyhow::Error {
    match error {
        daemon::SessionError::Read(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            InputError::too_large(path, InputKind::RECORDING).into()
        }
        error => anyhow::Error::new(error).context(format!("cannot replay {}", path.display())),
    }
}
