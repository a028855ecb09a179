//! The registry of algorithms by name.

use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use units::text::{NamedSettings, SettingError};

use crate::algorithm::{
    amp, ara_2006, fixed, freebsd, innodb, linux_6_18, linux_legacy, linux_on_demand, none,
    postgres_17, postgres_18, rocksdb, zfs,
};
use crate::entry::{Entry, PolicyArgs, PolicyError};
use crate::policy::Policy;

pub static REGISTRY: &[Entry] = &[
    none::ENTRY,
    fixed::ENTRY,
    linux_6_18::ENTRY,
    linux_on_demand::ENTRY,
    linux_legacy::ENTRY,
    ara_2006::ENTRY,
    freebsd::ENTRY,
    zfs::ENTRY,
    postgres_17::ENTRY,
    postgres_18::ENTRY,
    innodb::ENTRY,
    rocksdb::ENTRY,
    amp::ENTRY,
];

/// Lists of policies: that of this crate and those of dependent crates. Names must be unique.
#[derive(Clone, Copy)]
pub struct Catalogue(pub &'static [&'static [Entry]]);

/// The policies of this crate only.
pub static BUILT_IN: Catalogue = Catalogue(&[REGISTRY]);

impl Catalogue {
    /// Returns all entries, in the order of the lists.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        self.0.iter().copied().flatten()
    }

    /// Returns the entry with this name.
    ///
    /// # Errors
    ///
    /// If there is no such entry.
    pub fn named(self, name: &str) -> Result<&'static Entry, PolicyError> {
        self.entries().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries().map(|entry| entry.name).collect();
            PolicyError::Unknown { name: name.to_owned(), hint: units::text::hint(name, &names) }
        })
    }

    /// Parses `NAME[,KEY=VALUE…]`.
    ///
    /// # Errors
    ///
    /// If there is no such policy or parameter, or its value is invalid.
    pub fn parse(self, text: &str) -> Result<PolicySpec, PolicyError> {
        let entry = self.named(text.split(',').next().unwrap_or_default().trim())?;
        let spec = PolicySpec { entry, text: text.to_owned() };
        spec.build()?;
        Ok(spec)
    }
}

/// A policy and its parameters, parsed from `NAME[,KEY=VALUE…]`.
#[derive(Clone)]
pub struct PolicySpec {
    entry: &'static Entry,
    text: String,
}

impl PolicySpec {
    /// Returns the policy's entry in its registry.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// Returns a copy with one more parameter, which [`PolicySpec::build`] checks.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        Self { entry: self.entry, text: format!("{},{key}={value}", self.text) }
    }

    /// Builds the policy.
    ///
    /// # Errors
    ///
    /// If a parameter does not exist, is given twice, or has an invalid value.
    pub fn build(&self) -> Result<Box<dyn Policy>, PolicyError> {
        let entry = self.entry;
        let parsed = NamedSettings::parse(&self.text).map_err(|error| entry.error(error))?;
        for (key, _) in &parsed.settings {
            let known: Vec<_> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            if !known.contains(key) {
                return Err(entry.error(SettingError::unknown_key(key, &known)));
            }
        }
        let given = parsed.settings.into_iter().collect();
        (entry.build)(&PolicyArgs { entry, given })
    }
}

impl Default for PolicySpec {
    /// Returns the policy that is checked against recordings of a kernel.
    fn default() -> Self {
        Self { entry: &linux_6_18::ENTRY, text: linux_6_18::ENTRY.name.to_owned() }
    }
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    /// Parses a policy of this crate; [`Catalogue::parse`] also knows those of other crates.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        BUILT_IN.parse(text)
    }
}

impl Display for PolicySpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for PolicySpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.text, f)
    }
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Builds a policy of this crate from `NAME[,KEY=VALUE…]`.
///
/// # Errors
///
/// As [`Catalogue::parse`].
pub fn build(text: &str) -> Result<Box<dyn Policy>, PolicyError> {
    BUILT_IN.parse(text)?.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_builds_with_its_defaults_and_has_a_description() {
        for entry in REGISTRY {
            assert!(build(entry.name).is_ok(), "{}", entry.name);
            assert!(!entry.summary.is_empty() && !entry.source.is_empty(), "{}", entry.name);
            for parameter in entry.parameters {
                let words = format!("{},{}={}", entry.name, parameter.name, parameter.default);
                assert!(build(&words).is_ok(), "{words}");
                let broken = format!("{},{}=purple", entry.name, parameter.name);
                let error = build(&broken).err();
                let Some(PolicyError::Parameter { error, .. }) = error else { panic!("{broken}") };
                assert!(matches!(error, SettingError::Invalid { .. }), "{broken}");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REGISTRY.len());
    }

    #[test]
    fn errors_name_the_invalid_part() {
        let error = |words| build(words).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error("linux-6.81").contains("did you mean \"linux-6.18\""));
        assert!(error("linux-6.18,x=1").contains("no key \"x\""));
        assert!(error("linux-6.18,x").contains("write key=value"));
        assert!(error("zfs,max_distanse=8M").contains("did you mean \"max_distance\""));
        assert!(error("none,x=1").contains("it has no keys"));
        assert!(error("fixed,blocks=1,blocks=2").contains("blocks is given twice"));
        for word in ["", "xyzzy"] {
            assert!(error(word).contains("there are ") && error(word).contains("linux-6.18"));
        }
    }
}
