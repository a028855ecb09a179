//! Service-time models of disks, flash, volumes and arrays, without a clock.
//!
//! A model is a [`Device`]: it takes requests with their arrival times and returns completions with
//! their times. The models read no clock and do no I/O, and derive all random numbers from a seed.
//! The simulator and the virtual disk, which runs in real time, therefore use the same code and get
//! the same times.

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
