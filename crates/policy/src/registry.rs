//! The algorithms by name: one line each.

use std::collections::BTreeMap;

use units::Bytes;

use crate::algorithm::{
    amp, ara_2006, auto, fixed, freebsd, innodb, linux_6_18, linux_legacy, linux_on_demand, none,
    postgres_17, postgres_18, rocksdb, zfs,
};
use crate::cache::PAGE;
use crate::policy::Policy;

/// Every algorithm.
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
    auto::ENTRY,
];

/// An algorithm that can be built by name.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Makes one.
    pub build: fn(&Settings<'_>) -> Result<Box<dyn Policy>, PolicyError>,
}

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
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
        /// The name.
        name: String,
        /// The one that is most like it, or all.
        hint: String,
    },
    /// The algorithm has no such parameter.
    #[error("policy {policy} has no parameter {key:?}: {hint}")]
    Parameter {
        /// The algorithm.
        policy: &'static str,
        /// The parameter.
        key: String,
        /// The one that is most like it, or all.
        hint: String,
    },
    /// A word is not `key=value`.
    #[error("policy {policy}: {word:?} should be KEY=VALUE")]
    Word {
        /// The algorithm.
        policy: &'static str,
        /// The word.
        word: String,
    },
    /// A parameter is given twice.
    #[error("policy {policy}: {key} is given twice: leave one out")]
    Twice {
        /// The algorithm.
        policy: &'static str,
        /// The parameter.
        key: String,
    },
    /// A parameter has a value that cannot be.
    #[error("policy {policy}: {key}={value:?} should be {wanted}")]
    Value {
        /// The algorithm.
        policy: &'static str,
        /// The parameter.
        key: String,
        /// Its value.
        value: String,
        /// What it should be.
        wanted: String,
    },
}

/// The parameters of an algorithm as they were given, with its defaults.
pub struct Settings<'a> {
    entry: &'a Entry,
    given: BTreeMap<&'a str, &'a str>,
}

impl Settings<'_> {
    /// The text of a parameter.
    fn text(&self, key: &str) -> &str {
        let default = self.entry.parameters.iter().find(|parameter| parameter.name == key);
        self.given.get(key).copied().or(default.map(|parameter| parameter.default)).unwrap_or("")
    }

    pub(crate) fn fail(&self, key: &str, wanted: impl Into<String>) -> PolicyError {
        PolicyError::Value {
            policy: self.entry.name,
            key: key.to_owned(),
            value: self.text(key).to_owned(),
            wanted: wanted.into(),
        }
    }

    /// A number between `least` and `most`.
    pub fn count(&self, key: &str, least: u64, most: u64) -> Result<u64, PolicyError> {
        let number = self.text(key).parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.fail(key, format!("a whole number from {least} to {most}")))
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

    /// One of a few words.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, PolicyError> {
        let chosen = choices.iter().find(|(word, _)| *word == self.text(key));
        chosen.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.fail(key, words.join(" or "))
        })
    }
}

/// The entry of this name.
pub fn named(name: &str) -> Result<&'static Entry, PolicyError> {
    REGISTRY.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
        PolicyError::Unknown { name: name.to_owned(), hint: spelling::hint(name, &names) }
    })
}

/// Builds a policy from its name and parameters: `NAME[,KEY=VALUE…]`.
pub fn build(words: &str) -> Result<Box<dyn Policy>, PolicyError> {
    let mut words = words.split(',').map(str::trim);
    let entry = named(words.next().unwrap_or_default())?;
    let mut given = BTreeMap::new();
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| PolicyError::Word { policy: entry.name, word: word.to_owned() })?;
        if !entry.parameters.iter().any(|parameter| parameter.name == key) {
            let known: Vec<_> = entry.parameters.iter().map(|parameter| parameter.name).collect();
            let none = || "it has none at all".to_owned();
            let hint = if known.is_empty() { none() } else { spelling::hint(key, &known) };
            let key = key.to_owned();
            return Err(PolicyError::Parameter { policy: entry.name, key, hint });
        }
        if given.insert(key, value).is_some() {
            return Err(PolicyError::Twice { policy: entry.name, key: key.to_owned() });
        }
    }
    (entry.build)(&Settings { entry, given })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_builds_with_its_own_defaults_and_says_what_it_is() {
        for entry in REGISTRY {
            assert!(build(entry.name).is_ok(), "{}", entry.name);
            assert!(!entry.summary.is_empty() && !entry.source.is_empty(), "{}", entry.name);
            for parameter in entry.parameters {
                let words = format!("{},{}={}", entry.name, parameter.name, parameter.default);
                assert!(build(&words).is_ok(), "{words}");
                let broken = format!("{},{}=purple", entry.name, parameter.name);
                assert!(matches!(build(&broken), Err(PolicyError::Value { .. })), "{broken}");
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
    fn what_is_wrong_is_named() {
        let error = |words| build(words).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error("linux-6.81").contains("did you mean \"linux-6.18\""));
        assert!(error("linux-6.18,x=1").contains("no parameter \"x\""));
        assert!(error("linux-6.18,x").contains("should be KEY=VALUE"));
        assert!(error("zfs,max_distanse=8M").contains("did you mean \"max_distance\""));
        assert!(error("none,x=1").contains("none at all"));
        assert!(error("fixed,blocks=1,blocks=2").contains("blocks is given twice"));
        for word in ["", "xyzzy"] {
            assert!(error(word).contains("there are ") && error(word).contains("linux-6.18"));
        }
    }
}
