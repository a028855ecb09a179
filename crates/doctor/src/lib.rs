//! The truth about a host: which read-ahead counts, where each value came from and how sure that
//! is ([`origin`]), what is wrong with it ([`findings`]), whether it keeps a policy ([`check`]) and
//! what vendors advise for what runs here ([`presets`]).
//!
//! Nothing here changes anything. [`HostSnapshot::look`] reads all that is to be known once; the
//! rest works on that. What could not be looked at is said ([`HostSnapshot::missing`]), and an
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
