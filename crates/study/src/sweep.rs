//! Measures a whole grid.

use crate::analyse::Analysis;
use crate::environment::Environment;
use crate::error::StudyError;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::store::{RunId, Store};

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
/// `fresh`. The device has its own settings again when this returns, whatever it returns.
pub fn sweep(
    plan: &Plan,
    fresh: bool,
    store: &mut Store,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Outcome, StudyError> {
    let _ = (plan, fresh, store, environment, progress);
    todo!("sweep")
}
