//! `foreread guard`: the process that restores settings when a study is killed. foreread starts it
//! automatically.

use std::path::PathBuf;

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// Restore the settings of a study that was killed
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The journal of the study
    journal: PathBuf,
}

impl GuardArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        tunables::guard_main(&context.root, &self.journal)?;
        Ok(Exit::Fine)
    }
}
