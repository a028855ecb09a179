//! What is read: files of foreread's own, or something that is there already.

use std::path::Path;

use units::Bytes;
use workload::Workload;

use crate::{BenchError, Cancel};

/// How files are laid out.
#[derive(Clone, Debug)]
pub struct LayOutOptions {
    /// The size of the files of workloads that do not say it themselves.
    pub file_size: Bytes,
    /// The seed of the content.
    pub seed: u64,
    /// Stops the work early; what was written then is removed again.
    pub cancel: Cancel,
}

/// How far the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayOutProgress {
    /// Written so far.
    pub written: Bytes,
    /// To be written in all; nothing if files of an earlier run fit.
    pub total: Bytes,
}

/// What can be read by trials.
#[derive(Debug)]
pub struct Dataset {}

impl Dataset {
    /// How much room the files for these workloads take.
    pub fn room_needed(_workloads: &[Workload], _file_size: Bytes) -> Bytes {
        todo!()
    }

    /// Makes the files that these workloads need, in a directory of their own inside `dir`. The
    /// content is incompressible. Files of an earlier run are used if they fit.
    pub fn lay_out(
        _dir: &Path,
        _workloads: &[Workload],
        _options: &LayOutOptions,
        _progress: &mut dyn FnMut(LayOutProgress),
    ) -> Result<Self, BenchError> {
        todo!()
    }

    /// An existing file or block device. It is only ever read, and each reader gets its own part.
    pub fn existing(_path: &Path) -> Result<Self, BenchError> {
        todo!()
    }

    /// Deletes the files that were made; what was there before is left alone.
    pub fn remove(self) -> Result<(), BenchError> {
        todo!()
    }

    /// Deletes files that an earlier run left in `dir`; says whether there were any.
    pub fn remove_from(_dir: &Path) -> Result<bool, BenchError> {
        todo!()
    }
}
