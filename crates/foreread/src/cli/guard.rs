//! `foreread guard`, which nobody types: the process that restores when a study dies.

use std::path::PathBuf;

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// Put back what a study leaves changed when it dies
#[derive(Debug, Args)]
pub struct Guard {
    /// The journal of the study
    journal: PathBuf,
}

impl Guard {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        tunables::guard_main(&context.root, &self.journal)?;
        Ok(Exit::Fine)
    }
}
