//! What only a simulation can change: the read-ahead algorithm itself.

use std::path::PathBuf;

use units::PageSize;

use super::form::{Form, Formed, values_of_form};
use crate::{Checked, Site, Tunable, TunableError, Value};

/// The read-ahead algorithm of a simulated kernel.
#[derive(Debug)]
pub(super) struct Policy;

const NAME: &str = "policy";

/// The tunable of this name.
pub(super) fn find(name: &str) -> Option<&'static dyn Tunable> {
    (name == NAME).then_some(&Policy)
}

impl Policy {
    /// A name with parameters; the simulation knows which there are.
    const fn formed(&self) -> Formed {
        Formed { tunable: NAME, form: Form::Text }
    }
}

impl Tunable for Policy {
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

    fn order(&self) -> u8 {
        91
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        self.formed().parse(name, text)
    }

    fn candidates(&self, _site: &Site) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_of_machine(&self) -> bool {
        true
    }

    fn elsewhere(&self) -> Option<&'static str> {
        Some("a simulation (sim:MODEL)")
    }

    values_of_form!();
}
