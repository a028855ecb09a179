//! The limits of the host's block layer.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use units::Bytes;

use super::drive::size_text;
use super::error::{SpecError, check, check_size};
use super::keys::{fields_of, unknown};
use super::toml_error;

/// The limits of the block layer in front of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostLimits {
    /// The maximum size of a request (`max_sectors_kb`).
    #[serde(with = "size_text")]
    pub max_request: Bytes,
    /// Maximum number of requests in flight (`nr_requests`). Further requests wait; a scheduler
    /// sorts waiting requests.
    pub nr_requests: usize,
    /// The order of waiting requests (`scheduler`).
    pub scheduler: Scheduler,
    /// Whether the device tells the host that it rotates (`rotational`); `None`: as it does. A file
    /// system on another machine tells nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
}

/// The order in which waiting requests go to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// In order of arrival.
    #[default]
    None,
    /// An elevator in ascending order of offsets, which gives priority to requests that have waited
    /// too long.
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

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            max_request: Bytes::from_kib(512),
            nr_requests: 128,
            scheduler: Scheduler::default(),
            rotational: None,
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
            .map_err(|error: toml::de::Error| toml_error::in_table("host", &error))
    }
}
