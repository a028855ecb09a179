//! A machine in words: `MODEL[,key=value…]`.
//!
//! A key is the simulation's own, or a parameter of the policy, or the model's; the first that has
//! it gets it.

use std::str::FromStr;

use model::{Spec, SpecError};
use units::{Bytes, Kib, ParseUnitError};

use crate::error::SimError;
use crate::machine::{Arrival, FileSystem, Machine, Replacement};

/// The simulation's own keys, with what they mean.
pub const KEYS: &[(&str, &str)] = &[
    ("kernel", "the read-ahead algorithm: NAME[:KEY=VALUE…] (also written policy=)"),
    ("policy", "the same"),
    ("cache", "the size of the page cache, default 8G"),
    ("fs", "how files lie on the device and in the cache: xfs, ext4, ext3 or plain"),
    ("read_ahead", "the read-ahead that the device has before a study, default 128K"),
    ("replacement", "which page leaves a full cache: two-lists (Linux) or lru"),
    (
        "arrival",
        "what pages arrive with: their own requests, whole windows, or kernel (the default)",
    ),
    ("files_at", "where on the device the files begin, default 0"),
    ("call_ns", "processor time for a read call"),
    ("copy_ns", "processor time for a byte that is copied"),
    ("submit_ns", "processor time for a byte that is asked of the device"),
    ("fault_ns", "processor time for a fault of a mapped page"),
    ("seed", "the seed of the device's chance"),
];

impl Machine {
    /// Reads `MODEL[,key=value…]`, MODEL being a preset.
    ///
    /// # Errors
    ///
    /// For a model, policy, key or value that does not exist; the nearest is named.
    pub fn parse(words: &str) -> Result<Self, SimError> {
        let (name, rest) = words.split_once(',').unwrap_or((words, ""));
        Self::with_words(Spec::parse(name)?, rest)
    }

    /// A machine around this model, as `key=value[,key=value…]` says.
    ///
    /// # Errors
    ///
    /// For a policy, key or value that does not exist; the nearest is named.
    pub fn with_words(model: Spec, words: &str) -> Result<Self, SimError> {
        let mut machine = Self::new(model);
        let mut pairs = Vec::new();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let pair =
                word.split_once('=').ok_or_else(|| SimError::Word { word: word.to_owned() })?;
            pairs.push((pair.0.trim(), pair.1.trim()));
        }
        // The policy says which parameters there are.
        for (_, value) in pairs.iter().filter(|(key, _)| matches!(*key, "kernel" | "policy")) {
            machine.policy = policy_words(value)?;
        }
        for (key, value) in pairs {
            machine.set(key, value)?;
        }
        policy::build(&machine.policy)?;
        machine.validate()?;
        Ok(machine)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), SimError> {
        match key {
            "kernel" | "policy" => {}
            "cache" => self.cache = unit::<Bytes>("cache", value)?,
            "read_ahead" => self.read_ahead = read_ahead(value)?,
            "files_at" => self.files_at = unit::<Bytes>("files_at", value)?,
            "fs" => self.filesystem = choice("fs", value, FILESYSTEMS)?,
            "replacement" => self.replacement = choice("replacement", value, REPLACEMENTS)?,
            "arrival" => self.arrival = choice("arrival", value, ARRIVALS)?,
            "seed" => self.seed = number("seed", value, "a whole number of 0 or more")?,
            "call_ns" => self.costs.call_ns = number("call_ns", value, "nanoseconds")?,
            "copy_ns" => self.costs.copy_ns = number("copy_ns", value, "nanoseconds")?,
            "submit_ns" => self.costs.submit_ns = number("submit_ns", value, "nanoseconds")?,
            "fault_ns" => self.costs.fault_ns = number("fault_ns", value, "nanoseconds")?,
            _ => return self.set_further(key, value),
        }
        Ok(())
    }

    /// Sets a parameter of the policy or of the model.
    fn set_further(&mut self, key: &str, value: &str) -> Result<(), SimError> {
        let name = self.policy.split(',').next().unwrap_or_default();
        let entry = policy::named(name)?;
        if entry.parameters.iter().any(|parameter| parameter.name == key) {
            self.policy = format!("{},{key}={value}", self.policy);
            return Ok(());
        }
        self.model.set(key, value).map_err(|error| match error {
            SpecError::UnknownKey { .. } => {
                let own: Vec<&str> = KEYS.iter().map(|(key, _)| *key).collect();
                let policy = entry.parameters.iter().map(|parameter| parameter.name);
                let own = own.into_iter().chain(policy).collect::<Vec<_>>().join(", ");
                SimError::UnknownKey { key: key.to_owned(), own, source: Box::new(error) }
            }
            other => other.into(),
        })
    }
}

const FILESYSTEMS: &[(&str, FileSystem)] = &[
    ("xfs", FileSystem::XFS),
    ("ext4", FileSystem::XFS),
    ("ext3", FileSystem::EXT3),
    ("plain", FileSystem::PLAIN),
];

const REPLACEMENTS: &[(&str, Replacement)] =
    &[("two-lists", Replacement::TwoLists), ("lru", Replacement::Lru)];

const ARRIVALS: &[(&str, Option<Arrival>)] =
    &[("kernel", None), ("requests", Some(Arrival::Requests)), ("windows", Some(Arrival::Windows))];

fn wrong(key: &'static str, value: &str, wanted: impl Into<String>) -> SimError {
    SimError::Value { key, value: value.to_owned(), wanted: wanted.into() }
}

fn unit<T: FromStr<Err = ParseUnitError>>(key: &'static str, value: &str) -> Result<T, SimError> {
    value.parse().map_err(|error: ParseUnitError| wrong(key, value, format!("a size: {error}")))
}

fn read_ahead(value: &str) -> Result<Kib, SimError> {
    let size = unit::<Bytes>("read_ahead", value)?;
    let pages = size.get().is_multiple_of(4096) && size <= Bytes::from_gib(1);
    pages
        .then(|| size.to_kib_floor())
        .ok_or_else(|| wrong("read_ahead", value, "whole pages of 4K, 1G at most"))
}

fn number<T: FromStr>(key: &'static str, value: &str, wanted: &str) -> Result<T, SimError> {
    value.parse().map_err(|_| wrong(key, value, wanted))
}

fn choice<T: Copy>(key: &'static str, value: &str, choices: &[(&str, T)]) -> Result<T, SimError> {
    let found = choices.iter().find(|(word, _)| *word == value);
    found.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        wrong(key, value, format!("one of {}", words.join(", ")))
    })
}

/// The words that [`policy::build`] reads, from `NAME[:KEY=VALUE…]`, which has no commas and so
/// can stand in a list of values. A policy with one parameter needs no key for it.
///
/// # Errors
///
/// If there is no such policy or parameter, or its value cannot be.
pub fn policy_words(text: &str) -> Result<String, SimError> {
    let mut parts = text.split(':').map(str::trim);
    let entry = policy::named(parts.next().unwrap_or_default())?;
    let mut words = entry.name.to_owned();
    for part in parts {
        match (part.contains('='), entry.parameters) {
            (false, [first, ..]) => words.push_str(&format!(",{}={part}", first.name)),
            _ => words.push_str(&format!(",{part}")),
        }
    }
    policy::build(&words)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(words: &str) -> String {
        Machine::parse(words).expect_err(words).to_string()
    }

    #[test]
    fn each_key_finds_its_owner() {
        let words = "hdd-2008,kernel=ara-2006,cache=1G,fs=ext3,ratio=70,rpm=5400,seed=3";
        let machine = Machine::parse(words).expect("a machine");
        assert_eq!(machine.policy, "ara-2006,ratio=70");
        assert_eq!((machine.cache, machine.seed), (Bytes::from_gib(1), 3));
        assert_eq!(machine.filesystem, FileSystem::EXT3);
        assert!(machine.model.to_toml().contains("rpm = 5400"));
    }

    #[test]
    fn a_policy_stands_in_one_word() {
        assert_eq!(policy_words("fixed:16").as_deref(), Ok("fixed,blocks=16"));
        assert_eq!(policy_words("zfs:max_distance=8M").as_deref(), Ok("zfs,max_distance=8M"));
        assert_eq!(policy_words("none").as_deref(), Ok("none"));
        assert!(policy_words("none:3").is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_do() {
        assert!(error("hdd-2009").contains("hdd-2008"));
        assert!(error("hdd-2008,kernel=linux-6.19").contains("did you mean \"linux-6.18\""));
        assert!(error("hdd-2008,cache=64K,read_ahead=128K").contains("read-ahead window"));
        assert!(error("hdd-2008,cache=8").contains("unit"));
        assert!(error("hdd-2008,kernels=x").contains("kernel"));
        assert!(error("hdd-2008,fs=fat").contains("xfs, ext4, ext3, plain"));
        assert!(error("hdd-2008,cache").contains("KEY=VALUE"));
        assert!(error("hdd-2008,rpm=0").contains("rpm"));
        assert!(error("hdd-2008,copy_ns=-1").contains("copy_ns"));
        assert!(error("hdd-2008,kernel=ara-2006,ratio=purple").contains("ratio"));
    }
}
