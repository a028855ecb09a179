//! Errors of surveys and of the database.

use std::path::PathBuf;

use thiserror::Error;
use units::{Classified, ErrorKind};

#[derive(Debug, Error)]
pub enum FleetError {
    /// The host has no machine-id.
    #[error(
        "{path} is missing or not 32 hexadecimal digits: run systemd-machine-id-setup on that host",
        path = path.display()
    )]
    NoMachineId { path: PathBuf },
    #[error("{path} is not a survey of foreread fleet survey: {why}", path = path.display())]
    NoSurvey { path: PathBuf, why: String },
    #[error(
        "{path} was written by a newer foreread (survey version {found}; this one reads {known}): \
         upgrade foreread here", path = path.display()
    )]
    TooNew { path: PathBuf, found: u64, known: u32 },
    #[error(
        "{path}: {first} and {second} have the same machine-id, so one is a copy of the other: run \
         systemd-machine-id-setup on one of them", path = path.display()
    )]
    SameIdentity { path: PathBuf, first: String, second: String },
    #[error(
        "{path} is a record of runs without a host: put its survey.json next to it",
        path = path.display()
    )]
    NoHost { path: PathBuf },
    #[error("{path} holds no survey (*.json) and no captured host", path = path.display())]
    Nothing { path: PathBuf },
    /// `psql` would take the URL for the name of a database.
    #[error(
        "a URL that begins with {scheme}:// names no PostgreSQL database; write postgresql://…, or \
         key=value pairs as for psql"
    )]
    OtherUrl { scheme: String },
    #[error("cannot read {path}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The database returned an unexpected row.
    #[error("unexpected answer of the database: {0}")]
    Answer(String),
    #[error(transparent)]
    Input(#[from] sys::input::InputError),
    #[error(transparent)]
    Host(#[from] host::HostError),
    #[error(transparent)]
    Store(#[from] study::StoreError),
    #[error(transparent)]
    Database(#[from] pg::PgError),
}

impl Classified for FleetError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Nothing { .. } | Self::NoHost { .. } | Self::OtherUrl { .. } => ErrorKind::Usage,
            Self::NoMachineId { .. }
            | Self::NoSurvey { .. }
            | Self::TooNew { .. }
            | Self::SameIdentity { .. }
            | Self::Answer(_) => ErrorKind::Failed,
            Self::Io { source, .. } => ErrorKind::from_io(source),
            Self::Input(error) => error.kind(),
            Self::Host(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Database(error) => error.kind(),
        }
    }
}
