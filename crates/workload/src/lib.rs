//! Access patterns as declarations: which data is read, by which readers, in which order.
//!
//! A [`Workload`] describes a load completely: it can be written as TOML, is printed as the same
//! text, and gives the same accesses for the same seed. This crate accesses no files:
//! [`Workload::accesses`] takes the sizes of the files and returns the reads.
//!
//! **Cold stays cold.** A block that was read is in the page cache, and reading it again would
//! measure memory. Therefore every pattern except [`Pattern::Zipf`], which repeats blocks on
//! purpose, reads each block of its files at most once: uniform random reads are a random
//! permutation of the blocks, not draws with replacement. A reader finishes after its last block.

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
pub use parameters::{AccessMethod, Hint, Layout, Pattern, RangeAdvice, Sharing};
pub use replay::{
    AccessSource, LoadedAccesses, ReplayPace, ReplayScript, TraceOpenFile, TraceReplay,
};
pub use zone::Zone;
