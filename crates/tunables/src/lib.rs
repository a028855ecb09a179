//! Tunables: the kernel settings that foreread reads, checks, writes, reads back and undoes.
//!
//! Only this crate writes to `/sys`. Every change is in a [`Journal`] on stable storage before it
//! is made. A [`BdiLease`] gives one process the right to change one bdi, with a guard process that
//! restores all settings if the owner is killed. [`rollback`] restores what even the guard could
//! not restore, such as after a power loss.

mod access;
mod apply;
mod bdi_lock;
mod cost;
mod error;
mod guard;
mod hold;
mod identity;
mod journal;
mod journal_entry;
mod lease;
mod marks;
mod owner;
pub mod persist;
mod published;
mod registry;
mod replay;
mod restore;
mod rollback;
mod scope;
mod setting;
mod side_effect;
mod value;
mod vary;

pub use access::{check_writable, read, read_all};
pub use apply::{
    AppliedPlan, AppliedSettings, ApplyPlan, DriftState, PlannedWrite, VerifiedValue, apply,
    plan_apply, remembered, state_of, verify,
};
pub use bdi_lock::DeviceLock;
pub use cost::{DEFAULT_STREAMS, LARGEST_SHARE, MemoryCost, memory_cost, refuse_costly};
pub use error::{JournalError, TunableError};
pub use guard::{GuardCommand, guard_main};
pub use identity::{DeviceIdentity, Identity, IdentityMatch};
pub use journal::Journal;
pub use journal_entry::{
    JournalHeader, JournalOwner, JournalPurpose, JournaledChange, RestoreOutcome, read_own,
};
pub use lease::BdiLease;
pub use published::{PublishedJournal, PublishedSetting, published};
pub use registry::{REGISTRY, SideEffect, Tunable, ValidatedValue, declare, find, freebsd};
pub use replay::{OpenChange, Replay};
pub use restore::RestoreReport;
pub use rollback::{LivingRun, RollbackReport, RollbackSelection, rollback, rollback_preview};
pub use scope::TunableScope;
pub use setting::{Setting, TunableValues};
pub use value::Value;
pub use vary::Vary;
