//! Measures a whole grid.

mod blocks;
#[cfg(test)]
mod tests;

use crate::analyse::Analysis;
use crate::budget::Budget;
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::session::{Field, Study};
use crate::store::{Command, RunId, Store};
use crate::strategy::Strategy;
use crate::target;

pub(crate) use blocks::Blocks;

/// How a study ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run in the store.
    pub run: RunId,
    /// Whether all was measured; if not, it was cancelled and the same command goes on with it.
    pub complete: bool,
    /// What was found, so far.
    pub analysis: Analysis,
}

/// Measures every cell of the plan, going on with an interrupted run of the same plan unless
/// `fresh`. Within a budget each cell is measured once whatever it takes, and repeated as long as
/// there is time. The device has its own settings again when this returns, whatever it returns.
pub fn sweep(
    plan: &Plan,
    budget: Option<Budget>,
    fresh: bool,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Outcome, StudyError> {
    let study = Study { command: Command::Sweep, plan, fresh, cancel: &environment.cancel };
    let blocks = |field: &Field<'_>| -> Box<dyn Strategy> {
        Box::new(Blocks::new(field, plan.repeats).within(budget))
    };
    let mut open = target::opener(plan, environment);
    study.conduct(store, &mut open, &blocks, progress)
}
