//! `foreread rollback`.

use std::collections::BTreeSet;

use actuate::{RefreshedFiles, Reverted};
use clap::Args;
use host::{BdiId, DevNo};
use serde_json::json;
use study::{RunStatus, Store, Target};
use tunables::{LivingRun, RestoreOutcome, RestoreReport, RollbackSelection, TunableError};

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;

const AFTER_HELP: &str = "\
Examples:
  foreread rollback                    after a power loss
  foreread rollback all -n             what would be undone
  foreread rollback last";

/// Undo changes of killed runs, or of apply and persist
///
/// A study restores all settings when it ends; if it is killed, a guard process does. Changes
/// remain only after a power loss, or if the guard was killed, too. Without an argument, rollback
/// undoes these changes and removes data files of killed runs; applied settings stay. `all` also
/// removes the files that `persist` wrote and then undoes what was applied, each latest first. Open
/// files that `apply --open-files` changed get their window back with the settings. Rollback may be
/// run at any time. It leaves values that another process has set since, prints the previous ones
/// and exits with 3. It skips runs that are still active.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RollbackArgs {
    /// What to undo: `left`: changes of killed runs; `all`: also what was applied and persisted; a
    /// run by its number or `last`: all changes to its device; a device by its name under
    /// /sys/class/bdi (MAJ:MIN); or a journal by the name that apply printed
    #[arg(default_value = "left", value_name = "left|all|RUN|BDI|JOURNAL")]
    which: String,
    /// Change nothing; print what would be written
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print JSON (docs/json.md explains the fields)
    #[arg(long)]
    json: bool,
}

/// The result of a rollback or of its dry run.
#[derive(Default)]
struct Done {
    settings: tunables::RollbackReport,
    open_files: Vec<Reverted>,
    data: Vec<String>,
    servers: Vec<String>,
    files: Vec<String>,
    /// Failures; they do not stop the remaining work, which is also reported.
    errors: Vec<anyhow::Error>,
}

impl RollbackArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let which = parse_selection(&self.which, context)?;
        let mut done = self.roll_back(context, &which)?;
        let mut exit = Exit::Fine;
        for error in std::mem::take(&mut done.errors) {
            exit = graver_exit(exit, Exit::from_error(&error));
            output::error(&error, context.global.quiet);
        }
        if done.stays_different() {
            exit = graver_exit(exit, Exit::Drift);
        }
        if self.json {
            output::print_json(&done.json(self.dry_run))?;
            return Ok(exit);
        }
        let lines = done.lines(self.dry_run)?;
        for line in &lines {
            output::print(&format!("{line}\n"))?;
        }
        if lines.is_empty() && exit == Exit::Fine {
            context.note("nothing to undo");
        }
        for LivingRun { bdi, pid, .. } in &done.settings.living {
            context.note(&format!(
                "note: process {pid} still uses bdi {bdi} and restores its settings when it exits"
            ));
        }
        if which == RollbackSelection::Left {
            let (applied, _) = tunables::remembered(&context.dirs)?;
            if !applied.is_empty() {
                let count = applied.len();
                context.note(&format!(
                    "applied settings stay ({count}); `foreread rollback all` undoes them"
                ));
            }
        }
        Ok(exit)
    }

    /// Rolls back, or with `-n` determines what a rollback would do.
    fn roll_back(&self, context: &Context, which: &RollbackSelection) -> anyhow::Result<Done> {
        let mut done = Done::default();
        let errors = &mut done.errors;
        // Owners that set a device immediately, such as TuneD, first restore the values that were
        // applied before, so that those can be undone.
        if *which == RollbackSelection::All {
            let files = super::persist::roll_back(context, self.dry_run, errors);
            done.files = unless_failed(files, errors);
        }
        let mut records = super::revert::records(context, which, errors);
        let roll = if self.dry_run { tunables::rollback_preview } else { tunables::rollback };
        done.settings = match roll(&context.dirs, &context.root, which) {
            // The journal's settings were undone earlier, but not its open files.
            Err(TunableError::NoSuchJournal { .. }) if !records.is_empty() => Default::default(),
            // Report removed files and earlier errors in spite of this error.
            Err(error) if !done.files.is_empty() || !errors.is_empty() => {
                errors.push(error.into());
                Default::default()
            }
            result => result?,
        };
        let refused = std::mem::take(&mut done.settings.refused);
        if matches!(which, RollbackSelection::Journal(_)) && !refused.is_empty() {
            records.clear();
        }
        errors.extend(refused.into_iter().map(anyhow::Error::new));
        if !self.dry_run {
            RefreshedFiles::forget_earlier_boots(&context.dirs);
        }
        for record in records {
            let planned = self.dry_run.then_some(done.open_files.as_slice());
            let files = super::revert::revert(context, record, planned);
            done.open_files.extend(unless_failed(files, errors));
        }
        if self.dry_run {
            keep_last_steps(&mut done.open_files);
        }
        if matches!(which, RollbackSelection::Left | RollbackSelection::All) {
            let data = remove_left_data(context, self.dry_run, errors);
            done.data = unless_failed(data, errors);
            done.servers = remove_left_servers(self.dry_run, errors);
        }
        Ok(done)
    }
}

/// Keeps only the last planned step of each open file.
fn keep_last_steps(planned: &mut Vec<Reverted>) {
    let all = std::mem::take(planned);
    for (at, one) in all.iter().enumerate() {
        if !all[at + 1..].iter().any(|later| later.file.id == one.file.id) {
            planned.push(one.clone());
        }
    }
}

/// Returns the value; on failure, records the error and returns the default.
fn unless_failed<T: Default>(result: anyhow::Result<T>, errors: &mut Vec<anyhow::Error>) -> T {
    result.unwrap_or_else(|error| {
        errors.push(error);
        T::default()
    })
}

impl Done {
    /// Returns the results without those that an older journal of the same file replaces: its
    /// original value is the one before all these changes.
    fn final_reports(&self) -> impl Iterator<Item = &RestoreReport> {
        let undone = &self.settings.undone;
        undone.iter().enumerate().filter_map(|(at, report)| {
            let same = |older: &&RestoreReport| {
                (older.tunable, &older.file) == (report.tunable, &report.file)
            };
            let mut older = undone[at + 1..].iter().filter(same).map(|older| &older.outcome);
            let gone = |outcome: &RestoreOutcome| *outcome == RestoreOutcome::DeviceGone;
            let replaced = match report.outcome {
                RestoreOutcome::LeftAlone { .. } => older.any(|outcome| !gone(outcome)),
                RestoreOutcome::DeviceGone => older.any(gone),
                RestoreOutcome::Restored | RestoreOutcome::AlreadySo => false,
            };
            (!replaced).then_some(report)
        })
    }

    /// Returns whether a value of another process stays in place of the original one.
    fn stays_different(&self) -> bool {
        let other =
            |report: &RestoreReport| matches!(report.outcome, RestoreOutcome::LeftAlone { .. });
        self.final_reports().any(other)
    }

    fn lines(&self, dry_run: bool) -> anyhow::Result<Vec<String>> {
        let mut lines = Vec::new();
        for undone in self.final_reports() {
            lines.push(if dry_run { describe_planned(undone)? } else { describe_done(undone)? });
        }
        let reverted = super::open_files::reverted_text(&self.open_files);
        lines.extend(reverted.lines().map(str::to_owned));
        let word = if dry_run { "would be removed" } else { "removed" };
        lines.extend(self.data.iter().map(|path| format!("{path}: data files {word}")));
        let servers = self.servers.iter();
        lines.extend(servers.map(|path| format!("{path}: PostgreSQL's files {word}")));
        lines.extend(self.files.iter().map(|file| format!("{file}: {word}")));
        Ok(lines)
    }

    fn json(&self, dry_run: bool) -> serde_json::Value {
        let open_files = self.open_files.iter().map(super::open_files::reverted_json);
        json!({
            "schema_version": report::SCHEMA_VERSION,
            "dry_run": dry_run,
            "undone": self.settings.undone.iter().map(undone_json).collect::<Vec<_>>(),
            "open_files": open_files.collect::<Vec<_>>(),
            "still_running": self.settings.living.iter().map(living_json).collect::<Vec<_>>(),
            "data_removed": self.data.iter().chain(&self.servers).collect::<Vec<_>>(),
            "files_removed": self.files,
        })
    }
}

/// Removes the files that killed runs created in directories. Files of live runs are locked.
fn remove_left_data(
    context: &Context,
    dry_run: bool,
    errors: &mut Vec<anyhow::Error>,
) -> anyhow::Result<Vec<String>> {
    let Some(store) = Store::open_read_only(&context.store_path())? else { return Ok(Vec::new()) };
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
            // A live run uses the files.
            Ok(false) | Err(bench::BenchError::Busy { .. }) => {}
            Err(error) => errors.push(error.into()),
        }
    }
    Ok(removed)
}

/// Removes the files of PostgreSQL servers that killed runs created.
fn remove_left_servers(dry_run: bool, errors: &mut Vec<anyhow::Error>) -> Vec<String> {
    let mut removed = Vec::new();
    for left in ::pg::remove_left(dry_run) {
        match left {
            Ok(path) => removed.push(report::clean::plain(&path.display().to_string())),
            // A live run uses the files.
            Err(::pg::PgError::Busy { .. }) => {}
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

fn undone_json(undone: &RestoreReport) -> serde_json::Value {
    let tunable = tunables::find(undone.tunable).ok();
    let value = |value| tunable.map(|tunable| tunable.to_json(value));
    json!({
        "bdi": undone.bdi,
        "tunable": undone.tunable,
        "unit_key": tunable.map(|tunable| tunable.json_key()),
        "file": undone.file,
        "original": value(&undone.original),
        "outcome": match &undone.outcome {
            RestoreOutcome::Restored => "restored",
            RestoreOutcome::AlreadySo => "already_so",
            RestoreOutcome::DeviceGone => "device_gone",
            RestoreOutcome::LeftAlone { .. } => "left_alone",
        },
        "journal": undone.journal.file_stem().map(|stem| stem.to_string_lossy()),
    })
}

/// Combines the exit codes of errors: a failure outranks a refusal, otherwise the first one counts.
fn graver_exit(first: Exit, second: Exit) -> Exit {
    match (first, second) {
        (_, Exit::Failed) | (Exit::Fine, _) => second,
        _ => first,
    }
}

fn parse_selection(word: &str, context: &Context) -> anyhow::Result<RollbackSelection> {
    match word {
        "all" => return Ok(RollbackSelection::All),
        "left" => return Ok(RollbackSelection::Left),
        _ => {}
    }
    if word == "last" || word.parse::<i64>().is_ok() {
        return selection_of_run(word, context);
    }
    // A journal's name ends with its bdi, so it contains a colon, too.
    let known = |bdi: &BdiId| context.root.exists(bdi.dir()) || word.parse::<DevNo>().is_ok();
    match BdiId::new(word).filter(known) {
        Some(bdi) => Ok(RollbackSelection::Bdi(bdi)),
        None => Ok(RollbackSelection::Journal(word.to_owned())),
    }
}

/// Selects the device that a run changed.
fn selection_of_run(word: &str, context: &Context) -> anyhow::Result<RollbackSelection> {
    let record = super::runs::load(word, context)?;
    let run = record.summary.id;
    let bdi = record.device_before.pointer("/storage/bdi").and_then(|bdi| bdi.as_str());
    let bdi = bdi.and_then(BdiId::new);
    let simulated = || Usage(format!("run {run} changed no device"));
    Ok(RollbackSelection::Bdi(bdi.ok_or_else(simulated)?))
}

/// Describes what was done.
fn describe_done(undone: &RestoreReport) -> anyhow::Result<String> {
    let RestoreReport { bdi, tunable, original, .. } = undone;
    match &undone.outcome {
        RestoreOutcome::Restored => Ok(format!("{bdi}: {tunable} restored to {original}")),
        outcome => describe_untouched(undone, outcome),
    }
}

/// Describes what would be written.
fn describe_planned(undone: &RestoreReport) -> anyhow::Result<String> {
    match &undone.outcome {
        RestoreOutcome::Restored => command(undone),
        outcome => Ok(format!("# {}", describe_untouched(undone, outcome)?)),
    }
}

/// Returns the command that sets the original value.
fn command(undone: &RestoreReport) -> anyhow::Result<String> {
    let text = tunables::find(undone.tunable)?.encode(&undone.original)?;
    Ok(format!("echo {text} > {}", undone.file.display()))
}

fn describe_untouched(undone: &RestoreReport, outcome: &RestoreOutcome) -> anyhow::Result<String> {
    let RestoreReport { bdi, tunable, original, .. } = undone;
    Ok(match outcome {
        RestoreOutcome::Restored | RestoreOutcome::AlreadySo => {
            format!("{bdi}: {tunable} is {original} already")
        }
        RestoreOutcome::DeviceGone => {
            format!("{bdi}: device is gone, nothing to undo for {tunable}")
        }
        // The journal is deleted, so this line is the last record of the original value.
        RestoreOutcome::LeftAlone { present } => format!(
            "{bdi}: {tunable} is {present}, set by another process since: left alone; it was \
             {original} before: {}",
            command(undone)?
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kib(kib: u64) -> tunables::Value {
        units::Bytes::from_kib(kib).into()
    }

    /// The results for stacked settings of one file, the latest first: original value and outcome.
    fn stacked(results: &[(u64, RestoreOutcome)]) -> Done {
        let report = |(original, outcome): &(u64, RestoreOutcome)| RestoreReport {
            journal: "1.jsonl".into(),
            bdi: BdiId::new("8:0").unwrap(),
            tunable: "read_ahead",
            file: "/sys/class/bdi/8:0/read_ahead_kb".into(),
            original: kib(*original),
            outcome: outcome.clone(),
        };
        let undone = results.iter().map(report).collect();
        let settings = tunables::RollbackReport { undone, ..Default::default() };
        Done { settings, ..Done::default() }
    }

    #[test]
    fn a_value_of_another_process_is_reported_once_with_the_first_original() {
        let other = RestoreOutcome::LeftAlone { present: kib(340) };
        let done = stacked(&[(256, other.clone()), (128, other.clone())]);
        let line = "8:0: read_ahead is 340 KiB, set by another process since: left alone; it was \
                    128 KiB before: echo 128 > /sys/class/bdi/8:0/read_ahead_kb";
        assert_eq!(done.lines(false).unwrap(), [line]);
        assert_eq!(done.lines(true).unwrap(), [format!("# {line}")]);
        assert!(done.stays_different());
        assert_eq!(done.json(false)["undone"].as_array().unwrap().len(), 2);
        // The other process has set the value that was there before foreread.
        let done = stacked(&[(256, other.clone()), (340, RestoreOutcome::AlreadySo)]);
        assert_eq!(done.lines(false).unwrap(), ["8:0: read_ahead is 340 KiB already"]);
        assert!(!done.stays_different());
        // The older journal is of another disk, which is gone.
        let done = stacked(&[(256, other), (128, RestoreOutcome::DeviceGone)]);
        assert_eq!(done.lines(false).unwrap().len(), 2);
        assert!(done.stays_different());
        let gone = RestoreOutcome::DeviceGone;
        assert_eq!(stacked(&[(256, gone.clone()), (128, gone)]).lines(false).unwrap().len(), 1);
    }

    #[test]
    fn a_failure_is_not_hidden_by_a_refusal() {
        let of = |errors: &[Exit]| errors.iter().copied().fold(Exit::Fine, graver_exit);
        assert_eq!(of(&[]), Exit::Fine);
        assert_eq!(of(&[Exit::Refused]), Exit::Refused);
        assert_eq!(of(&[Exit::Failed, Exit::Refused]), Exit::Failed);
        assert_eq!(of(&[Exit::Refused, Exit::Failed, Exit::NotPossible]), Exit::Failed);
        assert_eq!(of(&[Exit::Refused, Exit::NotPossible]), Exit::Refused);
    }
}
