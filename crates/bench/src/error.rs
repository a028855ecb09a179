//! Why there is no sample.

use std::io;
use std::path::PathBuf;

use host::{DevNo, HostError};
use thiserror::Error;
use units::{Bytes, Nanos};
use workload::WorkloadError;
use workload::fio::FioError;

/// What may go wrong with files and trials. Each names the path and, where there is something to
/// do, says what.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The workload is impossible, or does not fit the files.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The machine's state could not be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call on a path did not work.
    #[error("cannot {action} {path}", path = path.display())]
    Io {
        /// What was tried, such as `open`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file system cannot be written to.
    #[error(
        "{path} is on a read-only file system: name an existing file on it instead",
        path = path.display()
    )]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// Too little room for the files.
    #[error(
        "{path}: {needed} are needed for the files, {available} are free: make room or ask for \
         smaller files with --size", path = path.display(), needed = needed.rounded(),
         available = available.rounded()
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// What the files need.
        needed: Bytes,
        /// What is free; a quota may leave this user less.
        available: Bytes,
        /// The system's reason, where it was the system that refused.
        source: Option<io::Error>,
    },
    /// Another process uses the files in this directory.
    #[error("{path} is in use by another foreread: wait for it to end", path = path.display())]
    Busy {
        /// The directory of the files.
        path: PathBuf,
    },
    /// What stands in the place of our directory is not ours.
    #[error("{path} was not made by foreread, so it is left alone: {why}", path = path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// How that can be told.
        why: String,
    },
    /// The thing to be read is neither file nor block device.
    #[error("{path} is neither a file nor a block device", path = path.display())]
    NotReadable {
        /// The path.
        path: PathBuf,
    },
    /// A file has holes, which no device is asked for.
    #[error("{path} has holes: its reads would not reach the device", path = path.display())]
    Holes {
        /// The path.
        path: PathBuf,
    },
    /// Nothing is in the thing to be read.
    #[error("{path} is empty", path = path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// The thing to be read is too small for the workload.
    #[error(
        "{path} has {size}: the workload needs {needed} or more; name a larger one, or use fewer \
         readers or smaller blocks", path = path.display(), size = size.rounded(),
         needed = needed.rounded()
    )]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// Its size.
        size: Bytes,
        /// One block for each reader.
        needed: Bytes,
    },
    /// A file became shorter while it was read.
    #[error(
        "{path} shrank while it was read: at {offset} there is nothing any more",
        path = path.display()
    )]
    Shrank {
        /// The file.
        path: PathBuf,
        /// Where data were missing.
        offset: Bytes,
    },
    /// The storage did not give data.
    #[error("cannot read {path} at {offset}", path = path.display())]
    Read {
        /// The file or device.
        path: PathBuf,
        /// Where.
        offset: Bytes,
        /// The system's reason.
        source: io::Error,
    },
    /// A device that counted at the start is not there any more.
    #[error("device {device} has disappeared")]
    DeviceGone {
        /// The device.
        device: DevNo,
    },
    /// The data set has not the files that the workload needs.
    #[error("the files laid out are not those that workload {workload} needs")]
    NotLaidOut {
        /// The workload's name.
        workload: String,
    },
    /// Readers did not come back from the kernel.
    #[error("{readers} readers still wait for the storage {waited} after the end of the trial")]
    Stuck {
        /// How many.
        readers: usize,
        /// How long was waited.
        waited: Nanos,
    },
    /// An option that makes no sense.
    #[error("{option} = {value}: must be {wanted}")]
    BadOption {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A program that the workload needs is not there.
    #[error("{program} is not installed: apt-get install {package}")]
    ToolMissing {
        /// The program.
        program: &'static str,
        /// The package of Debian that has it.
        package: &'static str,
    },
    /// A program of other people did not do its work.
    #[error("{program}: {problem}")]
    Tool {
        /// The program.
        program: String,
        /// What became of it.
        problem: String,
    },
    /// Memory cannot be limited for a trial.
    #[error("memory cannot be limited here: {problem}")]
    NoMemoryLimit {
        /// Why, and what may help.
        problem: String,
    },
    /// Not even the pages being read fit into the memory that a trial was given.
    #[error(
        "the reads of this trial do not fit into {limit} of memory: allow more, or use fewer \
         streams or a smaller window"
    )]
    OutOfMemory {
        /// What it was given.
        limit: Bytes,
    },
    /// What is there already is only ever read.
    #[error(
        "{path}: {workload} writes, and what is there already is only ever read: give a directory",
        path = path.display()
    )]
    OnlyRead {
        /// What is there.
        path: PathBuf,
        /// The workload.
        workload: String,
    },
    /// The job file asks for what cannot be had here.
    #[error("fio job file: {0}")]
    Jobs(#[from] FioError),
    /// The [`Cancel`](crate::Cancel) was set.
    #[error("interrupted")]
    Cancelled,
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
