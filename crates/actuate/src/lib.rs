//! Windows and prefetch on the open files of other processes: the only room that touches them.
//!
//! On a stock kernel `pidfd_getfd(2)` gives a duplicate of any process's descriptor, and with it
//! the very open file that the process reads. What is done through the duplicate is advice:
//! nothing of it changes what a process reads, only when that comes from the disk. Before anything
//! is done, the [`AccessRules`] say whether it may be, and the kernel is asked whether the
//! duplicate is the open file that was meant: a process may exit, close or open something else at
//! any moment.

mod actuator;
mod answerer;
mod directory;
mod exact;
mod finder;
mod limits;
mod opens;
mod outcome;
mod own;
mod prefetcher;
mod reach;
mod refreshed;
mod rule;

pub use actuator::{Actuator, FileAdvice};
pub use answerer::{MissPrefetched, MissPrefetcher};
pub use directory::Directory;
pub use exact::{CollateralRestore, WindowsSet};
pub use finder::Finder;
pub use limits::AccessRules;
pub use opens::NewFiles;
pub use outcome::{ActionOutcome, ActuateError, ActuateFailure};
pub use own::OwnFiles;
pub use prefetcher::{Prefetched, Prefetcher};
pub use refreshed::{RefreshedFiles, Reverted};
pub use rule::{AccessRule, ParseRuleError};
