//! Read-ahead algorithms as pure state machines.
//!
//! An algorithm here sees what a kernel's read-ahead code sees (misses, marked pages, read calls)
//! and answers with the reads that it would submit. It does no I/O and reads no clock, so the code
//! that is checked against a kernel's recorded decisions is the code that the simulator runs.
//!
//! - [`Policy`] is the contract of an algorithm, [`Cache`] what it may ask and order.
//! - [`cache`] is a page cache of folios and marks. [`ReadWalk`] and [`Mapping`] take read calls
//!   and faults through a policy and a cache, in simulations and in the replay of recordings.
//! - [`REGISTRY`] has every algorithm of this crate by name; a [`Catalogue`] adds those of other
//!   crates, and makes a [`PolicySpec`] of `NAME[,KEY=VALUE…]`.
//! - [`AccessEvent`] is what a kernel, live or simulated, reports of its read-ahead.
//! - [`golden`] replays sequences whose decisions were recorded on a real kernel.

pub mod algorithm;
pub mod cache;
mod entry;
mod event;
pub mod golden;
mod mapping;
mod miss_prefetch;
mod page;
mod policy;
mod reader;
mod registry;

pub use cache::{
    Cache, DeviceLimits, FileCache, FileShape, Fill, Memory, PageTree, Submission, Trigger,
    Upcoming,
};
pub use entry::{Entry, Parameter, PolicyArgs, PolicyError};
pub use event::{AccessEvent, EventKind, OpenFileId, Window};
pub use mapping::Mapping;
pub use miss_prefetch::MissPrefetch;
pub use page::{Extent, Folio, Page};
pub use policy::{
    Advice, Call, DeviceCompletions, Eviction, FileId, MapAdvice, Method, Policy, PolicyStats,
    StreamId, TickContext, Touch, TouchOutcome,
};
pub use reader::{PageVisit, ReadWalk, read};
pub use registry::{BUILT_IN, Catalogue, PolicySpec, REGISTRY, build};
