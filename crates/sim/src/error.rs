//! Errors of a simulation.

use model::SpecError;
use policy::PolicyError;
use thiserror::Error;
use units::Bytes;
use units::text::SettingError;
use workload::WorkloadError;

#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimError {
    #[error(transparent)]
    Model(#[from] SpecError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The workload is invalid, or does not fit these files.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A setting of the machine is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The page cache cannot hold the pages that are read at once.
    #[error(
        "a page cache of {cache} is smaller than {what}, {needed}: give cache={} or more",
        needed.to_string().replace(' ', "")
    )]
    CacheTooSmall {
        /// Size of the page cache.
        cache: Bytes,
        /// What does not fit in the cache.
        what: &'static str,
        needed: Bytes,
    },
    /// The files do not fit on the device.
    #[error(
        "the files reach to {needed}, the device to {capacity}: have smaller files (--size; of a \
         trace trace:FILE,compact), have them begin earlier (files_at=), or a larger device \
         (capacity=)"
    )]
    DeviceTooSmall { needed: Bytes, capacity: Bytes },
    /// A reference to a file, or to an open file, that the scenario does not have.
    #[error("{what} {index} does not exist: there are {count}")]
    NoSuch { what: &'static str, index: u32, count: usize },
}

impl units::Classified for SimError {
    fn kind(&self) -> units::ErrorKind {
        units::ErrorKind::Usage
    }
}
