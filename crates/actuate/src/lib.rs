//! Sets the windows of other processes' open files and prefetches their data; no other crate does.
//!
//! `pidfd_getfd(2)` duplicates a descriptor of another process; the duplicate refers to the same
//! open file. This crate only gives advice and starts reads through it. Both affect only when data
//! is read from the device, never the data that a process reads. Before each action, the
//! [`AccessRules`] are checked, and the kernel's list of open files confirms that the duplicate is
//! the intended open file: a process may exit, or close or open a file, at any moment.

mod actuator;
mod directory;
mod exact;
mod finder;
mod limits;
mod miss_prefetcher;
mod mounted;
mod opens;
mod outcome;
mod own;
mod prefetcher;
mod reach;
mod refreshed;
mod rule;

pub use actuator::{Actuator, FileAdvice};
pub use directory::Directory;
pub use exact::{CollateralRestore, WindowsSet};
pub use finder::Finder;
pub use limits::AccessRules;
pub use miss_prefetcher::{MissPrefetched, MissPrefetcher};
pub use opens::NewFiles;
pub use outcome::{ActionOutcome, ActuateError, ActuateFailure};
pub use own::OwnFiles;
pub use prefetcher::{Prefetched, Prefetcher};
pub use refreshed::{RefreshedFiles, Reverted};
pub use rule::{AccessRule, ParseRuleError};
