//! Tunables: the kernel's settings that foreread reads, checks, writes, reads back and undoes.
//!
//! This is the only room that writes to `/sys`. Every change is in a [`Journal`] on stable storage
//! before it is made; a [`Tenure`] gives one process the right to change one bdi, has a guard
//! process at its side that puts everything back when the owner dies by any signal, and
//! [`rollback`] puts back what even the guard could not (power loss).

mod access;
mod apply;
mod bdi_lock;
mod cost;
mod error;
mod guard;
mod hold;
mod identity;
mod journal;
mod owner;
pub mod persist;
mod published;
mod registry;
mod replay;
mod restore;
mod rollback;
mod setting;
mod site;
mod tenure;
mod upset;
mod value;
mod vary;

pub use access::{check_writable, read, read_all};
pub use apply::{
    Applied, ApplyPlan, PlannedWrite, Remembered, State, Verified, apply, plan_apply, remembered,
    state_of, verify,
};
pub use bdi_lock::DeviceLock;
pub use cost::{Cost, DEFAULT_STREAMS, LARGEST_SHARE, memory_cost, refuse_costly};
pub use error::TunableError;
pub use guard::{GuardCommand, guard_main};
pub use identity::{DeviceIdentity, Identity, Likeness};
pub use journal::{Change, Header, Journal, JournalError, Owner, Purpose, read_own};
pub use published::{Published, PublishedSetting, published};
pub use registry::{Checked, REGISTRY, Tunable, Upset, declare, find, freebsd};
pub use replay::{Open, Replay};
pub use restore::{Outcome, Undone};
pub use rollback::{LivingRun, Rollback, Which, rollback, rollback_preview};
pub use setting::{Setting, Settings};
pub use site::Site;
pub use tenure::Tenure;
pub use value::Value;
pub use vary::Vary;
