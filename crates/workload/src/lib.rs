//! Access patterns as declarations: what is read, by whom, in which order.
//!
//! A [`Workload`] says everything about a load: it can be written in TOML, is printed back to the
//! same text, and turns a seed into the same accesses every time. Nothing here touches a file:
//! [`Workload::accesses`] is told how large the files are and says what to read from them.
//!
//! **Cold stays cold.** A block that has been read is in the page cache, and to read it again
//! would measure memory. So every pattern but [`Pattern::Zipf`], whose point is that it repeats
//! itself, reads each block of its files at most once: uniform random reads are a random
//! permutation of the blocks, not draws with replacement. A reader whose blocks are used up has
//! reached its end.

mod access;
mod accesses;
mod declaration;
mod error;
pub mod fio;
mod fio_export;
mod fio_native;
mod outside;
mod parameters;
mod permutation;
mod replay;
mod space;
mod suite;
mod text;
mod varied;
mod zipf;
mod zone;

pub use access::{Access, AccessClass};
pub use accesses::Accesses;
pub use declaration::Workload;
pub use error::WorkloadError;
pub use fio_export::{ExportedJob, export_fio};
pub use outside::{Figure, Metric, Outside};
pub use parameters::{AccessMethod, Hint, Layout, Pattern, Sharing};
pub use replay::{RangeAdvice, ReplayPace, ReplayScript, TraceOpenFile, TraceReplay};
pub use zone::Zone;
