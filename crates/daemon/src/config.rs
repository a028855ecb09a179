//! Options for controlling a live kernel.

use actuate::AccessRules;
use host::{Dirs, Root};
use tunables::GuardCommand;
use units::Bytes;

use crate::PrimedFiles;

/// Options for controlling a live kernel.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    pub root: Root,
    pub dirs: Dirs,
    /// The process that restores the bdi if this process is killed.
    pub guard: GuardCommand,
    /// The rules for the open files that foreread may act on.
    pub limits: AccessRules,
    pub max_window: Bytes,
    /// Whether to prefetch in addition to setting windows.
    pub prefetch: bool,
    /// Whether to leave open files alone if their programs advised random access. Otherwise,
    /// foreread prefetches them if they are read in a predictable way.
    pub respect_advice: bool,
    /// Files that are primed as soon as they are read at random.
    pub primed: PrimedFiles,
    pub dry_run: bool,
}
