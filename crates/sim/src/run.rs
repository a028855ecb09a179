//! The event loop.

use crate::error::SimError;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::scenario::{Scenario, Step};

/// Lets the readers loose.
///
/// # Errors
///
/// If the machine cannot be, or the scenario does not fit it.
pub fn run<I: Iterator<Item = Step>>(
    machine: &Machine,
    scenario: Scenario<I>,
) -> Result<Outcome, SimError> {
    machine.model.build(machine.seed)?;
    policy::build(&machine.policy)?;
    let _ = scenario;
    Err(SimError::Word { word: "a simulation".to_owned() })
}
