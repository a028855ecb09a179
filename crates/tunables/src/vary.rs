//! What a sweep varies.

use std::str::FromStr;

use crate::{Tunable, TunableError, Value};

/// A tunable and the values to try, as `--vary read_ahead=4K,128K` gives them.
#[derive(Clone, Debug)]
pub struct Vary {
    /// The tunable.
    pub tunable: &'static dyn Tunable,
    /// The values, in the order given, each once. Not validated yet.
    pub values: Vec<Value>,
}

impl FromStr for Vary {
    type Err = TunableError;

    fn from_str(_text: &str) -> Result<Self, TunableError> {
        todo!()
    }
}
