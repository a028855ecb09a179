//! Errors of virtual disks.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use units::{Bytes, Classified, ErrorKind};

use crate::availability::Unavailable;

/// The reason why a virtual disk could not be created, used or removed.
#[derive(Debug, Error)]
pub enum VdiskError {
    /// This machine does not support virtual disks.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The specification names no model, or an invalid one.
    #[error(transparent)]
    Model(#[from] model::SpecError),
    /// The model file cannot be read.
    #[error(transparent)]
    ModelUnread(#[from] sys::input::InputError),
    /// The model file is not a valid model.
    #[error("{}: {source}", .path.display())]
    ModelFile { path: PathBuf, source: model::SpecError },
    /// One of the virtual disk's own keys has an invalid value.
    #[error("{key}={value}: {reason}")]
    BadValue { key: &'static str, value: String, reason: String },
    /// The disk is too small for its file system, or larger than the modelled device.
    #[error("size={size}: {reason}")]
    BadSize { size: Bytes, reason: String },
    /// The name is invalid for a directory.
    #[error("{name:?} cannot name a virtual disk: use up to 48 letters, digits, '.', '-', '_'")]
    BadName { name: String },
    /// A disk with this name exists, running or dead.
    #[error(
        "virtual disk {name} already exists: choose another name, or `foreread vdisk remove \
         {name}`"
    )]
    NameTaken { name: String },
    /// No disk has this name.
    #[error("there is no virtual disk {name}; {}", those_known(.known))]
    NoSuchDisk { name: String, known: Vec<String> },
    /// The disk exists but its server is dead.
    #[error("the server of virtual disk {name} is dead: `foreread vdisk remove {name}` cleans up")]
    Dead { name: String },
    /// The server did not start.
    #[error("the server of virtual disk {name} did not start: {message}")]
    Server { name: String, message: String },
    /// The server reported an error or sent an invalid reply.
    #[error("virtual disk {name}: {message}")]
    Control { name: String, message: String },
    /// A helper program failed.
    #[error("{program} failed ({status}): {stderr}")]
    Program {
        program: String,
        status: String,
        /// The program's standard error.
        stderr: String,
    },
    /// The disk's file system is in use.
    #[error(
        "{} is in use: close the programs that use it (a shell, for example) and retry",
        .path.display()
    )]
    Busy { path: PathBuf },
    /// Another process is creating the disk, or has created it for itself.
    #[error(
        "virtual disk {name} belongs to a running foreread process, which removes it when it exits"
    )]
    Held { name: String },
    /// Free memory is too small for a disk.
    #[error(
        "a virtual disk keeps its data in memory, and {free} of free memory is too little: free \
         up at least {needed}", free = free.rounded(), needed = needed.rounded()
    )]
    Memory {
        /// Minimum for a disk.
        needed: Bytes,
        free: Bytes,
    },
    /// An operation on a file or device failed.
    #[error("{doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// A system call without a file failed.
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
}

impl Classified for VdiskError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable(_) => ErrorKind::Unsupported,
            Self::Model(_)
            | Self::ModelFile { .. }
            | Self::BadValue { .. }
            | Self::BadSize { .. }
            | Self::BadName { .. }
            | Self::NameTaken { .. }
            | Self::NoSuchDisk { .. } => ErrorKind::Usage,
            Self::Busy { .. } | Self::Held { .. } | Self::Memory { .. } => ErrorKind::Refused,
            Self::Io { source, .. } | Self::System { source, .. } => ErrorKind::from_io(source),
            Self::ModelUnread(error) => error.kind(),
            Self::Dead { .. }
            | Self::Server { .. }
            | Self::Control { .. }
            | Self::Program { .. } => ErrorKind::Failed,
        }
    }
}

impl VdiskError {
    /// Returns a closure for `map_err`: an operation on `path` failed.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Returns a closure for `map_err`: a system call without a file failed.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// Lists the existing disks for an error message.
fn those_known(names: &[String]) -> String {
    if names.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    }
}
