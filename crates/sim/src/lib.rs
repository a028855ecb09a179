//! Discrete-event simulation of readers, page cache, read-ahead and device.
//!
//! A [`Machine`] is a device model, a read-ahead policy, a page cache of some size and what a
//! processor takes for its part of a read. A [`Scenario`] is files, open files and readers; a
//! reader is any iterator of [`Step`]s, or what gives them in runs ([`Steps`]), so a declared
//! workload ([`Scenario::of_workload`]) and a trace run the same way. [`run`] lets the readers
//! loose and brings back an [`Outcome`].
//!
//! The policies are those of the room `policy`, which reproduce a kernel's recorded decisions, and
//! the devices those of the room `model`, which the virtual disk uses as well. Nothing here does
//! I/O, reads a clock or draws a number that does not follow from the seed: the same machine and
//! scenario give the same outcome, to the nanosecond.

mod cache;
mod course;
mod disk_layout;
mod error;
mod machine;
pub mod oracle;
mod outcome;
mod queue;
mod run;
mod scenario;
mod words;

pub use course::{Course, CourseSlot};
pub use error::SimError;
pub use machine::{Arrival, Costs, FileSystem, Machine, Replacement};
pub use outcome::{CacheUse, ClassOutcome, DeviceUse, Outcome, ReaderOutcome};
pub use run::{replay, run};
pub use scenario::{
    AccessSteps, FileOnDisk, Limits, OpenFile, Reader, Scenario, SingleSteps, Start, Step, Steps,
    lay_out,
};
pub use words::{KEYS, policy_words};
