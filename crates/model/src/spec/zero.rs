//! The specification of a device with service time zero.

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::drive::size_text;
use super::error::{SpecError, check_size};

/// A device with service time zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZeroSpec {
    #[serde(with = "size_text")]
    pub capacity: Bytes,
}

impl ZeroSpec {
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        check_size("capacity", self.capacity, 1 << 20, 1 << 60)
    }
}
