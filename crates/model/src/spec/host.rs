//! What the block layer allows.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::Bytes;

use super::error::{SpecError, check, check_size};
use super::keys::{fields_of, unknown};
use super::told;
use crate::drive::size_text;

/// What the block layer in front of the device allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLimits {
    /// The largest request (`max_sectors_kb`).
    #[serde(default = "default::max_request", with = "size_text")]
    pub max_request: Bytes,
    /// Requests that may be under way at the device (`nr_requests`). Who wants more waits himself,
    /// or, with a scheduler, has his requests sorted while they wait.
    #[serde(default = "default::nr_requests")]
    pub nr_requests: usize,
    /// What orders them while they wait (`scheduler`).
    #[serde(default)]
    pub scheduler: Scheduler,
}

/// Who orders the requests that wait for a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Nobody: they come as they were made.
    #[default]
    None,
    /// An elevator that goes up through the offsets and serves what has waited too long first.
    MqDeadline,
}

impl Scheduler {
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
        }
    }
}

mod default {
    use units::Bytes;

    pub(super) fn max_request() -> Bytes {
        Bytes::from_kib(512)
    }
    pub(super) fn nr_requests() -> usize {
        128
    }
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            max_request: default::max_request(),
            nr_requests: default::nr_requests(),
            scheduler: Scheduler::default(),
        }
    }
}

impl HostLimits {
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        check_size("max_request", self.max_request, 4096, 1 << 30)?;
        check("nr_requests", self.nr_requests as f64, 1.0, 65536.0)
    }

    pub(super) fn from_table(table: Table) -> Result<Self, SpecError> {
        unknown(&table, fields_of::<Self>(), "host")?;
        Value::Table(table)
            .try_into()
            .map_err(|error: toml::de::Error| told::broken("host", &error))
    }
}
