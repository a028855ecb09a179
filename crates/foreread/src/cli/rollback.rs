//! `foreread rollback`.

use std::collections::BTreeSet;

use actuate::Reverted;
use anyhow::Context as _;
use clap::Args;
use host::{BdiId, DevNo};
use serde_json::json;
use study::{RunStatus, Store, Target};
use tunables::{LivingRun, Outcome, TunableError, Undone, Which};

use super::Context;
use crate::exit::Exit;
use crate::output;

/// Put back what was changed: what runs that died left, or what was applied, too
///
/// A study restores what it changed when it ends, and a guard process does so when the study is
/// killed. This is for what is left: a power loss, or a guard that was killed as well. Without a
/// word it does that and removes data files that dead runs left; settings that were applied stay.
/// `all` undoes those as well, and what was persisted, the latest first. Open files that `apply
/// --open-files` changed get their window back with the settings. It may be called at any time and
/// does nothing where nothing is left. It leaves alone what somebody else has set since, and runs
/// that are still at work.
#[derive(Debug, Args)]
pub struct Rollback {
    /// What to put back: what dead runs left (if nothing is said); `all`, with all that was applied
    /// and persisted; what was changed of the device of a run, by its number or `last`; what was
    /// changed of a device, by its name under /sys/class/bdi (MAJ:MIN); or what a journal holds, by
    /// the name that apply printed
    #[arg(default_value = "left", value_name = "left|all|RUN|BDI|JOURNAL")]
    which: String,
    /// Change nothing: print what would be written
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
}

impl Rollback {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let which = which(&self.which, context)?;
        let (records, unread) = super::revert::records(context, &which)?;
        let roll = if self.dry_run { tunables::rollback_preview } else { tunables::rollback };
        let rollback = match roll(&context.dirs, &context.root, &which) {
            // Its settings were undone before, its open files were not.
            Err(TunableError::NoSuchJournal { .. }) if !records.is_empty() => Default::default(),
            result => result?,
        };
        let mut lines = Vec::new();
        for undone in &rollback.undone {
            lines.push(if self.dry_run { would(undone)? } else { did(undone) });
        }
        let mut exit = Exit::Fine;
        let mut errors: Vec<anyhow::Error> =
            rollback.refused.into_iter().map(anyhow::Error::new).collect();
        errors.extend(unread.into_iter().map(anyhow::Error::new));
        let mut reverted: Vec<Reverted> = Vec::new();
        for record in records {
            match super::revert::revert(context, record, self.dry_run) {
                Ok(files) => reverted.extend(files),
                Err(error) => errors.push(error),
            }
        }
        lines.extend(super::open_files::reverted_text(&reverted).lines().map(str::to_owned));
        let word = if self.dry_run { "would be removed" } else { "removed" };
        let mut data = Vec::new();
        if matches!(which, Which::Left | Which::All) {
            data = left_data(context, self.dry_run, &mut errors)?;
            lines.extend(data.iter().map(|path| format!("{path}: data files {word}")));
            let servers = left_servers(self.dry_run, &mut errors);
            lines.extend(servers.iter().map(|path| format!("{path}: PostgreSQL's files {word}")));
            data.extend(servers);
        }
        let files = if which == Which::All {
            super::persist::roll_back(context, self.dry_run, &mut errors)?
        } else {
            Vec::new()
        };
        lines.extend(files.iter().map(|file| format!("{file}: {word}")));
        for error in errors {
            exit = graver(exit, Exit::of(&error));
            output::error(&error, context.global.quiet);
        }
        if self.json {
            output::print_json(&json!({
                "schema_version": report::SCHEMA_VERSION,
                "dry_run": self.dry_run,
                "undone": rollback.undone.iter().map(undone_json).collect::<Vec<_>>(),
                "open_files": reverted.iter().map(super::open_files::reverted_json)
                    .collect::<Vec<_>>(),
                "still_running": rollback.living.iter().map(living_json).collect::<Vec<_>>(),
                "data_removed": data,
                "files_removed": files,
            }))?;
            return Ok(exit);
        }
        for line in &lines {
            output::print(&format!("{line}\n"))?;
        }
        if lines.is_empty() && exit == Exit::Fine {
            context.note("nothing to put back");
        }
        for LivingRun { bdi, pid, .. } in &rollback.living {
            context.note(&format!(
                "note: process {pid} is at work on bdi {bdi} and restores its settings itself"
            ));
        }
        if which == Which::Left {
            let (applied, _) = tunables::remembered(&context.dirs)?;
            if !applied.is_empty() {
                let count = applied.len();
                context.note(&format!(
                    "what was applied stays ({count}; `foreread rollback all` undoes it)"
                ));
            }
        }
        Ok(exit)
    }
}

/// Removes the files that dead runs laid out in directories. Those of runs that live are locked.
fn left_data(
    context: &Context,
    dry_run: bool,
    errors: &mut Vec<anyhow::Error>,
) -> anyhow::Result<Vec<String>> {
    let Some(store) = Store::open_existing(&context.store_path())? else { return Ok(Vec::new()) };
    let mut paths = BTreeSet::new();
    for run in store.runs()? {
        let ended = matches!(run.status, RunStatus::Interrupted | RunStatus::Failed);
        if ended && let Ok(Target::Path(path)) = Target::parse(&run.target) {
            paths.insert(path);
        }
    }
    let mut removed = Vec::new();
    for path in paths {
        let shown = report::clean::plain(&path.display().to_string());
        if dry_run {
            if bench::Dataset::is_in(&path) {
                removed.push(shown);
            }
            continue;
        }
        match bench::Dataset::remove_from(&path) {
            Ok(true) => removed.push(shown),
            // A run lives there and uses them.
            Ok(false) | Err(bench::BenchError::Busy { .. }) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    Ok(removed)
}

/// Removes the files of PostgreSQL servers that dead runs made.
fn left_servers(dry_run: bool, errors: &mut Vec<anyhow::Error>) -> Vec<String> {
    let mut removed = Vec::new();
    for left in postgres::remove_left(dry_run) {
        match left {
            Ok(path) => removed.push(report::clean::plain(&path.display().to_string())),
            // A run lives there and uses them.
            Err(postgres::PostgresError::Busy { .. }) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    removed
}

fn living_json(run: &LivingRun) -> serde_json::Value {
    json!({
        "bdi": run.bdi,
        "pid": run.pid,
        "journal": run.journal.file_stem().map(|stem| stem.to_string_lossy()),
    })
}

fn undone_json(undone: &Undone) -> serde_json::Value {
    let tunable = tunables::find(undone.tunable).ok();
    let value = |value| tunable.map(|tunable| tunable.to_json(value));
    json!({
        "bdi": undone.bdi,
        "tunable": undone.tunable,
        "unit_key": tunable.map(|tunable| tunable.json_key()),
        "file": undone.file,
        "original": value(&undone.original),
        "outcome": match &undone.outcome {
            Outcome::Restored => "restored",
            Outcome::AlreadySo => "already_so",
            Outcome::DeviceGone => "device_gone",
            Outcome::LeftAlone { .. } => "left_alone",
        },
        "journal": undone.journal.file_stem().map(|stem| stem.to_string_lossy()),
    })
}

/// What is told of two errors: that something failed before that it was not tried, else the first.
fn graver(first: Exit, second: Exit) -> Exit {
    match (first, second) {
        (_, Exit::Failed) | (Exit::Fine, _) => second,
        _ => first,
    }
}

fn which(word: &str, context: &Context) -> anyhow::Result<Which> {
    match word {
        "all" => return Ok(Which::All),
        "left" => return Ok(Which::Left),
        _ => {}
    }
    if word == "last" || word.parse::<i64>().is_ok() {
        return of_run(word, context);
    }
    // The name of a journal ends in that of its bdi, and so has a colon, too.
    let known = |bdi: &BdiId| context.root.exists(bdi.dir()) || word.parse::<DevNo>().is_ok();
    match BdiId::new(word).filter(known) {
        Some(bdi) => Ok(Which::Bdi(bdi)),
        None => Ok(Which::Journal(word.to_owned())),
    }
}

/// The device that a run was about.
fn of_run(word: &str, context: &Context) -> anyhow::Result<Which> {
    let record = super::runs::load(word, context)?;
    let run = record.summary.id;
    let bdi = record.device_before.pointer("/storage/bdi").and_then(|bdi| bdi.as_str());
    let bdi = bdi.and_then(BdiId::new);
    bdi.map(Which::Bdi).with_context(|| format!("run {run} does not say which device it was about"))
}

/// What was done.
fn did(undone: &Undone) -> String {
    let Undone { bdi, tunable, original, .. } = undone;
    match &undone.outcome {
        Outcome::Restored => format!("{bdi}: {tunable} is {original} again"),
        outcome => untouched(undone, outcome),
    }
}

/// What would be written.
fn would(undone: &Undone) -> anyhow::Result<String> {
    match &undone.outcome {
        Outcome::Restored => {
            let text = tunables::find(undone.tunable)?.encode(&undone.original)?;
            Ok(format!("echo {text} > {}", undone.file.display()))
        }
        outcome => Ok(format!("# {}", untouched(undone, outcome))),
    }
}

fn untouched(undone: &Undone, outcome: &Outcome) -> String {
    let Undone { bdi, tunable, original, .. } = undone;
    match outcome {
        Outcome::Restored | Outcome::AlreadySo => {
            format!("{bdi}: {tunable} is {original} already")
        }
        Outcome::DeviceGone => format!("{bdi}: gone, {tunable} need not be put back"),
        Outcome::LeftAlone { present } => {
            format!("{bdi}: {tunable} is {present}, which somebody else has set: left so")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_not_hidden_by_a_refusal() {
        let of = |errors: &[Exit]| errors.iter().copied().fold(Exit::Fine, graver);
        assert_eq!(of(&[]), Exit::Fine);
        assert_eq!(of(&[Exit::Refused]), Exit::Refused);
        assert_eq!(of(&[Exit::Failed, Exit::Refused]), Exit::Failed);
        assert_eq!(of(&[Exit::Refused, Exit::Failed, Exit::NotPossible]), Exit::Failed);
        assert_eq!(of(&[Exit::Refused, Exit::NotPossible]), Exit::Refused);
    }
}
