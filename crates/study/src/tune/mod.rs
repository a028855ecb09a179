//! Chooses its own next measurements.

mod model;
mod predict;
#[cfg(test)]
mod tests;
mod tuner;

use std::time::Duration;

use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::session::{Field, Study};
use crate::store::{Command, Store};
use crate::strategy::Strategy;
use crate::sweep::Outcome;
use crate::target;

pub use predict::{Predicted, predict};
use tuner::Tuner;

/// How much time `tune` may spend in trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Wall-clock time for trials.
    pub time: Duration,
}

impl Budget {
    /// This many minutes.
    pub fn minutes(minutes: f64) -> Self {
        Self { time: Duration::from_secs_f64((minutes * 60.0).clamp(0.0, 1e9)) }
    }
}

/// Finds the plan's recommendation with as few trials as it can; the plan's grid is the range of
/// what may be tried. Otherwise like [`crate::sweep`].
pub fn tune(
    plan: &Plan,
    budget: Budget,
    fresh: bool,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Outcome, StudyError> {
    let study = Study { command: Command::Tune, plan, fresh, cancel: &environment.cancel };
    let tuner = |field: &Field<'_>| -> Box<dyn Strategy> {
        Box::new(Tuner::new(field, plan.repeats, budget.time.as_secs_f64()))
    };
    let mut open = target::opener(plan, environment);
    study.conduct(store, &mut open, &tuner, progress)
}
