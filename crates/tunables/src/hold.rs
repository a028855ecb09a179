//! Sets a tunable to a value for a short time.

use host::{BdiId, page_size};

use crate::access::{read, write};
use crate::journal_entry::{JournalEntry, UndoneEntry, unix_ms};
use crate::{BdiLease, RestoreOutcome, Tunable, TunableError, Value};

impl BdiLease {
    /// Returns the locked bdi.
    pub fn bdi(&self) -> &BdiId {
        &self.site.bdi
    }

    /// Sets a tunable, calls `act` and restores the tunable, with no slow step in between: the
    /// journal is synced before and updated after.
    ///
    /// If another process sets the value in the meantime, it is not restored, which is an error. If
    /// `act` panics, dropping the lease restores the value.
    pub fn with_value<T>(
        &mut self,
        tunable: &'static Tunable,
        value: &Value,
        act: impl FnOnce() -> T,
    ) -> Result<T, TunableError> {
        let value = tunable.validate(value, page_size())?.value;
        let old = self.unchanged(tunable)?;
        if old == value {
            return Ok(act());
        }
        self.check_guard()?;
        let file = tunable.file(&self.site);
        self.journal_change(tunable, &file, &old, &value, false)?;
        let written = write(&self.root, tunable, &self.site, &file, &value);
        let result = written.map(|_| act());
        let present = read(&self.root, tunable, &self.site)?;
        if result.is_ok() && present != value {
            return Err(self.changed_by_other(tunable, value, present));
        }
        write(&self.root, tunable, &self.site, &file, &old)?;
        self.forget(tunable, &old, &value)?;
        result
    }

    /// Restores a value that this lease has set and removes it from the lease, so that another
    /// process may set it. `original` is the value to restore.
    pub fn release_value(
        &mut self,
        tunable: &'static Tunable,
        original: &Value,
    ) -> Result<(), TunableError> {
        let set = self.unchanged(tunable)?;
        let file = tunable.file(&self.site);
        write(&self.root, tunable, &self.site, &file, original)?;
        self.set.remove(&(tunable.name(), file));
        self.forget(tunable, original, &set)
    }

    /// Returns the current value, or an error if another process has set it.
    pub(crate) fn unchanged(&self, tunable: &'static Tunable) -> Result<Value, TunableError> {
        let present = self.read(tunable)?;
        self.refuse_changed(tunable, &tunable.file(&self.site), &present)?;
        Ok(present)
    }

    pub(crate) fn changed_by_other(
        &self,
        tunable: &'static Tunable,
        expected: Value,
        found: Value,
    ) -> TunableError {
        let bdi = self.site.bdi.clone();
        TunableError::ChangedByOther { tunable: tunable.name(), bdi, expected, found }
    }

    /// Journals that a temporary value was restored. A lease of months does this thousands of
    /// times, so its journal is truncated when it has no other changes.
    fn forget(
        &mut self,
        tunable: &'static Tunable,
        old: &Value,
        held: &Value,
    ) -> Result<(), TunableError> {
        let file = tunable.file(&self.site);
        if self.set.contains_key(&(tunable.name(), file.clone())) {
            return self.journal_change(tunable, &file, held, old, false);
        }
        if self.set.is_empty() {
            self.journal.begin_anew()?;
            self.changes = 0;
            self.known.clear();
            return Ok(());
        }
        self.known.remove(&(tunable.name(), file.clone()));
        let (outcome, tunable) = (RestoreOutcome::Restored, tunable.name().to_owned());
        let file = Some(file);
        let settled = UndoneEntry { tunable, file, outcome, unix_ms: unix_ms() };
        Ok(self.journal.append(&JournalEntry::Undone(settled))?)
    }
}
