//! Errors of the profiler.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use observe::ObserveError;
use thiserror::Error;
use units::ErrorKind;

#[derive(Debug, Error)]
pub enum ProfileError {
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error("cannot run {program}")]
    NotStarted { program: String, source: io::Error },
    #[error("cannot wait for the command")]
    Wait { source: io::Error },
    #[error("{program} failed, so its time proves nothing: {status}")]
    Failed { program: String, status: ExitStatus },
    #[error("interrupted before a proof")]
    Interrupted,
    #[error("cannot read {} into memory", path.display())]
    Cache { path: PathBuf, source: io::Error },
    #[error("cannot keep {} in memory", path.display())]
    NotCached { path: PathBuf },
    #[error(transparent)]
    Import(#[from] trace::TraceFileError),
    #[error(
        "{} has no durations of calls: record with strace -T, or add -e sched:sched_switch to \
         perf record", path.display()
    )]
    NoTimes { path: PathBuf },
    #[error(transparent)]
    Model(#[from] model::SpecError),
    #[error(transparent)]
    Host(#[from] host::HostError),
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
}

impl units::Classified for ProfileError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Observe(error) => error.kind(),
            Self::NotStarted { source, .. } => ErrorKind::from_start(source.kind()),
            Self::Wait { source } | Self::Cache { source, .. } => ErrorKind::from_io(source),
            Self::Failed { .. } | Self::Interrupted => ErrorKind::Failed,
            Self::NotCached { .. } => ErrorKind::Unsupported,
            Self::Import(error) => error.kind(),
            Self::Host(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
            Self::Model(_) | Self::NoTimes { .. } => ErrorKind::Usage,
        }
    }
}
