//! A recommendation with the storage to which it applies.

use host::BdiId;
use serde::Serialize;

use super::VendorPreset;

/// A recommendation that applies here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applies {
    #[serde(flatten)]
    pub preset: &'static VendorPreset,
    pub because: String,
    pub storage: Where,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    Bdis(Vec<BdiId>),
    /// The data directory of the software is unknown.
    Unknown,
}
