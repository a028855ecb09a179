//! From a path to the bdi that counts.

use std::path::Path;

use crate::{HostError, Probe, Root, Storage};

/// Finds the storage behind a directory, file, block device, link to one, or `MAJ:MIN`.
pub fn resolve(_root: &Root, _path: &Path) -> Result<Storage, HostError> {
    todo!()
}

/// The part of [`resolve`] that reads nothing but `/proc` and `/sys` of `root`.
pub fn resolve_probe(_root: &Root, _probe: &Probe) -> Result<Storage, HostError> {
    todo!()
}
