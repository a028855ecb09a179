//! A virtual disk: a file that a FUSE server delivers with the timing of a device model, a loop
//! device on that file, and a file system on the loop device.
//!
//! Everything above the loop device is the kernel's own: page cache, read-ahead, file system, block
//! layer. Only the service times come from a [`model`]. The parts, from top to bottom:
//!
//! ```text
//! filesystem mounted at <runtime>/vdisk/<name>/mnt
//! loop device direct I/O, 4 KiB blocks, no scheduler, queue as deep as the model's
//! FUSE file <runtime>/vdisk/<name>/fuse/disk, direct I/O, requests of up to 1 MiB
//! server a process of its own: FUSE workers, one timer thread, sparse memory
//! ```
//!
//! A disk that is too fast for the machine is *dilated*: all times of the model are multiplied by a
//! factor. Read-ahead does not depend on absolute time, so windows and queues do not change.
//! Reports divide times by the factor.
//!
//! The server never waits for its own disk: it locks its memory, writes nothing through its mount,
//! and leaves mounting and unmounting to other processes.

mod availability;
mod config;
mod control;
mod counters;
mod disk;
mod error;
mod filesystem;
mod head_start;
mod layout;
mod loop_device;
mod mkfs;
mod record;
mod registry;
mod server;
mod teardown;
mod users;
mod waking;

pub use availability::{Unavailable, availability};
pub use config::{Dilation, DiskConfig, model_named};
pub use counters::{DiskCounters, Lateness};
pub use disk::{Lifetime, ServerCommand, VirtualDisk};
pub use error::VdiskError;
pub use filesystem::Filesystem;
pub use loop_device::QueueSettings;
pub use record::DiskRecord;
pub use registry::{DiskListing, DiskState, is_dead, is_held, list, remove, show};
pub use server::serve_main;
