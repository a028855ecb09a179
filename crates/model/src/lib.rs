//! Service-time models of disks, flash, volumes and arrays, without a clock.
//!
//! A model is a [`Device`]: requests enter with their arrival times, completions leave with their
//! times. Nothing here reads a clock, does I/O or draws a random number except from the seed. So
//! the simulator and the virtual disk, which runs in real time, use the same code and get the same
//! times.

mod agenda;
pub mod array;
mod build;
pub mod calibrate;
pub mod controller;
mod device;
pub mod drive;
pub mod flash;
mod front;
mod jitter;
pub mod layout;
mod order;
mod presets;
pub mod score;
mod slots;
mod spec;
pub mod volume;
pub mod zero;

pub use device::{Completion, Counters, Device, Request, RequestId, RequestKind};
pub use presets::{Preset, presets};
pub use spec::{DeviceSpec, HostLimits, Peak, Scheduler, Spec, SpecError, description_path};
