//! Read-ahead algorithms as pure state machines.
//!
//! An algorithm has the same inputs as a kernel's read-ahead code (misses, marked pages, read
//! calls) and submits reads. It does no I/O and reads no clock. Therefore the simulator runs the
//! same code that is checked against the recorded decisions of a kernel.
//!
//! - [`Policy`] is the interface of an algorithm, [`Cache`] its access to the page cache.
//! - [`cache`] is a page cache of folios and marks. [`ReadWalk`] and [`Mapping`] pass read calls
//!   and faults through a policy and a cache, in simulations and in replays of recordings.
//! - [`REGISTRY`] lists the algorithms of this crate by name. A [`Catalogue`] adds those of other
//!   crates, and parses `NAME[,KEY=VALUE…]` into a [`PolicySpec`].
//! - [`AccessEvent`] is a read-ahead event of a real or simulated kernel.
//! - [`golden`] replays sequences whose decisions were recorded on a real kernel.

pub mod algorithm;
pub mod cache;
mod directory;
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
pub use directory::{
    FileId, FileTree, ListedFile, ListedTree, TreeWalk, next_directories, reading_orders,
};
pub use entry::{Entry, Parameter, PolicyArgs, PolicyError};
pub use event::{AccessEvent, EventKind, OpenFileId, Window};
pub use mapping::Mapping;
pub use miss_prefetch::MissPrefetch;
pub use page::{Extent, Folio, Page};
pub use policy::{
    Advice, Call, DeviceCompletions, Eviction, MapAdvice, Method, Policy, PolicyStats, StreamId,
    TickContext, Touch, TouchOutcome,
};
pub use reader::{PageVisit, ReadWalk, read};
pub use registry::{BUILT_IN, Catalogue, PolicySpec, REGISTRY, build};
