//! What a study needs from whoever starts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use host::{Dirs, Root};
use tunables::GuardCommand;
use vdisk::ServerCommand;

/// Asks a study to stop after the trial at hand. Signal handlers may call it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Shares a flag that a signal handler sets.
    pub fn from_flag(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Asks.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The machine, the directories and the helpers that a study works with.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where state and runtime files live.
    pub dirs: Dirs,
    /// The machine's root.
    pub root: Root,
    /// How the guard process is started that restores the device if this process dies.
    pub guard: GuardCommand,
    /// How the server of a virtual disk is started.
    pub server: ServerCommand,
    /// Asks the study to stop.
    pub cancel: Cancel,
}
