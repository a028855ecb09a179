//! What a study needs from its caller.

use bench::Cancel;
use host::{Dirs, Root};
use tunables::GuardCommand;
use vdisk::ServerCommand;

/// The machine, the directories and the helper processes of a study.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where state and runtime files live.
    pub dirs: Dirs,
    pub root: Root,
    /// How to start the guard process, which restores the device if this process dies.
    pub guard: GuardCommand,
    /// How to start the server of a virtual disk.
    pub server: ServerCommand,
    /// Asks the study to stop: the current trial is abandoned, earlier results stay.
    pub cancel: Cancel,
}
