//! One simulation of a trace.

use std::collections::BTreeMap;
use std::path::Path;

use control::POLICIES;
use model::Spec;
use serde::{Deserialize, Serialize};
use sim::{SimMachine, parse_policy};
use sys::input::InputKind;
use units::text::{NamedSettings, SettingError, parse_choice};
use units::{Bytes, Kib};
use workload::ReplayPace;

use crate::error::BatchError;
use crate::identity::sha256;

/// Field names of a cell, for messages.
pub const SIM_CELL_KEYS: [&str; 9] = [
    "policy",
    "device",
    "cache_bytes",
    "read_ahead_kib",
    "filesystem",
    "pace",
    "compact",
    "seed",
    "settings",
];

const PACES: &[(&str, ReplayPace)] =
    &[("asap", ReplayPace::Asap), ("recorded", ReplayPace::Recorded), ("think", ReplayPace::Think)];

/// One simulation of a trace, as a user describes it. The defaults are those of the target `sim:`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimCell {
    /// Read-ahead algorithm: `NAME[:KEY=VALUE…]`.
    pub policy: String,
    /// Device: `MODEL[,key=value…]`. `MODEL` is a preset or the path of a TOML file.
    pub device: String,
    pub cache_bytes: u64,
    pub read_ahead_kib: u64,
    /// `xfs`, `ext4`, `ext3` or `plain`.
    pub filesystem: String,
    /// `asap`, `recorded` or `think`.
    pub pace: String,
    /// Whether to leave out the parts of files that are never read.
    pub compact: bool,
    pub seed: u64,
    /// Other keys of the simulator (`foreread sim keys`).
    pub settings: BTreeMap<String, String>,
}

impl Default for SimCell {
    fn default() -> Self {
        Self {
            policy: "linux-6.18".to_owned(),
            device: "raid10-2008".to_owned(),
            cache_bytes: Bytes::from_gib(8).get(),
            read_ahead_kib: 128,
            filesystem: "xfs".to_owned(),
            pace: "asap".to_owned(),
            compact: false,
            seed: 0,
            settings: BTreeMap::new(),
        }
    }
}

impl SimCell {
    /// Returns the machine that this cell simulates.
    ///
    /// # Errors
    ///
    /// If a model, policy, key or value does not exist.
    pub fn machine(&self) -> Result<SimMachine, BatchError> {
        let NamedSettings { name, settings } = NamedSettings::parse(&self.device)?;
        let own = ["policy", "kernel", "cache", "read_ahead", "fs", "seed"];
        let others = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut all: Vec<(&str, &str)> = settings.into_iter().chain(others).collect();
        for (at, (key, value)) in all.iter().enumerate() {
            if own.contains(key) {
                let problem = "has a field of its own in a cell";
                return Err(SettingError::invalid(key, value, problem).into());
            }
            if all[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(SettingError::Twice { key: (*key).to_owned() }.into());
            }
        }
        let cache = self.cache_bytes.to_string() + "B";
        let read_ahead = self.read_ahead_kib.to_string() + "K";
        let seed = self.seed.to_string();
        all.extend([
            ("policy", self.policy.as_str()),
            ("cache", &cache),
            ("read_ahead", &read_ahead),
            ("fs", &self.filesystem),
            ("seed", &seed),
        ]);
        let model = model_named(name)?;
        // Parse the policy first: its error message suggests the nearest name.
        parse_policy(&self.policy, POLICIES)?;
        Ok(SimMachine::with_settings(model, &all, POLICIES)?)
    }

    /// Checks every field.
    ///
    /// # Errors
    ///
    /// As [`SimCell::machine`], or if the pace does not exist.
    pub fn check(&self) -> Result<(), BatchError> {
        self.replay_pace()?;
        self.machine().map(drop)
    }

    pub(crate) fn replay_pace(&self) -> Result<ReplayPace, BatchError> {
        Ok(parse_choice("pace", &self.pace, PACES)?)
    }

    /// Returns a text form that is the same for all spellings of the same simulation.
    ///
    /// # Errors
    ///
    /// As [`SimCell::machine`].
    fn canonical(&self) -> Result<String, BatchError> {
        let machine = self.machine()?;
        self.replay_pace()?;
        let SimMachine { policy, replacement, filesystem, arrival, costs, files_at, .. } = &machine;
        let (model, seed) = (machine.model.to_toml(), machine.seed);
        let cache = machine.cache.get();
        let read_ahead: Kib = machine.read_ahead;
        Ok(format!(
            "policy {policy}\ncache_bytes {cache}\nread_ahead_kib {}\nreplacement {replacement:?}\n\
             filesystem {filesystem:?}\narrival {arrival:?}\ncosts {costs:?}\nfiles_at {}\n\
             seed {seed}\npace {}\ncompact {}\nmodel\n{model}",
            read_ahead.get(),
            files_at.get(),
            self.pace,
            self.compact,
        ))
    }

    /// Returns the SHA-256 of the canonical form.
    ///
    /// # Errors
    ///
    /// As [`SimCell::machine`].
    pub(crate) fn digest(&self) -> Result<String, BatchError> {
        Ok(sha256([self.canonical()?.as_bytes()]))
    }
}

fn model_named(name: &str) -> Result<Spec, BatchError> {
    let Some(path) = model::description_path(name) else {
        return Ok(Spec::named(name).map_err(sim::SimError::from)?);
    };
    let text = sys::input::read_text(path, InputKind::MODEL)?;
    let broken = |source| BatchError::ModelFile { path: Path::to_owned(path), source };
    Spec::from_toml(&text).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(cell: SimCell) -> String {
        cell.machine().expect_err("an error").to_string()
    }

    #[test]
    fn the_default_cell_is_the_default_machine() {
        let machine = SimCell::default().machine().unwrap();
        assert_eq!(machine, SimMachine::parse("raid10-2008").unwrap());
    }

    #[test]
    fn wrong_cells_are_refused_with_the_words_of_the_command_line() {
        let cell = SimCell::default;
        assert!(error(SimCell { policy: "linux-6.19".into(), ..cell() }).contains("linux-6.18"));
        assert!(error(SimCell { device: "hdd-2009".into(), ..cell() }).contains("hdd-2008"));
        assert!(error(SimCell { filesystem: "fat".into(), ..cell() }).contains("xfs"));
        assert!(error(SimCell { cache_bytes: 4096, ..cell() }).contains("page cache"));
        assert!(error(SimCell { read_ahead_kib: 3, ..cell() }).contains("whole pages"));
        let twice = SimCell { device: "hdd-2008,cache=1G".into(), ..cell() };
        assert!(error(twice).contains("field of its own"));
        let settings = BTreeMap::from([("rpm".to_owned(), "5400".to_owned())]);
        let twice = SimCell { device: "hdd-2008,rpm=7200".into(), settings, ..cell() };
        assert!(error(twice).contains("twice"));
        assert!(SimCell { pace: "slow".into(), ..cell() }.canonical().is_err());
    }

    #[test]
    fn the_same_simulation_has_one_canonical_form() {
        let cell = SimCell { device: "hdd-2008,rpm=5400".into(), ..SimCell::default() };
        let settings = BTreeMap::from([("rpm".to_owned(), "5400".to_owned())]);
        let same = SimCell {
            device: "hdd-2008".into(),
            settings,
            filesystem: "ext4".into(),
            ..cell.clone()
        };
        assert_eq!(cell.canonical().unwrap(), same.canonical().unwrap());
        let other = SimCell { seed: 1, ..cell.clone() };
        assert_ne!(cell.canonical().unwrap(), other.canonical().unwrap());
    }
}
