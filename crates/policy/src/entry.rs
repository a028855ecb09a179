//! Registry entries of algorithms, and the values of their parameters.

use std::collections::BTreeMap;

use units::Bytes;
use units::text::{SettingError, parse_choice};

use crate::cache::PAGE;
use crate::policy::Policy;

/// An algorithm that can be built by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Help text, one line.
    pub summary: &'static str,
    /// Source code or publication that the algorithm follows.
    pub source: &'static str,
    pub parameters: &'static [Parameter],
    pub build: fn(&PolicyArgs<'_>) -> Result<Box<dyn Policy>, PolicyError>,
}

impl Entry {
    pub(crate) fn error(&self, error: SettingError) -> PolicyError {
        PolicyError::Parameter { policy: self.name, error }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Help text with the unit.
    pub summary: &'static str,
    /// Default value, as on the command line.
    pub default: &'static str,
}

/// Error of building a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No algorithm has this name.
    #[error("unknown read-ahead policy {name:?}: {hint}")]
    Unknown {
        name: String,
        /// Most similar name, or all names.
        hint: String,
    },
    /// A parameter does not exist, has an invalid value, or is given twice.
    #[error("policy {policy}: {error}")]
    Parameter { policy: &'static str, error: SettingError },
}

/// The parameters of an algorithm: given values, and defaults for the others.
pub struct PolicyArgs<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) given: BTreeMap<&'a str, &'a str>,
}

impl PolicyArgs<'_> {
    fn text(&self, key: &str) -> &str {
        let default = self.entry.parameters.iter().find(|parameter| parameter.name == key);
        self.given.get(key).copied().or(default.map(|parameter| parameter.default)).unwrap_or("")
    }

    /// Returns the error for a parameter whose value must be `wanted`.
    pub(crate) fn fail(&self, key: &str, wanted: &str) -> PolicyError {
        let problem = format!("must be {wanted}");
        self.entry.error(SettingError::invalid(key, self.text(key), problem))
    }

    /// Returns the value of a parameter as `parse` reads it from its name and text.
    ///
    /// # Errors
    ///
    /// If `parse` returns one.
    pub fn parsed<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str, &str) -> Result<T, SettingError>,
    ) -> Result<T, PolicyError> {
        parse(key, self.text(key)).map_err(|error| self.entry.error(error))
    }

    /// Returns the value of a parameter that is a whole number from `least` to `most`.
    ///
    /// # Errors
    ///
    /// If the value is not such a number.
    pub fn count(&self, key: &str, least: u64, most: u64) -> Result<u64, PolicyError> {
        let number = self.text(key).parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.fail(key, &format!("a whole number from {least} to {most}")))
    }

    /// Returns the value of a parameter in pages: a multiple of 4 KiB, from one page to 1 TiB.
    ///
    /// # Errors
    ///
    /// If the value is not such a size.
    pub fn pages(&self, key: &str) -> Result<u64, PolicyError> {
        let size = self.text(key).parse::<Bytes>().ok().filter(|size| {
            size.get().is_multiple_of(PAGE.bytes().get())
                && (PAGE.bytes().get()..=1 << 40).contains(&size.get())
        });
        let size = size.ok_or_else(|| self.fail(key, "a multiple of 4 KiB, for example 128K"))?;
        Ok(size.to_pages_floor(PAGE).get())
    }

    /// Returns the value of a parameter that is `on` or `off`.
    ///
    /// # Errors
    ///
    /// If the value is neither.
    pub fn flag(&self, key: &str) -> Result<bool, PolicyError> {
        self.choice(key, &[("on", true), ("off", false)])
    }

    /// Returns the value of the word that was given for a parameter.
    ///
    /// # Errors
    ///
    /// If the word is not in `choices`.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, PolicyError> {
        parse_choice(key, self.text(key), choices).map_err(|error| self.entry.error(error))
    }
}
