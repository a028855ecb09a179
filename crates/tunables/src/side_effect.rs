//! What a change side_effects: kept as it was, and known to the journal before.

use std::path::PathBuf;

use crate::access::{read_file, write};
use crate::journal_entry::{ConfirmedEntry, JournalEntry};
use crate::{BdiLease, SideEffect, Tunable, TunableError, Value, find};

/// The value that says that a rival rules.
fn void_of(value: &Value) -> Value {
    match value {
        Value::Bytes(_) => Value::Bytes(units::Bytes::ZERO),
        _ => Value::Number(0),
    }
}

/// A tunable whose value is to survive the change of another.
#[derive(Debug)]
pub(crate) struct PreservedValue {
    tunable: &'static dyn Tunable,
    file: PathBuf,
    value: Value,
}

impl BdiLease {
    /// Writes down what the change of `tunable` may upset, before it is made.
    pub(crate) fn journal_side_effects(
        &mut self,
        tunable: &'static dyn Tunable,
    ) -> Result<Vec<PreservedValue>, TunableError> {
        let mut held = Vec::new();
        for upset in tunable.side_effects() {
            let other = find(upset.name())?;
            for file in other.files(&self.root, &self.site) {
                // A device without the feature has nothing to lose.
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

    /// Gives what was upset its own value again.
    pub(crate) fn restore_side_effects(
        &mut self,
        tunable: &'static dyn Tunable,
        held: Vec<PreservedValue>,
    ) -> Result<(), TunableError> {
        for PreservedValue { tunable: other, file, value } in held {
            let found = read_file(&self.root, other, &self.site, &file)?;
            if found == value {
                continue;
            }
            self.journal_change(other, &file, &found, &value, true)?;
            if let Err(error) = write(&self.root, other, &self.site, &file, &value) {
                // A scheduler may not take as many requests as the one before: then its own count
                // is right, and the old one comes back with the old scheduler.
                self.journal_change(other, &file, &found, &found, true)?;
                self.notes.push(format!(
                    "{} changed {} from {value} to {found}, and it cannot be changed back: {error}",
                    tunable.name(),
                    other.name()
                ));
                self.set.insert((other.name(), file), found);
            }
        }
        if !tunable.side_effects().is_empty() {
            self.journal
                .append(&JournalEntry::Confirmed(ConfirmedEntry { number: self.changes }))?;
        }
        Ok(())
    }
}
