//! Job files of fio as workloads.
//!
//! A job file is read as fio reads it (checked against `init.c`, `parse.c` and `options.c` of fio
//! 3.x): sections in the order of the file, `[global]` sections that add to one another and hold
//! for what follows them, sizes by `kb_base`, `${VARIABLES}`, `include`. What cannot be had is
//! refused with its line and option; what changes nothing that is measured is left out, and that is
//! said. Nothing here touches a file: whoever reads hands in the variables and the included text.
//!
//! Jobs up to the next `stonewall` run at the same time and make one [`FioGroup`], which is one
//! workload: fio runs it ([`FioGroup::for_fio`]), or our own engine where it can
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

pub use area::{Area, Conditions, FioFile, Ground, Stand};
pub use error::{FioError, FioLocation};
pub use ini::{FioEnvironment, Include, Included};
pub use job::{FioAccess, Job};
pub use job_file::{FioGroup, JobFile, Note};
