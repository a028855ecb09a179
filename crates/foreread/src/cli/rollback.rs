//! `foreread rollback`.

use clap::Args;
use host::BdiId;
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
    /// What to put back: all, a device (MAJ:MIN as in /sys/class/bdi), or the name of a journal
    #[arg(default_value = "all", value_name = "all|BDI|JOURNAL")]
    which: String,
}

impl Rollback {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let which = match self.which.as_str() {
            "all" => Which::All,
            name if context.root.exists(format!("/sys/class/bdi/{name}")) => {
                let bdi = BdiId::new(name);
                Which::Bdi(bdi.ok_or_else(|| Usage(format!("{name:?} is no name of a bdi")))?)
            }
            name => Which::Journal(name.to_owned()),
        };
        let rollback = tunables::rollback(&context.dirs, &context.root, &which)?;
        for undone in &rollback.undone {
            output::print(&format!("{}\n", line(undone)))?;
        }
        if rollback.undone.is_empty() && rollback.refused.is_empty() {
            context.note("nothing to put back");
        }
        let mut exit = Exit::Fine;
        for error in rollback.refused {
            let error = anyhow::Error::new(error);
            exit = Exit::of(&error);
            output::error(&error, context.global.quiet);
        }
        Ok(exit)
    }
}

fn line(undone: &Undone) -> String {
    let Undone { bdi, tunable, original, .. } = undone;
    match &undone.outcome {
        Outcome::Restored => format!("{bdi}: {tunable} is {original} again"),
        Outcome::AlreadySo => format!("{bdi}: {tunable} was {original} already"),
        Outcome::DeviceGone => format!("{bdi}: gone, {tunable} need not be put back"),
        Outcome::LeftAlone { present } => {
            format!("{bdi}: {tunable} is {present}, which somebody else has set: left so")
        }
    }
}
