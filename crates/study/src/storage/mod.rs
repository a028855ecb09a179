//! Targets opened for trials: storage under the real kernel, and simulated machines.

mod forecast;
mod identity;
mod limits;
mod live;
mod live_session;
mod simulated;
mod sizes;
mod windows;

pub use forecast::Forecast;
pub use limits::{LimitPhase, SettingOutcome, WorkloadLimits, limits};
pub(crate) use live::DiskUse;
pub use live::{LiveTarget, describe as describe_storage};
pub(crate) use live_session::opener;
pub(crate) use simulated::SimulatedSession;
