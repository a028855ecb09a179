//! Which device, and behind what host: the tree that TOML files and the command line describe.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, BytesPerSecond};

use crate::Device;

/// A device and the host limits in front of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What it is called.
    pub name: String,
    /// What the block layer in front of it allows.
    #[serde(default)]
    pub host: HostLimits,
}

/// What the block layer in front of the device allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLimits {
    /// The largest request (`max_sectors_kb`).
    pub max_request: Bytes,
    /// Requests that may wait for the device (`nr_requests`).
    pub nr_requests: usize,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self { max_request: Bytes::from_kib(512), nr_requests: 128 }
    }
}

/// What a whole device can reach, to choose a time dilation by; an upper bound, not a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Data for each second.
    pub throughput: BytesPerSecond,
    /// Requests for each second.
    pub requests: f64,
}

/// Why a text describes no device.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpecError {}

impl Spec {
    /// The preset of this name.
    pub fn preset(_name: &str) -> Option<Self> {
        todo!()
    }

    /// Reads a whole description.
    pub fn from_toml(_text: &str) -> Result<Self, SpecError> {
        todo!()
    }

    /// Writes a description that [`from_toml`](Self::from_toml) reads back as the same.
    pub fn to_toml(&self) -> String {
        todo!()
    }

    /// Sets one value by its key, such as `chunk` or `disk.rpm`.
    pub fn set(&mut self, _key: &str, _value: &str) -> Result<(), SpecError> {
        todo!()
    }

    /// Reads `NAME[,key=value…]`, `NAME` being a preset.
    pub fn parse(_words: &str) -> Result<Self, SpecError> {
        todo!()
    }

    /// Builds the device; the same seed gives the same device.
    pub fn build(&self, _seed: u64) -> Result<Box<dyn Device>, SpecError> {
        todo!()
    }

    /// What the device can reach at best.
    pub fn peak(&self) -> Peak {
        todo!()
    }

    /// What the block layer in front of it allows.
    pub fn host(&self) -> &HostLimits {
        &self.host
    }

    /// The size of the device.
    pub fn capacity(&self) -> Bytes {
        todo!()
    }

    /// What it is, in a few lines for a person.
    pub fn describe(&self) -> String {
        todo!()
    }
}
