//! How a live kernel is controlled.

use actuate::AccessRules;
use host::{Dirs, Root};
use tunables::GuardCommand;
use units::Bytes;

use crate::PrimedFiles;

/// How a live kernel is controlled.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    pub root: Root,
    pub dirs: Dirs,
    /// What restores the bdi if this process is killed.
    pub guard: GuardCommand,
    /// Which open files may be touched.
    pub limits: AccessRules,
    pub max_window: Bytes,
    /// Whether to prefetch, or to set windows only.
    pub prefetch: bool,
    /// Whether to leave open files alone whose programs advised that they read at random. Otherwise
    /// they are prefetched if they are read in a predictable way.
    pub respect_advice: bool,
    /// Files that are primed as soon as they are read at random.
    pub primed: PrimedFiles,
    pub dry_run: bool,
}
