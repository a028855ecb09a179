//! Service-time models of disks, flash, volumes and arrays, without a clock.
//!
//! A model is a [`Device`]: requests go in with the time of their arrival, completions come out
//! with the time at which they happened. Nothing here reads a clock, does I/O or draws a random
//! number that does not follow from the seed; so the simulator and the virtual disk, which works
//! in real time, run the same code and get the same times.

mod device;
pub mod drive;
mod presets;
mod spec;

pub use device::{Completion, Counters, Device, Request, RequestId, RequestKind};
pub use presets::{Preset, presets};
pub use spec::{HostLimits, Peak, Spec, SpecError};
