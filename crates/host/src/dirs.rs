//! The directories that foreread keeps things in.

use std::path::PathBuf;

/// Where foreread keeps what must outlive a boot and what need not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// Journals and the store of runs: `/var/lib/foreread` for root.
    pub state: PathBuf,
    /// Locks and sockets: `/run/foreread` for root.
    pub runtime: PathBuf,
}

impl Dirs {
    /// The directories for this user: `FOREREAD_STATE_DIR` and `FOREREAD_RUNTIME_DIR` if set,
    /// else `/var/lib/foreread` and `/run/foreread` for root, else those of XDG.
    pub fn of_user() -> Self {
        todo!()
    }

    /// Both directories under one, for tests.
    pub fn under(base: impl Into<PathBuf>) -> Self {
        let base = base.into();
        Self { state: base.join("state"), runtime: base.join("runtime") }
    }
}
