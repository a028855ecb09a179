//! Holding a tunable at a value for an instant.

use host::{BdiId, page_size};

use crate::access::{read, write};
use crate::journal::{Change, Entry, Settled, unix_ms};
use crate::{Outcome, Tenure, Tunable, TunableError, Value};

impl Tenure {
    /// The bdi that this is the right over.
    pub fn bdi(&self) -> &BdiId {
        &self.site.bdi
    }

    /// Sets a tunable, calls `act` and puts the tunable back, with nothing slow in between: the
    /// journal is synced before, and told after.
    ///
    /// What somebody else sets in that instant is left as he has it, and is an error. If `act`
    /// panics, the value is put back when the tenure is dropped.
    pub fn hold<T>(
        &mut self,
        tunable: &'static dyn Tunable,
        value: &Value,
        act: impl FnOnce() -> T,
    ) -> Result<T, TunableError> {
        let value = tunable.validate(value, page_size())?.value;
        let old = self.unchanged(tunable)?;
        if old == value {
            return Ok(act());
        }
        self.check_guard()?;
        self.note(tunable, &old, &value)?;
        let written = write(&self.root, tunable, &self.site, &value);
        let result = written.map(|_| act());
        let present = read(&self.root, tunable, &self.site)?;
        if result.is_ok() && present != value {
            return Err(self.changed_by_other(tunable, value, present));
        }
        write(&self.root, tunable, &self.site, &old)?;
        self.forget(tunable, &old, &value)?;
        result
    }

    /// What the tunable is now, if that is what this tenure last set or nobody has set anything.
    pub(crate) fn unchanged(&self, tunable: &'static dyn Tunable) -> Result<Value, TunableError> {
        let present = self.read(tunable)?;
        match self.set.get(tunable.name()).filter(|value| **value != present) {
            Some(expected) => Err(self.changed_by_other(tunable, expected.clone(), present)),
            None => Ok(present),
        }
    }

    fn changed_by_other(
        &self,
        tunable: &'static dyn Tunable,
        expected: Value,
        found: Value,
    ) -> TunableError {
        let bdi = self.site.bdi.clone();
        TunableError::ChangedByOther { tunable: tunable.name(), bdi, expected, found }
    }

    /// Journals a change before it is made.
    pub(crate) fn note(
        &mut self,
        tunable: &'static dyn Tunable,
        old: &Value,
        new: &Value,
    ) -> Result<(), TunableError> {
        self.changes += 1;
        self.journal.append(&Entry::Change(Change {
            number: self.changes,
            tunable: tunable.name().to_owned(),
            file: tunable.file(&self.site),
            old: old.clone(),
            new: new.clone(),
            unix_ms: unix_ms(),
        }))?;
        Ok(())
    }

    /// Journals that a tunable which was held is back. A tenure that lives for months holds
    /// thousands of times, so where nothing else is changed its journal begins anew.
    fn forget(
        &mut self,
        tunable: &'static dyn Tunable,
        old: &Value,
        held: &Value,
    ) -> Result<(), TunableError> {
        if self.set.contains_key(tunable.name()) {
            return self.note(tunable, held, old);
        }
        if self.set.is_empty() {
            self.journal.begin_anew()?;
            self.changes = 0;
            return Ok(());
        }
        let outcome = Outcome::Restored;
        let tunable = tunable.name().to_owned();
        self.journal.append(&Entry::Undone(Settled { tunable, outcome, unix_ms: unix_ms() }))?;
        Ok(())
    }
}
