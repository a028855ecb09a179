//! Which device a bdi was.

use serde::{Deserialize, Serialize};

/// What tells a device from another that later has the same number, as loop devices do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {}
