//! A machine as text: `MODEL[,key=value…]`.
//!
//! A key is looked up among the simulation's own keys, then the parameters of the policy, then
//! those of the model.

use model::{Spec, SpecError};
use policy::{Catalogue, PolicySpec};
use units::text::{NamedSettings, SettingError, parse_amount, parse_choice, parse_number};
use units::{Bytes, Kib};

use crate::error::SimError;
use crate::machine::{Arrival, FileSystem, Replacement, SimMachine};

/// The simulation's own keys, with their meanings.
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

impl SimMachine {
    /// Parses `MODEL[,key=value…]` with a preset as MODEL and a policy of crate `policy`.
    ///
    /// # Errors
    ///
    /// If a model, policy, key or value does not exist. The error suggests the nearest.
    pub fn parse(text: &str) -> Result<Self, SimError> {
        let NamedSettings { name, settings } = NamedSettings::parse(text)?;
        Self::with_settings(Spec::named(name)?, &settings, policy::BUILT_IN)
    }

    /// Returns a machine with this model, these settings, and a policy of `policies`.
    ///
    /// # Errors
    ///
    /// If a policy, key or value does not exist. The error suggests the nearest.
    pub fn with_settings(
        model: Spec,
        settings: &[(&str, &str)],
        policies: Catalogue,
    ) -> Result<Self, SimError> {
        let mut machine = Self::new(model);
        // The policy determines which parameters exist.
        let mut given = settings.iter().filter(|(key, _)| matches!(*key, "kernel" | "policy"));
        if let Some((_, value)) = given.next() {
            machine.policy = parse_policy(value, policies)?;
        }
        if given.next().is_some() {
            return Err(
                SettingError::Twice { key: "kernel (also written policy)".to_owned() }.into()
            );
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
            "cache" => self.cache = parse_amount("cache", value)?,
            "read_ahead" => self.read_ahead = read_ahead(value)?,
            "files_at" => self.files_at = parse_amount("files_at", value)?,
            "fs" => self.filesystem = parse_choice("fs", value, FILESYSTEMS)?,
            "replacement" => self.replacement = parse_choice("replacement", value, REPLACEMENTS)?,
            "arrival" => self.arrival = parse_choice("arrival", value, ARRIVALS)?,
            "seed" => self.seed = parse_number("seed", value, "a whole number of 0 or more")?,
            "call_ns" => self.costs.call_ns = parse_number("call_ns", value, "nanoseconds")?,
            "copy_ns" => self.costs.copy_ns = parse_number("copy_ns", value, "nanoseconds")?,
            "submit_ns" => self.costs.submit_ns = parse_number("submit_ns", value, "nanoseconds")?,
            "fault_ns" => self.costs.fault_ns = parse_number("fault_ns", value, "nanoseconds")?,
            _ => return self.set_further(key, value),
        }
        Ok(())
    }

    /// Sets a parameter of the policy or of the model.
    fn set_further(&mut self, key: &str, value: &str) -> Result<(), SimError> {
        let entry = self.policy.entry();
        if entry.parameters.iter().any(|parameter| parameter.name == key) {
            self.policy = self.policy.with(key, value);
            return Ok(());
        }
        self.model.set(key, value).map_err(|error| match error {
            SpecError::Setting(SettingError::UnknownKey { .. }) => {
                let policy = entry.parameters.iter().map(|parameter| parameter.name);
                let own: Vec<&str> = KEYS.iter().map(|(key, _)| *key).chain(policy).collect();
                let model = self.model.keys();
                let names = model.iter().filter_map(|path| path.rsplit('.').next());
                let hint = match units::text::nearest(key, own.iter().copied().chain(names)) {
                    Some(name) => format!("did you mean {name:?}?"),
                    None => format!(
                        "there are {}, and those of the model (`foreread sim keys` explains them)",
                        own.join(", ")
                    ),
                };
                SettingError::UnknownKey { key: key.to_owned(), hint }.into()
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

fn read_ahead(value: &str) -> Result<Kib, SimError> {
    let size = parse_amount::<Bytes>("read_ahead", value)?;
    let pages = size.get().is_multiple_of(4096) && size <= Bytes::from_gib(1);
    pages.then(|| size.to_kib_floor()).ok_or_else(|| {
        SettingError::invalid("read_ahead", value, "must be whole pages of 4K, at most 1G").into()
    })
}

/// Parses `NAME[:KEY=VALUE…]`, which has no commas and can therefore be an element of a list. The
/// first parameter needs no key.
///
/// # Errors
///
/// If there is no such policy or parameter, or its value is invalid.
pub fn parse_policy(text: &str, policies: Catalogue) -> Result<PolicySpec, SimError> {
    let name = text.split(':').next().unwrap_or_default().trim();
    let first = policies.named(name)?.parameters.first().map(|parameter| parameter.name);
    let bare = |nth, word| first.filter(|_| nth == 0).map(|key| (key, word));
    let NamedSettings { name, settings } = NamedSettings::parse_with(text, ':', bare)?;
    let settings = settings.iter().map(|(key, value)| format!(",{key}={value}"));
    Ok(policies.parse(&format!("{name}{}", settings.collect::<String>()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(words: &str) -> String {
        SimMachine::parse(words).expect_err(words).to_string()
    }

    #[test]
    fn each_key_finds_its_owner() {
        let words = "hdd-2008,kernel=ara-2006,cache=1G,fs=ext3,ratio=70,rpm=5400,seed=3";
        let machine = SimMachine::parse(words).expect("a machine");
        assert_eq!(machine.policy.to_string(), "ara-2006,ratio=70");
        assert_eq!((machine.cache, machine.seed), (Bytes::from_gib(1), 3));
        assert_eq!(machine.filesystem, FileSystem::EXT3);
        assert!(machine.model.to_toml().contains("rpm = 5400"));
    }

    #[test]
    fn a_policy_stands_in_one_word() {
        let parse = |text| parse_policy(text, policy::BUILT_IN).map(|spec| spec.to_string());
        assert_eq!(parse("fixed:16").as_deref(), Ok("fixed,blocks=16"));
        assert_eq!(parse("zfs:max_distance=8M").as_deref(), Ok("zfs,max_distance=8M"));
        assert_eq!(parse("none").as_deref(), Ok("none"));
        assert!(parse("none:3").is_err());
        // Two values without a key, or a parameter given twice: both are rejected.
        assert_eq!(parse("ara-2006:70").as_deref(), Ok("ara-2006,ratio=70"));
        for odd in ["ara-2006:70:8", "ara-2006:70:ratio=8"] {
            assert!(parse(odd).is_err(), "{odd}");
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
