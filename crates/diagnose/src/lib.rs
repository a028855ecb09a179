//! The truth about a host: which read-ahead counts, where each value came from and how sure that
//! is ([`origin`]), what is wrong with it ([`findings`]), whether it keeps a policy ([`check`]) and
//! what vendors advise for what runs here ([`presets`]).
//!
//! Nothing here changes anything. [`Scene::look`] reads all that is to be known once; the rest
//! works on that. What could not be looked at is said ([`Scene::missing`]), and an origin that
//! cannot be told is `unknown`.

pub mod check;
mod claims;
mod diagnosis;
mod evidence;
pub mod findings;
pub mod origin;
pub mod plan;
pub mod presets;
mod scene;
mod windows;

pub use diagnosis::{Diagnosis, OpenHere, diagnose};
pub use evidence::Evidence;
pub use findings::{Found, Mend, Remedy, Severity};
pub use origin::{Confidence, Origin, OriginKind};
pub use scene::{Missing, OwnChange, Scene};
pub use windows::{OpenWindow, Windows};
