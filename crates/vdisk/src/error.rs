//! What can go wrong with a virtual disk.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use units::{Bytes, Classified, ErrorKind};

use crate::availability::Unavailable;

/// Why a virtual disk could not be made, used or removed.
#[derive(Debug, Error)]
pub enum VdiskError {
    /// This machine cannot have virtual disks.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The words name no model, or a model that cannot be built.
    #[error(transparent)]
    Model(#[from] model::SpecError),
    /// The file that should describe the model cannot be read.
    #[error(transparent)]
    ModelUnread(#[from] sys::input::InputError),
    /// The file that should describe the model describes none.
    #[error("{}: {source}", .path.display())]
    ModelFile { path: PathBuf, source: model::SpecError },
    /// One of the virtual disk's own keys has a value that it cannot have.
    #[error("{key}={value}: {reason}")]
    BadValue { key: &'static str, value: String, reason: String },
    /// Too small for its filesystem, or larger than the device that is modelled.
    #[error("size={size}: {reason}")]
    BadSize { size: Bytes, reason: String },
    /// A name that could not be a directory's.
    #[error("{name:?} cannot name a virtual disk: use up to 48 letters, digits, '.', '-', '_'")]
    BadName { name: String },
    /// There is one of that name, serving or dead.
    #[error(
        "there is a virtual disk {name} already: choose another name, or `foreread vdisk remove \
         {name}`"
    )]
    NameTaken { name: String },
    /// There is none of that name.
    #[error("there is no virtual disk {name}; {}", those_known(.known))]
    NoSuchDisk { name: String, known: Vec<String> },
    /// The disk is there but nobody serves it any more.
    #[error("the server of virtual disk {name} is dead: `foreread vdisk remove {name}` cleans up")]
    Dead { name: String },
    /// The server did not come up.
    #[error("the server of virtual disk {name} did not start: {message}")]
    Server { name: String, message: String },
    /// The server answered with an error, or with what is no answer.
    #[error("virtual disk {name}: {message}")]
    Control { name: String, message: String },
    /// A program that was called to help failed.
    #[error("{program} failed ({status}): {stderr}")]
    Program {
        program: String,
        status: String,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// Somebody works on the disk's filesystem.
    #[error("{} is in use: leave it (a shell, a running program) and try again", .path.display())]
    Busy { path: PathBuf },
    /// Another process makes it just now, or made it for itself alone.
    #[error(
        "virtual disk {name} belongs to a foreread that is at work: it removes the disk when it \
         ends"
    )]
    Held { name: String },
    /// There is not enough memory for the disk.
    #[error(
        "a virtual disk keeps what is written to it in memory, and {free} of memory is too \
         little: free some, {needed} at least", free = free.rounded(), needed = needed.rounded()
    )]
    Memory {
        /// What a disk needs to begin with.
        needed: Bytes,
        free: Bytes,
    },
    /// An operation on a file or device failed.
    #[error("{doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    /// A call that concerns no file failed.
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
    /// For `map_err`: an operation on `path` failed.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// For `map_err`: a call that concerns no file failed.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// Bytes that are no text are a mistake of whoever named the file, not of the system.
fn those_known(names: &[String]) -> String {
    if names.is_empty() { "there are none".to_owned() } else { format!("there are {names:?}") }
}
