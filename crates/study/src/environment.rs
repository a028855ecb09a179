//! What a study needs from whoever starts it.

use bench::Cancel;
use host::{Dirs, Root};
use tunables::GuardCommand;
use vdisk::ServerCommand;

/// The machine, the directories and the helpers that a study works with.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where state and runtime files live.
    pub dirs: Dirs,
    pub root: Root,
    /// How the guard process is started that restores the device if this process dies.
    pub guard: GuardCommand,
    /// How the server of a virtual disk is started.
    pub server: ServerCommand,
    /// Asks the study to stop: the trial at hand is given up, what was measured stays.
    pub cancel: Cancel,
}
