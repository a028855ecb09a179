//! The text after `sim:` and `virtual:`, which is parsed once.

use std::sync::OnceLock;

use control::POLICIES;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sim::{SimError, SimMachine};
use units::text::NamedSettings;

use crate::error::StudyError;

/// A type that a text `MODEL[,key=value…]` describes.
pub trait FromSpec: Sized {
    /// Parses the text; MODEL is a preset or the path of a TOML file.
    ///
    /// # Errors
    ///
    /// If a model, policy, key or value does not exist, or a file cannot be read.
    fn from_spec(text: &str) -> Result<Self, StudyError>;
}

impl FromSpec for SimMachine {
    fn from_spec(text: &str) -> Result<Self, StudyError> {
        let parsed = NamedSettings::parse(text).map_err(SimError::from)?;
        Ok(Self::with_settings(vdisk::model_named(parsed.name)?, &parsed.settings, POLICIES)?)
    }
}

impl FromSpec for vdisk::DiskConfig {
    fn from_spec(text: &str) -> Result<Self, StudyError> {
        Ok(Self::parse(text)?)
    }
}

/// `MODEL[,key=value…]` with the parsed value. The text of a stored run is parsed on demand, so
/// that a run can be shown even if its model file no longer exists.
#[derive(Clone, Debug)]
pub struct TargetSpec<T> {
    text: String,
    parsed: OnceLock<Box<T>>,
}

impl<T: FromSpec> TargetSpec<T> {
    /// Parses the text immediately.
    ///
    /// # Errors
    ///
    /// See [`FromSpec::from_spec`].
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let spec = Self { text: text.to_owned(), parsed: OnceLock::new() };
        spec.get().map(drop)?;
        Ok(spec)
    }

    /// Returns the parsed value.
    ///
    /// # Errors
    ///
    /// See [`FromSpec::from_spec`]; possible for the text of a stored run.
    pub fn get(&self) -> Result<&T, StudyError> {
        if let Some(parsed) = self.parsed.get() {
            return Ok(parsed);
        }
        let parsed = Box::new(T::from_spec(&self.text)?);
        Ok(self.parsed.get_or_init(|| parsed))
    }
}

impl<T> TargetSpec<T> {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the value of a key in the text; `None` without this key.
    pub fn value_of(&self, key: &str) -> Option<&str> {
        let mut settings = self.text.split(',').filter_map(|word| word.split_once('='));
        settings.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    }
}

impl<T> PartialEq for TargetSpec<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for TargetSpec<T> {}

impl<T> Serialize for TargetSpec<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for TargetSpec<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self { text, parsed: OnceLock::new() })
    }
}
