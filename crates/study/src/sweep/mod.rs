//! Measures a whole grid.

mod blocks;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::conduct::{Study, StudyOutcome};
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::storage;
use crate::store::{RunCommand, Store};
use crate::strategy::{Strategy, StrategyInput};

pub(crate) use blocks::BlockStrategy;

/// Measures every cell of the plan. Resumes an interrupted run of the same plan unless `fresh`.
/// With a budget, each cell is measured at least once and repeated while time remains. The device's
/// settings are restored when this function returns, even with an error.
pub fn sweep(
    plan: &Plan,
    budget: Option<Budget>,
    fresh: bool,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<StudyOutcome, StudyError> {
    let study = Study { command: RunCommand::Sweep, plan, fresh, cancel: &environment.cancel };
    let blocks = |field: &StrategyInput| -> Box<dyn Strategy> {
        Box::new(BlockStrategy::new(field, plan.repeats).with_budget(budget))
    };
    let mut open = storage::opener(plan, environment);
    study.conduct(store, &mut open, &blocks, progress)
}
