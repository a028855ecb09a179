//! Tunables: the kernel's settings that foreread reads, checks, writes, reads back and undoes.
//!
//! This is the only room that writes to `/sys`. Every change is in a [`Journal`] on stable storage
//! before it is made; a [`Tenure`] gives one process the right to change one bdi, has a guard
//! process at its side that puts everything back when the owner dies by any signal, and
//! [`rollback`] puts back what even the guard could not (power loss).

mod access;
mod bdi_lock;
mod error;
mod guard;
mod hold;
mod identity;
mod journal;
mod owner;
mod registry;
mod replay;
mod restore;
mod rollback;
mod setting;
mod tenure;
mod value;
mod vary;

pub use access::{check_writable, read};
pub use error::TunableError;
pub use guard::{GuardCommand, guard_main};
pub use identity::{DeviceIdentity, Identity};
pub use journal::{Change, Header, Journal, JournalError, Owner};
pub use registry::{Checked, REGISTRY, Site, Tunable, find};
pub use replay::{Open, Replay};
pub use restore::{Outcome, Undone};
pub use rollback::{Rollback, Which, rollback, rollback_preview};
pub use setting::{Setting, Settings};
pub use tenure::Tenure;
pub use value::Value;
pub use vary::Vary;
