//! What only a simulation can change: the read-ahead algorithm itself.

use std::path::PathBuf;

use units::PageSize;

use super::form::{Form, Formed};
use crate::{Checked, Site, Tunable, TunableError, Value};

/// The read-ahead algorithm of a simulated kernel.
#[derive(Debug)]
pub(super) struct Policy;

/// A name with parameters; the simulation knows which there are.
const FORM: Formed = Formed { tunable: "policy", form: Form::Text };

/// The tunable of this name.
pub(super) fn find(name: &str) -> Option<&'static dyn Tunable> {
    (name == FORM.tunable).then_some(&Policy)
}

impl Tunable for Policy {
    fn name(&self) -> &'static str {
        FORM.tunable
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn json_key(&self) -> &'static str {
        FORM.tunable
    }

    fn summary(&self) -> &'static str {
        "the read-ahead algorithm of a simulation, NAME[:KEY=VALUE…]"
    }

    fn order(&self) -> u8 {
        91
    }

    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError> {
        FORM.parse(name, text)
    }

    fn show(&self, value: &Value) -> String {
        FORM.show(value)
    }

    fn to_json(&self, value: &Value) -> serde_json::Value {
        FORM.to_json(value)
    }

    fn read_json(&self, json: &serde_json::Value) -> Result<Value, TunableError> {
        FORM.read_json(json)
    }

    fn validate(&self, value: &Value, page: PageSize) -> Result<Checked, TunableError> {
        FORM.validate(value, page)
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

    fn encode(&self, value: &Value) -> Result<String, TunableError> {
        FORM.encode(value)
    }

    fn decode(&self, text: &str) -> Option<Value> {
        FORM.decode(text)
    }
}
