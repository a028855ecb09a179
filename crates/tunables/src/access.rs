//! Reading and writing a tunable.

use host::Root;

use crate::{Site, Tunable, TunableError, Value};

/// Reads what the tunable is now.
pub fn read(_root: &Root, _tunable: &dyn Tunable, _site: &Site) -> Result<Value, TunableError> {
    todo!()
}

/// Writes a value that [`Tunable::validate`] has passed, reads it back, and gives what was read.
/// This journals nothing: it is for [`crate::Tenure`], which does.
pub fn write(
    _root: &Root,
    _tunable: &dyn Tunable,
    _site: &Site,
    _value: &Value,
) -> Result<Value, TunableError> {
    todo!()
}
