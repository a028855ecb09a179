//! Why something cannot be simulated.

use model::SpecError;
use policy::PolicyError;
use thiserror::Error;
use units::Bytes;
use workload::WorkloadError;

/// Why something cannot be simulated.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimError {
    /// The device model cannot be.
    #[error(transparent)]
    Model(#[from] SpecError),
    /// The read-ahead policy cannot be.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The workload cannot be, or not on these files.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A key has a value that cannot be.
    #[error("{key}={value} should be {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        wanted: String,
    },
    /// The page cache cannot hold what is read at once.
    #[error(
        "a page cache of {cache} is smaller than {what}, {needed}: give cache={} or more",
        needed.to_string().replace(' ', "")
    )]
    CacheTooSmall {
        /// The size of the page cache.
        cache: Bytes,
        /// What does not fit.
        what: &'static str,
        /// How large it is.
        needed: Bytes,
    },
    /// The files do not fit on the device.
    #[error(
        "the files reach to {needed}, the device to {capacity}: have smaller files (--size; of a \
         trace trace:FILE,compact), have them begin earlier (files_at=), or a larger device \
         (capacity=)"
    )]
    DeviceTooSmall {
        /// Where the last file ends.
        needed: Bytes,
        /// The size of the device.
        capacity: Bytes,
    },
    /// Something refers to a file, or to an open file, that the scenario does not have.
    #[error("{what} {index} does not exist: there are {count}")]
    NoSuch {
        /// What is missing.
        what: &'static str,
        /// Its number.
        index: u32,
        /// How many there are.
        count: usize,
    },
}
