//! Tunables that only a simulation has: the read-ahead algorithm.

use std::path::PathBuf;

use units::PageSize;

use super::form::{FormedValue, ValueForm, values_of_form};
use crate::{Tunable, TunableError, TunableScope, ValidatedValue, Value};

/// The read-ahead algorithm of a simulated kernel.
#[derive(Debug)]
pub(super) struct PolicyTunable;

const NAME: &str = "policy";

pub(super) fn find(name: &str) -> Option<&'static dyn Tunable> {
    (name == NAME).then_some(&PolicyTunable)
}

impl PolicyTunable {
    /// A name with parameters, which the simulation checks.
    const fn formed(&self) -> FormedValue {
        FormedValue { tunable: NAME, form: ValueForm::Text }
    }
}

impl Tunable for PolicyTunable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn json_key(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "the read-ahead algorithm of a simulation, NAME[:KEY=VALUE…]"
    }

    fn write_rank(&self) -> u8 {
        91
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        self.formed().parse(name, text)
    }

    fn candidates(&self, _site: &TunableScope) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_of_machine(&self) -> bool {
        true
    }

    fn other_os(&self) -> Option<&'static str> {
        Some("a simulation (sim:MODEL)")
    }

    values_of_form!();
}
