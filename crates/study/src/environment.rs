//! The environment that a caller provides for a study.

use bench::Cancel;
use host::{Dirs, Root};
use tunables::GuardCommand;
use vdisk::ServerCommand;

/// The machine, the directories and the helper processes of a study.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Directories for state and runtime files.
    pub dirs: Dirs,
    pub root: Root,
    /// Command that starts the guard process, which restores the device if this process dies.
    pub guard: GuardCommand,
    /// Command that starts the server of a virtual disk.
    pub server: ServerCommand,
    /// Asks the study to stop: the current trial is abandoned, earlier results are kept.
    pub cancel: Cancel,
}
