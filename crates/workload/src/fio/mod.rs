//! Job files of fio as workloads.
//!
//! A job file is parsed as by fio (compared with `init.c`, `parse.c` and `options.c` of fio 3.x):
//! sections in order, cumulative `[global]` sections that apply to what follows, sizes by
//! `kb_base`, `${VARIABLES}`, `include`. Unsupported options are rejected with line and name;
//! options that do not affect measurements are ignored with a note. This module accesses no files:
//! the caller supplies variables and included text.
//!
//! Jobs up to the next `stonewall` run concurrently and form one [`FioGroup`], which is one
//! workload. Either fio runs it ([`FioGroup::for_fio`]), or our own engine if possible
//! ([`FioGroup::native`]).

mod area;
pub(crate) mod error;
mod ini;
pub(crate) mod job;
pub(crate) mod job_file;
pub(crate) mod meaning;
pub(crate) mod options;
mod pitfalls;
pub(crate) mod value;

pub use area::{Area, Conditions, FileUse, FioFile, ReplacementFile};
pub use error::{FioError, FioLocation};
pub use ini::{FioEnvironment, Include, Included};
pub use job::{FioAccess, Job};
pub use job_file::{FioGroup, JobFile, Note};
