//! The guard process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use host::Root;

use crate::{TunableError, Undone};

/// How to start the guard: the journal's path is added as the last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardCommand {
    /// The program, as a rule this very one.
    pub program: PathBuf,
    /// Its arguments: `guard`.
    pub args: Vec<OsString>,
}

/// The body of `foreread guard JOURNAL`: waits until its owner is done or dead, and in the second
/// case puts back what the journal says is still changed.
pub fn guard_main(_root: &Root, _journal: &Path) -> Result<Vec<Undone>, TunableError> {
    todo!()
}
