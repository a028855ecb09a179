//! A virtual disk in the hands of whoever made it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use host::{DevNo, Dirs};

use crate::config::Config;
use crate::counters::Counters;
use crate::error::VdiskError;
use crate::registry::Record;

/// How the server is started: a program that calls [`serve_main`](crate::serve_main) with the
/// arguments that follow `args`.
#[derive(Clone, Debug)]
pub struct ServerCommand {
    /// The program, foreread itself as a rule.
    pub program: PathBuf,
    /// What makes it serve, `["vdisk", "serve"]` for foreread.
    pub args: Vec<OsString>,
}

/// How long a virtual disk lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is removed.
    Kept,
    /// Until it is removed, dropped, or its creator ends in whatever way.
    DiesWithMe,
}

/// A virtual disk that is being served.
#[derive(Debug)]
pub struct VirtualDisk {
    record: Record,
}

impl VirtualDisk {
    /// Makes a disk: starts its server, sets up the loop device, makes the filesystem, mounts it.
    pub fn create(
        dirs: &Dirs,
        config: Config,
        server: &ServerCommand,
        lifetime: Lifetime,
    ) -> Result<Self, VdiskError> {
        todo!()
    }

    /// The kept disk of this name.
    pub fn open(dirs: &Dirs, name: &str) -> Result<Self, VdiskError> {
        todo!()
    }

    /// What was made, with every setting that it got.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Where its filesystem is mounted; `None` for a raw disk.
    pub fn mountpoint(&self) -> Option<&Path> {
        self.record.mountpoint.as_deref()
    }

    /// Its block device.
    pub fn device(&self) -> &Path {
        &self.record.device
    }

    /// The number of its block device.
    pub fn devno(&self) -> DevNo {
        todo!()
    }

    /// What to measure on: the mount point, or the device of a raw disk.
    pub fn target(&self) -> &Path {
        self.mountpoint().unwrap_or_else(|| self.device())
    }

    /// How many times slower than its model it runs.
    pub fn dilation(&self) -> f64 {
        self.record.dilation
    }

    /// Whether the model's times are kept. Off, every request is served at once: for laying out
    /// files. A new disk is timed.
    pub fn set_timing(&self, on: bool) -> Result<(), VdiskError> {
        todo!()
    }

    /// What the disk has counted so far.
    pub fn counters(&self) -> Result<Counters, VdiskError> {
        todo!()
    }

    /// Begins to count anew.
    pub fn reset_counters(&self) -> Result<(), VdiskError> {
        todo!()
    }

    /// Unmounts it, ends its server and leaves nothing behind.
    pub fn remove(self) -> Result<(), VdiskError> {
        todo!()
    }
}
