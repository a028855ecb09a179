//! Why nothing could be profiled.

use std::io;

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
    #[error(transparent)]
    Model(#[from] model::SpecError),
}

impl units::Classified for ProfileError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Observe(error) => error.kind(),
            Self::NotStarted { source, .. } => ErrorKind::from_start(source.kind()),
            Self::Wait { source } => ErrorKind::from_io(source),
            Self::Model(_) => ErrorKind::Usage,
        }
    }
}
