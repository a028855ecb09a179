//! The meaning of an error to the caller: one kind for each exit code (docs/exit-codes.md).

use std::error::Error;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line or an input file is invalid.
    Usage,
    /// A setting has drifted, or a rule is violated.
    Drift,
    Refused,
    NotPermitted,
    /// This machine lacks a requirement of the operation.
    Unsupported,
    CommandNotFound,
    CommandNotExecutable,
    /// The operation failed for any other reason.
    Failed,
}

/// An error that has a kind.
pub trait Classified: Error {
    fn kind(&self) -> ErrorKind;
}

impl ErrorKind {
    /// Returns the kind of an error of a system call.
    pub fn from_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotPermitted
            }
            _ => Self::Failed,
        }
    }

    /// Returns the kind of an error of opening or reading a file that the user named: if there is
    /// no such file, the name is wrong.
    pub fn from_named_file(error: &io::Error) -> Self {
        // std has no stable kind for a loop of symbolic links.
        const ELOOP_ERRNO: i32 = 40;
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData => Self::Usage,
            _ if error.raw_os_error() == Some(ELOOP_ERRNO) => Self::Usage,
            _ => Self::from_io(error),
        }
    }

    /// Returns the kind of an error of starting a command that the user named.
    pub fn from_start(error: io::ErrorKind) -> Self {
        if error == io::ErrorKind::NotFound {
            Self::CommandNotFound
        } else {
            Self::CommandNotExecutable
        }
    }
}
