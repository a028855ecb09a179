//! Why a study ends early.

use thiserror::Error;

use crate::store::{RunId, StoreError};
use crate::target::TargetError;

/// Why a study ends early. The tunables are restored by then.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The target's words are wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The record cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plan asks for nothing, or for what cannot be.
    #[error("{0}")]
    Plan(String),
    /// The storage cannot be found or used.
    #[error(transparent)]
    Host(#[from] host::HostError),
    /// The tunable cannot be read, set or restored, or somebody else is at work on the device.
    #[error(transparent)]
    Tunable(#[from] tunables::TunableError),
    /// Files cannot be laid out or read.
    #[error(transparent)]
    Bench(#[from] bench::BenchError),
    /// The simulation cannot be.
    #[error(transparent)]
    Simulation(#[from] sim::SimError),
    /// The virtual disk cannot be made.
    #[error(transparent)]
    VirtualDisk(#[from] vdisk::VdiskError),
    /// A run is asked to go on that another process works on.
    #[error(
        "run {run} is being measured{}: wait for it, or begin another with --fresh",
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    RunBusy {
        /// The run.
        run: RunId,
        /// The process.
        pid: Option<u32>,
    },
    /// Stopped on request before there was a run to go on with.
    #[error("interrupted before the first trial")]
    Cancelled,
}
