//! Studies that choose each next measurement.

mod model;
mod predict;
#[cfg(test)]
mod tests;
mod tuner;

use crate::budget::Budget;
use crate::conduct::{Study, StudyOutcome};
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::storage;
use crate::store::{RunCommand, Store};
use crate::strategy::{Strategy, StrategyInput};

pub use predict::{PredictedPoint, predict};
pub(crate) use tuner::Tuner;

/// Finds the plan's recommendation with as few trials as possible. The plan's grid is the set of
/// allowed settings. In other respects like [`crate::sweep`].
pub fn tune(
    plan: &Plan,
    budget: Budget,
    fresh: bool,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<StudyOutcome, StudyError> {
    let study = Study { command: RunCommand::Tune, plan, fresh, cancel: &environment.cancel };
    let tuner = |field: &StrategyInput| -> Box<dyn Strategy> {
        Box::new(Tuner::new(field, plan.repeats, budget.time.as_secs_f64()))
    };
    let mut open = storage::opener(plan, environment);
    study.conduct(store, &mut open, &tuner, progress)
}
