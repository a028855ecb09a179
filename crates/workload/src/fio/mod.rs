//! Job files of fio as workloads.
//!
//! A job file is read as fio reads it (checked against `init.c`, `parse.c` and `options.c` of fio
//! 3.x): sections in the order of the file, `[global]` sections that add to one another and hold
//! for what follows them, sizes by `kb_base`, `${VARIABLES}`, `include`. What cannot be had is
//! refused with its line and option; what changes nothing that is measured is left out, and that is
//! said. Nothing here touches a file: whoever reads hands in the variables and the included text.
//!
//! Jobs up to the next `stonewall` run at the same time and make one [`Group`], which is one
//! workload: fio runs it ([`Group::for_fio`]), or our own engine where it can
//! ([`Group::native`]).

mod area;
mod error;
mod export;
mod ini;
mod job;
mod job_file;
mod meaning;
mod native;
mod options;
mod pitfalls;
mod value;

pub use area::{Area, Conditions, FioFile, Ground, Stand};
pub use error::{FioError, Place};
pub use export::{Exported, export};
pub use ini::{Include, Included, Surroundings};
pub use job::{Access as FioAccess, Job};
pub use job_file::{Group, JobFile, Note};
