//! The registry: one file and one line for each tunable.

mod read_ahead;

use std::fmt;
use std::path::PathBuf;

use host::{BdiId, DevNo, Storage};
use serde::{Deserialize, Serialize};
use units::PageSize;

use crate::{TunableError, Value};

/// Every tunable, by the order in which they are to be written.
pub static REGISTRY: &[&dyn Tunable] = &[&read_ahead::ReadAhead];

/// Where a tunable is set: all that a [`Tunable`] may use to find its file, and what a journal
/// keeps of a [`Storage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The bdi.
    pub bdi: BdiId,
    /// The block devices, as in [`Storage::devices`].
    pub devices: Vec<DevNo>,
}

impl From<&Storage> for Site {
    fn from(storage: &Storage) -> Self {
        Self { bdi: storage.bdi.clone(), devices: storage.devices.clone() }
    }
}

/// A value that may be set, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The value as the kernel will have it.
    pub value: Value,
    /// What the user should know: rounding, or an effect that surprises.
    pub notes: Vec<String>,
}

/// A setting of the kernel. It knows its names, its unit, its file and what may be put there;
/// reading, writing and undoing are the same for all ([`crate::read`], [`crate::write()`]).
pub trait Tunable: Sync {
    /// Its name on the command line: `read_ahead`.
    fn name(&self) -> &'static str;

    /// Other names that people type.
    fn aliases(&self) -> &'static [&'static str];

    /// Its name in JSON, unit included: `read_ahead_kib`.
    fn json_key(&self) -> &'static str;

    /// One line for help and docs.
    fn summary(&self) -> &'static str;

    /// When it is written among several: later ones are overwritten by earlier ones, as the kernel
    /// recomputes read-ahead when `max_sectors_kb` is written.
    fn order(&self) -> u8;

    /// Reads a value as typed by a user under the name `name`, which is its name or an alias.
    fn parse(&self, name: &str, text: &str) -> Result<Value, TunableError>;

    /// Shows a value so that [`Tunable::parse`] would read it: `128K`.
    fn show(&self, value: &Value) -> String;

    /// The value as a number or word of JSON, in the unit of [`Tunable::json_key`].
    fn to_json(&self, value: &Value) -> serde_json::Value;

    /// Reads what [`Tunable::to_json`] gave.
    fn from_json(&self, json: &serde_json::Value) -> Result<Value, TunableError>;

    /// Checks a value, and rounds it as the kernel would.
    fn validate(&self, value: &Value, page: PageSize) -> Result<Checked, TunableError>;

    /// The file of `/sys` or `/proc` that holds it.
    fn file(&self, site: &Site) -> PathBuf;

    /// The text to write to the file.
    fn encode(&self, value: &Value) -> Result<String, TunableError>;

    /// Reads the file's text; `None` if it is none of this tunable's values.
    fn decode(&self, text: &str) -> Option<Value>;
}

impl fmt::Debug for dyn Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tunable of this name or alias.
pub fn find(_name: &str) -> Result<&'static dyn Tunable, TunableError> {
    todo!()
}
