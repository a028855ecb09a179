//! Advice together with what it is about on a host.

use host::BdiId;
use serde::Serialize;

use super::VendorPreset;

/// Advice that is about something here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applies {
    #[serde(flatten)]
    pub preset: &'static VendorPreset,
    pub because: String,
    /// The storage that it is about.
    pub storage: Where,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    Bdis(Vec<BdiId>),
    /// The data directory of the software is unknown.
    Unknown,
}
