//! Read-ahead algorithms as pure state machines.
//!
//! An algorithm here sees what a kernel's read-ahead code sees (misses, marked pages, read calls)
//! and answers with the reads that it would submit. It does no I/O and reads no clock, so the code
//! that is checked against a kernel's recorded decisions is the code that the simulator runs.
//!
//! - [`Policy`] is the contract of an algorithm, [`Cache`] what it may ask and order.
//! - [`cache`] is a page cache of folios and marks, with the kernel's walk over it; [`read`] and
//!   [`Mapping`] lead read calls and faults through a policy and a cache.
//! - [`REGISTRY`] has every algorithm by name; [`build`] makes one from `NAME[,KEY=VALUE…]`.
//! - [`control`] decides from outside which window an open file should have, and what to prefetch;
//!   the algorithm `auto` is that above Linux 6.18.
//! - [`golden`] replays sequences whose decisions were recorded on a real kernel.

pub mod algorithm;
pub mod cache;
pub mod control;
pub mod golden;
mod mapping;
mod page;
mod policy;
mod reader;
mod registry;

pub use cache::{
    Cache, DeviceLimits, FileCache, FileShape, Fill, Memory, PageTree, Submission, Trigger,
    Upcoming,
};
pub use mapping::Mapping;
pub use page::{Extent, Folio, Page};
pub use policy::{
    Account, Advice, Call, Eviction, FileId, MapAdvice, Method, Outcome, Policy, StreamId,
    Surroundings, Touch,
};
pub use reader::read;
pub use registry::{Entry, Parameter, PolicyError, REGISTRY, Settings, build, named};
