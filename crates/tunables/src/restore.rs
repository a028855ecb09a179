//! Putting a value back.

use std::path::PathBuf;

use host::BdiId;

use crate::Value;

/// What came of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The old value was written and reads back.
    Restored,
    /// The old value was there already.
    AlreadySo,
    /// The device is not there any more, or another has its number now.
    DeviceGone,
    /// Somebody else had set another value: it is left alone.
    LeftAlone {
        /// The value that is there.
        present: Value,
    },
}

/// One tunable undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The journal that it was in.
    pub journal: PathBuf,
    /// The bdi.
    pub bdi: BdiId,
    /// The tunable's name.
    pub tunable: &'static str,
    /// The value before the run.
    pub original: Value,
    /// What came of it.
    pub outcome: Outcome,
}
