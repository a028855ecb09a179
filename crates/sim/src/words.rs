//! A machine in words: `MODEL[,key=value…]`.
//!
//! A key is the simulation's own, or a parameter of the policy, or the model's; the first that has
//! it gets it.

use std::str::FromStr;

use model::{Spec, SpecError, Words};
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
        let words = Words::parse(words)?;
        Self::with_settings(Spec::named(words.model)?, &words.settings)
    }

    /// A machine around this model, with these keys set.
    ///
    /// # Errors
    ///
    /// For a policy, key or value that does not exist; the nearest is named.
    pub fn with_settings(model: Spec, settings: &[(&str, &str)]) -> Result<Self, SimError> {
        let mut machine = Self::new(model);
        // The policy says which parameters there are.
        let mut policies = settings.iter().filter(|(key, _)| matches!(*key, "kernel" | "policy"));
        if let Some((_, value)) = policies.next() {
            machine.policy = policy_words(value)?;
        }
        if policies.next().is_some() {
            return Err(SpecError::Twice { key: "kernel (also written policy)".to_owned() }.into());
        }
        for (key, value) in settings {
            machine.set(key, value)?;
        }
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
                let policy = entry.parameters.iter().map(|parameter| parameter.name);
                let own: Vec<&str> = KEYS.iter().map(|(key, _)| *key).chain(policy).collect();
                let model = self.model.keys();
                let names = model.iter().filter_map(|path| path.rsplit('.').next());
                let hint = match spelling::nearest(key, own.iter().copied().chain(names)) {
                    Some(name) => format!("did you mean {name:?}?"),
                    None => format!(
                        "there are {}, and those of the model (`foreread sim keys` explains them)",
                        own.join(", ")
                    ),
                };
                SpecError::UnknownKey { key: key.to_owned(), hint }.into()
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
/// can stand in a list of values. The first parameter needs no key.
///
/// # Errors
///
/// If there is no such policy or parameter, or its value cannot be.
pub fn policy_words(text: &str) -> Result<String, SimError> {
    let mut parts = text.split(':').map(str::trim);
    let entry = policy::named(parts.next().unwrap_or_default())?;
    let mut words = entry.name.to_owned();
    for (nth, part) in parts.enumerate() {
        match (part.contains('='), entry.parameters) {
            (false, [first, ..]) if nth == 0 => words.push_str(&format!(",{}={part}", first.name)),
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
        // Two without a key, or one given twice: neither may pass for the other.
        assert_eq!(policy_words("ara-2006:70").as_deref(), Ok("ara-2006,ratio=70"));
        for odd in ["ara-2006:70:8", "ara-2006:70:ratio=8"] {
            assert!(policy_words(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_would_do() {
        assert!(error("hdd-2009").contains("hdd-2008"));
        assert!(error("hdd-2008,kernel=linux-6.19").contains("did you mean \"linux-6.18\""));
        assert!(error("hdd-2008,cache=64K,read_ahead=128K").contains("read-ahead window"));
        assert!(error("hdd-2008,cache=1M,policy=zfs").contains("window of its policy"));
        assert!(error("hdd-2008,cache=1M,policy=fixed:1000").contains("window of its policy"));
        assert!(error("hdd-2008,cache=8").contains("unit"));
        assert!(error("hdd-2008,kernels=x").contains("did you mean \"kernel\""));
        assert!(error("hdd-2008,cach=1G").contains("did you mean \"cache\""));
        assert!(error("hdd-2008,rmp=5400").contains("did you mean \"rpm\""));
        assert!(error("hdd-2008,colour=red").contains("there are kernel, policy, cache, "));
        assert!(error("hdd-2008,kernel=zfs,policy=none").contains("given twice"));
        assert!(error("hdd-2008,,cache=1G").contains("after \"hdd-2008,\""));
        assert!(error("hdd-2008,fs=fat").contains("xfs, ext4, ext3, plain"));
        assert!(error("hdd-2008,cache").contains("write key=value"));
        assert!(error("hdd-2008,rpm=0").contains("rpm"));
        assert!(error("hdd-2008,copy_ns=-1").contains("copy_ns"));
        assert!(error("hdd-2008,kernel=ara-2006,ratio=purple").contains("ratio"));
    }
}
