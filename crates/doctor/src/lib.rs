//! Explains a host: the effective read-ahead, the origin and confidence of each value ([`origin`]),
//! problems ([`findings`]), compliance with a policy ([`check`]) and vendors' recommendations for
//! the software that runs ([`presets`]).
//!
//! This crate changes nothing. [`HostSnapshot::look`] reads all facts once; the other functions
//! work on the snapshot. It lists the facts that could not be read ([`HostSnapshot::missing`]). An
//! origin that cannot be determined is `unknown`.

pub mod check;
mod claims;
mod diagnose;
mod diagnosis;
mod evidence;
mod finding;
pub mod findings;
pub mod host_presets;
pub mod origin;
pub mod plan;
pub mod presets;
mod snapshot;
mod windows;

pub use diagnose::diagnose;
pub use diagnosis::{Diagnosis, OpenHere};
pub use evidence::Evidence;
pub use finding::{Finding, Fix, Remedy, Severity};
pub use origin::{Confidence, Origin, OriginKind};
pub use snapshot::{HostSnapshot, Missing, OwnChange};
pub use windows::{OpenWindow, Windows};
