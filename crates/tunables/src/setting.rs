//! Settings: tunables with a value each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Bytes;

use crate::{Tunable, TunableError, Value};

/// A tunable's value: `read_ahead=128K`.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The tunable.
    pub tunable: &'static dyn Tunable,
    /// Its value.
    pub value: Value,
}

impl FromStr for Setting {
    type Err = TunableError;

    fn from_str(_text: &str) -> Result<Self, TunableError> {
        todo!()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}={}", self.tunable.name(), self.tunable.show(&self.value)))
    }
}

/// Settings of different tunables, in the order in which they are written; prints as
/// `read_ahead=128K`, and is `{"read_ahead_kib": 128}` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings;

impl Settings {
    /// Read-ahead alone.
    pub fn read_ahead(_window: Bytes) -> Self {
        todo!()
    }

    /// Sets one more tunable, or another value for one that is there.
    pub fn with(self, _setting: Setting) -> Self {
        todo!()
    }

    /// The window set for read-ahead, if any.
    pub fn window(&self) -> Option<Bytes> {
        todo!()
    }

    /// Each setting, in the order in which they are written.
    pub fn iter(&self) -> impl Iterator<Item = Setting> {
        std::iter::empty()
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
        todo!()
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(_deserializer: D) -> Result<Self, D::Error> {
        todo!()
    }
}
