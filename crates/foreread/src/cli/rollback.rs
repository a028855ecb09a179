//! `foreread rollback`.

use anyhow::Context as _;
use clap::Args;
use host::BdiId;
use study::{RunId, Store};
use tunables::{Outcome, Undone, Which};

use super::Context;
use crate::exit::{Exit, Usage};
use crate::output;

/// Put back what studies left changed that could not do so themselves
///
/// A study restores what it changed when it ends, and a guard process does so when the study is
/// killed. This is for what is left: a power loss, or a guard that was killed as well. It may be
/// called at any time, does nothing where nothing is left, and leaves alone what somebody else has
/// set since then.
#[derive(Debug, Args)]
pub struct Rollback {
    /// What to put back: all; what a run changed, by its number; what was changed of a device, by
    /// its name under /sys/class/bdi (MAJ:MIN); or what a journal holds, by its file name
    #[arg(default_value = "all", value_name = "all|RUN|BDI|JOURNAL")]
    which: String,
    /// Change nothing: print what would be written
    #[arg(short = 'n', long)]
    dry_run: bool,
}

impl Rollback {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let which = which(&self.which, context)?;
        let roll = if self.dry_run { tunables::rollback_preview } else { tunables::rollback };
        let rollback = roll(&context.dirs, &context.root, &which)?;
        for undone in &rollback.undone {
            let line = if self.dry_run { would(undone)? } else { did(undone) };
            output::print(&format!("{line}\n"))?;
        }
        if rollback.undone.is_empty() && rollback.refused.is_empty() {
            context.note("nothing to put back");
        }
        let mut exit = Exit::Fine;
        for error in rollback.refused {
            let error = anyhow::Error::new(error);
            exit = graver(exit, Exit::of(&error));
            output::error(&error, context.global.quiet);
        }
        Ok(exit)
    }
}

/// What is told of two errors: that something failed before that it was not tried, else the first.
fn graver(first: Exit, second: Exit) -> Exit {
    match (first, second) {
        (_, Exit::Failed) | (Exit::Fine, _) => second,
        _ => first,
    }
}

fn which(word: &str, context: &Context) -> anyhow::Result<Which> {
    if word == "all" {
        return Ok(Which::All);
    }
    if let Ok(run) = word.parse() {
        return of_run(RunId(run), context);
    }
    let known = context.root.exists(format!("/sys/class/bdi/{word}"));
    match BdiId::new(word).filter(|_| known || word.contains(':')) {
        Some(bdi) => Ok(Which::Bdi(bdi)),
        None => Ok(Which::Journal(word.to_owned())),
    }
}

/// The device that a run was about.
fn of_run(run: RunId, context: &Context) -> anyhow::Result<Which> {
    let path = context.store_path();
    let Some(store) = Store::open_existing(&path)? else {
        let usage = format!("there is no run {run}: {} does not exist", path.display());
        return Err(Usage(usage).into());
    };
    let record = store.load(run)?;
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
