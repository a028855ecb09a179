//! Discrete-event simulation of readers, page cache, read-ahead and device.
//!
//! A [`SimMachine`] is a device model, a read-ahead policy, a page cache and the processor costs of
//! reads. A [`Scenario`] is files, open files and readers. A reader is any iterator of
//! [`ReadStep`]s, or a source of runs of steps ([`Steps`]), so a declared workload
//! ([`Scenario::of_workload`]) and a trace run the same way. [`run`] runs the readers and returns a
//! [`SimOutcome`].
//!
//! The policies are those of the crate `policy`, which reproduce a kernel's recorded decisions. The
//! devices are those of the crate `model`, which the virtual disk also uses. The simulator does no
//! I/O, reads no clock and derives every random number from the seed: the same machine and scenario
//! give the same outcome, to the nanosecond.

mod cache;
mod delayed;
mod disk_layout;
mod error;
mod machine;
pub mod oracle;
mod outcome;
mod queue;
mod run;
mod scenario;
mod spec;
mod timeline;

pub use error::SimError;
pub use machine::{Arrival, Costs, FileSystem, Replacement, SimMachine};
pub use outcome::{CacheUse, ClassOutcome, DeviceUse, ReaderOutcome, SimOutcome};
pub use run::{replay, run, run_lists, run_workload};
pub use scenario::{
    AccessSteps, FileOnDisk, Limits, ReadStep, Reader, Scenario, SimOpenFile, SingleSteps, Start,
    Steps, lay_out,
};
pub use spec::{KEYS, parse_policy};
pub use timeline::{SimTimeline, TimelineSlot};
