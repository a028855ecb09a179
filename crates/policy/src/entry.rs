//! What an algorithm declares of itself, and its parameters as they were given.

use std::collections::BTreeMap;

use units::Bytes;
use units::text::{SettingError, parse_choice};

use crate::cache::PAGE;
use crate::policy::Policy;

/// An algorithm that can be built by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
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
    /// What it means, with its unit.
    pub summary: &'static str,
    /// Its value unless given, as it would be written.
    pub default: &'static str,
}

/// Why no policy can be built from some words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no algorithm of this name.
    #[error("no read-ahead policy is named {name:?}: {hint}")]
    Unknown {
        name: String,
        /// The one that is most like it, or all.
        hint: String,
    },
    /// A parameter does not exist, has an invalid value, or is given twice.
    #[error("policy {policy}: {error}")]
    Parameter { policy: &'static str, error: SettingError },
}

/// The parameters of an algorithm as they were given, with its defaults.
pub struct PolicyArgs<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) given: BTreeMap<&'a str, &'a str>,
}

impl PolicyArgs<'_> {
    fn text(&self, key: &str) -> &str {
        let default = self.entry.parameters.iter().find(|parameter| parameter.name == key);
        self.given.get(key).copied().or(default.map(|parameter| parameter.default)).unwrap_or("")
    }

    /// The error of a parameter whose value is not what is `wanted`.
    pub(crate) fn fail(&self, key: &str, wanted: &str) -> PolicyError {
        let problem = format!("must be {wanted}");
        self.entry.error(SettingError::invalid(key, self.text(key), problem))
    }

    /// A number between `least` and `most`.
    pub fn count(&self, key: &str, least: u64, most: u64) -> Result<u64, PolicyError> {
        let number = self.text(key).parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.fail(key, &format!("a whole number from {least} to {most}")))
    }

    /// A size in whole pages, at least one and at most 1 TiB, given as pages.
    pub fn pages(&self, key: &str) -> Result<u64, PolicyError> {
        let size = self.text(key).parse::<Bytes>().ok().filter(|size| {
            size.get().is_multiple_of(PAGE.bytes().get())
                && (PAGE.bytes().get()..=1 << 40).contains(&size.get())
        });
        let size =
            size.ok_or_else(|| self.fail(key, "a size in whole pages of 4 KiB, say 128K"))?;
        Ok(size.to_pages_floor(PAGE).get())
    }

    /// `on` or `off`.
    pub fn flag(&self, key: &str) -> Result<bool, PolicyError> {
        self.choice(key, &[("on", true), ("off", false)])
    }

    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, PolicyError> {
        parse_choice(key, self.text(key), choices).map_err(|error| self.entry.error(error))
    }
}
