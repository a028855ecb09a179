//! Journals side effects before a change and undoes them after it.

use std::path::PathBuf;

use crate::access::{read_file, write};
use crate::journal_entry::JournalEntry;
use crate::{BdiLease, SideEffect, Tunable, TunableError, Value, find};

/// Returns the zero value, which means that another tunable applies.
fn void_of(value: &Value) -> Value {
    match value {
        Value::Bytes(_) => Value::Bytes(units::Bytes::ZERO),
        _ => Value::Number(0),
    }
}

/// A value that must not change when another tunable is written.
#[derive(Debug)]
pub(crate) struct PreservedValue {
    tunable: &'static Tunable,
    file: PathBuf,
    value: Value,
}

impl BdiLease {
    /// Journals the tunables that a change of `tunable` may affect; must precede the change.
    pub(crate) fn journal_side_effects(
        &mut self,
        tunable: &'static Tunable,
    ) -> Result<Vec<PreservedValue>, TunableError> {
        let mut held = Vec::new();
        for upset in tunable.side_effects() {
            let other = find(upset.name())?;
            for file in other.files(&self.root, &self.site) {
                // A device without the feature has nothing to preserve.
                let Ok(value) = read_file(&self.root, other, &self.site, &file) else { continue };
                if matches!(upset, SideEffect::Cleared(_)) {
                    let void = void_of(&value);
                    self.journal_change(other, &file, &value, &void, true)?;
                    self.set.remove(&(other.name(), file));
                    continue;
                }
                if !self.known.contains(&(other.name(), file.clone())) {
                    self.journal_change(other, &file, &value, &value, true)?;
                }
                held.push(PreservedValue { tunable: other, file, value });
            }
        }
        Ok(held)
    }

    /// Restores the tunables that the change affected, and confirms the change in the journal.
    pub(crate) fn restore_side_effects(
        &mut self,
        tunable: &'static Tunable,
        held: Vec<PreservedValue>,
    ) -> Result<(), TunableError> {
        for PreservedValue { tunable: other, file, value } in held {
            let found = read_file(&self.root, other, &self.site, &file)?;
            if found == value {
                continue;
            }
            self.journal_change(other, &file, &found, &value, true)?;
            if let Err(error) = write(&self.root, other, &self.site, &file, &value) {
                // A scheduler may accept fewer requests than the previous one. Its own number is
                // then correct, and the old number is restored together with the old scheduler.
                self.journal_change(other, &file, &found, &found, true)?;
                self.notes.push(format!(
                    "{} changed {} from {value} to {found}, which cannot be restored: {error}",
                    tunable.name(),
                    other.name()
                ));
                self.set.insert((other.name(), file), found);
            }
        }
        if !tunable.side_effects().is_empty() {
            self.journal.append(&JournalEntry::Confirmed { number: self.changes })?;
        }
        Ok(())
    }
}
