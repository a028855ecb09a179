//! The right to change one bdi.

use host::{Dirs, Root, Storage};

use crate::{GuardCommand, Tunable, TunableError, Undone, Value};

/// The exclusive right over one bdi while a study runs; everything is put back when it ends.
#[derive(Debug)]
pub struct Tenure {}

impl Tenure {
    /// Takes the lock, undoes what dead runs left on this bdi, opens a journal, starts the guard.
    pub fn begin(
        _dirs: &Dirs,
        _root: &Root,
        _storage: &Storage,
        _guard: &GuardCommand,
    ) -> Result<Self, TunableError> {
        todo!()
    }

    /// What was left by dead runs and undone at the beginning.
    pub fn inherited(&self) -> &[Undone] {
        &[]
    }

    /// Journals, writes and reads back. Gives what was read, rounded as `validate` rounds.
    pub fn set(
        &mut self,
        _tunable: &'static dyn Tunable,
        _value: &Value,
    ) -> Result<Value, TunableError> {
        todo!()
    }

    /// Puts everything back and says what came of it.
    pub fn restore(self) -> Result<Vec<Undone>, TunableError> {
        todo!()
    }
}
