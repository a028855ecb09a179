//! The devices whose tunables are set.

use std::collections::BTreeSet;

use host::{BdiId, DevNo, Root, Storage, device_facts};
use serde::{Deserialize, Serialize};

/// The scope of a tunable: the part of a [`Storage`] that a [`crate::Tunable`] needs to find its
/// files, and that a journal records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableScope {
    pub bdi: BdiId,
    /// The block devices, as in [`Storage::devices`].
    pub devices: Vec<DevNo>,
    /// The lowest devices, as in [`Storage::leaves`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<DevNo>,
    /// All devices of the stack from the top down, each once. Empty unless the stack was examined
    /// ([`TunableScope::with_layers`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<DevNo>,
}

/// The maximum depth of a stack; a captured tree may contain a loop of links.
const DEEPEST_STACK: usize = 16;

impl TunableScope {
    /// Creates the scope of a storage with its whole stack.
    pub fn with_layers(root: &Root, storage: &Storage) -> Self {
        let mut site = Self::from(storage);
        let mut seen = BTreeSet::new();
        let mut layers = Vec::new();
        let mut level: Vec<DevNo> =
            site.disk_of_bdi().into_iter().chain(storage.devices.iter().copied()).collect();
        for _ in 0..DEEPEST_STACK {
            let mut below = Vec::new();
            for device in level {
                let Ok(facts) = device_facts(root, device) else { continue };
                // A partition has neither queue nor members; its disk has.
                let disk = facts.disk.unwrap_or(device);
                if seen.insert(disk) {
                    layers.push(disk);
                    below.extend(facts.members);
                }
            }
            if below.is_empty() {
                break;
            }
            level = below;
        }
        site.layers = layers;
        site
    }

    /// Creates the scope of settings of the whole machine.
    pub fn machine() -> Self {
        Self::bare("machine")
    }

    fn bare(bdi: &str) -> Self {
        // The names that callers pass are valid.
        let bdi = BdiId::new(bdi).expect("letters, digits and colons");
        Self { bdi, devices: Vec::new(), leaves: Vec::new(), layers: Vec::new() }
    }

    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self::bare("0:0")
    }

    /// Returns the disk that the bdi is named after.
    fn disk_of_bdi(&self) -> Option<DevNo> {
        self.bdi.as_str().parse().ok()
    }

    /// Returns the lowest devices, or the device that the bdi is named after if none are known.
    pub(crate) fn lowest_devices(&self) -> Vec<DevNo> {
        if self.leaves.is_empty() {
            self.disk_of_bdi().into_iter().collect()
        } else {
            self.leaves.clone()
        }
    }

    /// Returns all known devices of the stack.
    pub(crate) fn all_layers(&self) -> Vec<DevNo> {
        let mut all = self.layers.clone();
        for device in self.disk_of_bdi().into_iter().chain(self.leaves.iter().copied()) {
            if !all.contains(&device) {
                all.push(device);
            }
        }
        all
    }
}

impl From<&Storage> for TunableScope {
    fn from(storage: &Storage) -> Self {
        Self {
            bdi: storage.bdi.clone(),
            devices: storage.devices.clone(),
            leaves: storage.leaves.clone(),
            layers: Vec::new(),
        }
    }
}
