//! Undoing what dead runs left.

use host::{BdiId, Dirs, Root};

use crate::{TunableError, Undone};

/// Which journals to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that are open.
    All,
    /// Those of one bdi.
    Bdi(BdiId),
    /// The one of this name.
    Journal(String),
}

/// What came of a rollback.
#[derive(Debug, Default)]
pub struct Rollback {
    /// Each tunable that was looked after.
    pub undone: Vec<Undone>,
    /// Why a journal could not be undone; the others were.
    pub refused: Vec<TunableError>,
}

/// Puts back what runs that are dead have left changed. May be called again at any time.
pub fn rollback(_dirs: &Dirs, _root: &Root, _which: &Which) -> Result<Rollback, TunableError> {
    todo!()
}
