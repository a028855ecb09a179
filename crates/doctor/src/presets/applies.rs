//! A recommendation and the storage that it applies to.

use host::BdiId;
use serde::Serialize;

use super::VendorPreset;

/// A recommendation that applies to this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applies {
    #[serde(flatten)]
    pub preset: &'static VendorPreset,
    pub because: String,
    pub storage: AppliesTo,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AppliesTo {
    Bdis(Vec<BdiId>),
    /// The data directory of the software is unknown.
    Unknown,
}
