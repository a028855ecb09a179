//! Errors that stop the daemon.

use std::io;

use actuate::ActuateError;
use observe::ObserveError;
use thiserror::Error;
use tunables::TunableError;
use units::{Classified, ErrorKind};

use crate::SourceError;

#[derive(Debug, Error)]
pub enum DaemonError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Observe(#[from] ObserveError),
    #[error(transparent)]
    Actuate(#[from] ActuateError),
    #[error(transparent)]
    Tunable(#[from] TunableError),
    #[error("cannot start a thread to {purpose}")]
    Thread { purpose: &'static str, source: io::Error },
    #[error("waiting for the command")]
    Wait(#[source] io::Error),
}

impl DaemonError {
    /// Returns whether the cause is that another process has changed the bdi.
    pub(crate) fn is_external_change(&self) -> bool {
        let tunable = match self {
            Self::Actuate(ActuateError::Tunable(error)) | Self::Tunable(error) => error,
            _ => return false,
        };
        matches!(tunable, TunableError::ChangedByOther { .. })
    }
}

impl Classified for DaemonError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Source(SourceError::Observe(error)) | Self::Observe(error) => error.kind(),
            Self::Source(SourceError::Host(error)) => error.kind(),
            Self::Actuate(error) => error.kind(),
            Self::Tunable(error) => error.kind(),
            Self::Thread { source, .. } | Self::Wait(source) => ErrorKind::from_io(source),
        }
    }
}
