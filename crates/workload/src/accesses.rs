//! From a workload and a seed to the accesses of one reader.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::{Workload, WorkloadError};

/// What a request belongs to, and so which latency it is counted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessClass {
    /// A stream: a run of related reads.
    Stream,
    /// A seek to somewhere else.
    Random,
}

/// One request of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The file, counted among the reader's own.
    pub file: u32,
    /// Where in the file.
    pub offset: Bytes,
    /// How much; less than a block at the end of a file.
    pub length: Bytes,
    /// What it belongs to.
    pub class: AccessClass,
}

/// The accesses of one reader, in order. The same seed gives the same accesses.
#[derive(Clone, Debug)]
pub struct Accesses {}

impl Iterator for Accesses {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        todo!()
    }
}

impl Workload {
    /// The accesses of `reader` (counted from 0) to files of these sizes: its own files, or, where
    /// files are shared, those that all have, of which it gets its part.
    pub fn accesses(
        &self,
        _reader: u32,
        _file_sizes: &[Bytes],
        _seed: u64,
    ) -> Result<Accesses, WorkloadError> {
        todo!()
    }
}
