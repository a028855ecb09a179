//! Why there is no sample.

use std::io;
use std::path::{Path, PathBuf};

use host::{DevNo, HostError};
use thiserror::Error;
use units::{Bytes, Classified, ErrorKind, Nanos};
use workload::WorkloadError;
use workload::fio::FioError;

/// What may go wrong with files and trials. Each names the path and, where there is something to
/// do, says what.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The workload is impossible, or does not fit the files.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call on a path did not work.
    #[error("cannot {action} {path}", path = path.display())]
    Io {
        /// What was tried, such as `open`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{path} is on a read-only file system: name an existing file on it instead",
        path = path.display()
    )]
    ReadOnly { path: PathBuf },
    /// Too little room for the files.
    #[error(
        "{path}: {needed} are needed for the files, {available} are free: make room or ask for \
         smaller files with --size", path = path.display(), needed = needed.rounded(),
         available = available.rounded()
    )]
    NoSpace {
        path: PathBuf,
        needed: Bytes,
        /// What is free; a quota may leave this user less.
        available: Bytes,
        /// The system's reason, where it was the system that refused.
        source: Option<io::Error>,
    },
    /// Another process uses the files in this directory.
    #[error("{path} is in use by another foreread: wait for it to end", path = path.display())]
    Busy { path: PathBuf },
    /// What stands in the place of our directory is not ours.
    #[error("{path} was not made by foreread, so it is left alone: {why}", path = path.display())]
    Foreign { path: PathBuf, why: String },
    /// The thing to be read is neither file nor block device.
    #[error("{path} is neither a file nor a block device", path = path.display())]
    NotReadable { path: PathBuf },
    /// A file has holes, which no device is asked for.
    #[error("{path} has holes: its reads would not reach the device", path = path.display())]
    Holes { path: PathBuf },
    /// Nothing is in the thing to be read.
    #[error("{path} is empty", path = path.display())]
    Empty { path: PathBuf },
    /// The thing to be read is too small for the workload.
    #[error(
        "{path} has {size}: the workload needs {needed} or more; name a larger one, or use fewer \
         readers or smaller blocks", path = path.display(), size = size.rounded(),
         needed = needed.rounded()
    )]
    TooSmall { path: PathBuf, size: Bytes, needed: Bytes },
    /// A file became shorter while it was read.
    #[error(
        "{path} shrank while it was read: at {offset} there is nothing any more",
        path = path.display()
    )]
    Shrank { path: PathBuf, offset: Bytes },
    #[error("cannot read {path} at {offset}", path = path.display())]
    Read { path: PathBuf, offset: Bytes, source: io::Error },
    /// A device that counted at the start is not there any more.
    #[error("device {device} has disappeared")]
    DeviceGone { device: DevNo },
    /// The data set has not the files that the workload needs.
    #[error("the files laid out are not those that workload {workload} needs")]
    NotLaidOut { workload: String },
    /// Readers did not come back from the kernel.
    #[error("{readers} readers still wait for the storage {waited} after the end of the trial")]
    Stuck { readers: usize, waited: Nanos },
    /// An option that makes no sense.
    #[error("{option} = {value}: must be {wanted}")]
    BadOption { option: &'static str, value: String, wanted: &'static str },
    /// A program that the workload needs is not there.
    #[error("{program} is not installed: apt-get install {package}")]
    ToolMissing { program: &'static str, package: &'static str },
    /// A program of other people did not do its work.
    #[error("{program}: {problem}")]
    Tool { program: String, problem: String },
    /// Memory cannot be limited for a trial.
    #[error("memory cannot be limited here: {problem}")]
    NoMemoryLimit { problem: String },
    /// Not even the pages being read fit into the memory that a trial was given.
    #[error(
        "the reads of this trial do not fit into {limit} of memory: allow more, or use fewer \
         streams or a smaller window"
    )]
    OutOfMemory { limit: Bytes },
    /// What is there already is only ever read.
    #[error(
        "{path}: {workload} writes, and what is there already is only ever read: give a directory",
        path = path.display()
    )]
    OnlyRead { path: PathBuf, workload: String },
    /// The job file asks for what cannot be had here.
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

/// The error of a failure to write in `dir`.
pub(crate) fn write_error(dir: &Path, source: io::Error) -> BenchError {
    match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => BenchError::ReadOnly { path: dir.to_owned() },
        _ => BenchError::io("write files in", dir)(source),
    }
}
