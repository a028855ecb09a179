//! Errors of data files and trials.

use std::io;
use std::path::{Path, PathBuf};

use host::{DevNo, HostError};
use thiserror::Error;
use units::{Bytes, Classified, ErrorKind, Nanos};
use workload::WorkloadError;
use workload::fio::FioError;

/// An error that prevented a trial. Messages name the path and, if possible, a remedy.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The workload is invalid, or does not fit the files.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call on a path failed.
    #[error("cannot {action} {path}", path = path.display())]
    Io {
        /// The attempted action, such as `open`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{path} is on a read-only file system: name an existing file on it instead",
        path = path.display()
    )]
    ReadOnly { path: PathBuf },
    /// The file system lacks space for the files.
    #[error(
        "{path}: the files need {needed}, but only {available} is free: free some space or set a \
         smaller --size",
        path = path.display(),
        needed = needed.rounded(),
        available = available.rounded()
    )]
    NoSpace {
        path: PathBuf,
        needed: Bytes,
        /// Free space; a quota may leave this user less.
        available: Bytes,
        /// The system's error; `None` if the check of the free space failed.
        source: Option<io::Error>,
    },
    /// Another process is using the files in this directory.
    #[error(
        "{path} is in use by another foreread process: wait until it exits",
        path = path.display()
    )]
    Busy { path: PathBuf },
    /// A directory with foreread's name that foreread did not create.
    #[error("{path} was not created by foreread, so it is not used: {why}", path = path.display())]
    Foreign { path: PathBuf, why: String },
    /// The target is neither a file nor a block device.
    #[error("{path} is neither a file nor a block device", path = path.display())]
    NotReadable { path: PathBuf },
    /// The file has holes; reads of holes do not reach the device.
    #[error("{path} has holes: its reads would not reach the device", path = path.display())]
    Holes { path: PathBuf },
    /// The target is empty.
    #[error("{path} is empty", path = path.display())]
    Empty { path: PathBuf },
    /// The target is too small for the workload.
    #[error(
        "{path} is {size}: the workload needs at least {needed}; use a larger target, fewer \
         readers or smaller blocks", path = path.display(), size = size.rounded(),
         needed = needed.rounded()
    )]
    TooSmall { path: PathBuf, size: Bytes, needed: Bytes },
    /// A file became shorter while it was read.
    #[error(
        "{path} shrank while it was read: nothing left at {offset}",
        path = path.display()
    )]
    Shrank { path: PathBuf, offset: Bytes },
    #[error("cannot read {path} at {offset}", path = path.display())]
    Read { path: PathBuf, offset: Bytes, source: io::Error },
    /// A device that was present at the start has disappeared.
    #[error("device {device} has disappeared")]
    DeviceGone { device: DevNo },
    /// The data set lacks files that the workload needs.
    #[error("workload {workload} needs other files than those created")]
    NotLaidOut { workload: String },
    /// Readers are still blocked in the kernel after the trial.
    #[error(
        "{readers} readers are still waiting for the storage {waited} after the end of the trial"
    )]
    Stuck { readers: usize, waited: Nanos },
    /// An option has an invalid value.
    #[error("{option} = {value}: must be {wanted}")]
    BadOption { option: &'static str, value: String, wanted: &'static str },
    /// A program that the workload needs is not installed.
    #[error("{program} is not installed: apt-get install {package}")]
    ToolMissing { program: &'static str, package: &'static str },
    /// An external program failed.
    #[error("{program}: {problem}")]
    Tool { program: String, problem: String },
    /// The memory of a trial cannot be limited on this system.
    #[error("memory cannot be limited here: {problem}")]
    NoMemoryLimit { problem: String },
    /// The memory limit of the trial is too small even for the pages that are being read.
    #[error(
        "the reads of this trial do not fit into {limit} of memory: raise the limit, or use fewer \
         streams or a smaller window"
    )]
    OutOfMemory { limit: Bytes },
    /// A workload that writes was used on existing data, which foreread only reads.
    #[error(
        "{path}: {workload} writes, but existing data is only read: use a directory",
        path = path.display()
    )]
    OnlyRead { path: PathBuf, workload: String },
    /// The fio job file uses an unsupported option.
    #[error("fio job file: {0}")]
    Jobs(#[from] FioError),
    /// The [`Cancel`](crate::Cancel) was set.
    #[error("interrupted")]
    Cancelled,
}

impl Classified for BenchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Workload(_)
            | Self::BadOption { .. }
            | Self::NotReadable { .. }
            | Self::Empty { .. }
            | Self::Holes { .. }
            | Self::TooSmall { .. }
            | Self::Jobs(_)
            | Self::OutOfMemory { .. }
            | Self::OnlyRead { .. }
            | Self::NotLaidOut { .. } => ErrorKind::Usage,
            Self::ReadOnly { .. } | Self::ToolMissing { .. } | Self::NoMemoryLimit { .. } => {
                ErrorKind::Unsupported
            }
            Self::Busy { .. } | Self::Foreign { .. } | Self::NoSpace { .. } => ErrorKind::Refused,
            Self::Host(error) => error.kind(),
            Self::Io { source, .. } | Self::Read { source, .. } => ErrorKind::from_io(source),
            Self::Shrank { .. }
            | Self::DeviceGone { .. }
            | Self::Stuck { .. }
            | Self::Tool { .. }
            | Self::Cancelled => ErrorKind::Failed,
        }
    }
}

impl BenchError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// Returns the error for a failed write in `dir`.
pub(crate) fn write_error(dir: &Path, source: io::Error) -> BenchError {
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => BenchError::ReadOnly { path: dir.to_owned() },
        _ => BenchError::io("write files in", dir)(source),
    }
}
