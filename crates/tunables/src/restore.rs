//! Restores values; used by the owner, the guard and rollback.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use host::{BdiId, Root};

use crate::access::{read_file, write};
use crate::journal_entry::{JournalEntry, RestoreOutcome, UndoneEntry, unix_ms};
use crate::replay::OpenChange;
use crate::{IdentityMatch, Journal, JournalHeader, Replay, TunableError, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    pub journal: PathBuf,
    pub bdi: BdiId,
    pub tunable: &'static str,
    pub file: PathBuf,
    pub original: Value,
    /// The result; in a preview, the expected result.
    pub outcome: RestoreOutcome,
}

impl RestoreReport {
    fn new(
        replay: &Replay,
        header: &JournalHeader,
        open: &OpenChange,
        outcome: RestoreOutcome,
    ) -> Self {
        Self {
            journal: replay.path.clone(),
            bdi: header.site.bdi.clone(),
            tunable: open.tunable.name(),
            file: open.file.clone(),
            original: open.original.clone(),
            outcome,
        }
    }
}

/// Formats one line, as in `read_ahead of bdi 8:0 restored to 128 KiB`.
impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bdi, tunable, original, .. } = self;
        match &self.outcome {
            RestoreOutcome::Restored => write!(f, "{tunable} of bdi {bdi} restored to {original}"),
            RestoreOutcome::AlreadySo => write!(f, "{tunable} of bdi {bdi} was {original} already"),
            RestoreOutcome::DeviceGone => {
                write!(f, "{tunable}: the device of bdi {bdi} is gone, nothing to restore")
            }
            RestoreOutcome::LeftAlone { present } => write!(
                f,
                "{tunable} of bdi {bdi} stays at {present}, which another process has set (it was \
                 {original} before foreread)"
            ),
        }
    }
}

/// Undoes all open changes of a journal and removes it. If a change cannot be undone, it stays
/// open, the others are undone nevertheless, and the first error is returned. The caller must hold
/// the lock of the bdi.
pub(crate) fn put_back(root: &Root, replay: &Replay) -> Result<Vec<RestoreReport>, TunableError> {
    let Some(header) = &replay.header else {
        return Ok(Vec::new());
    };
    let mut journal = Journal::reopen(replay)?;
    let mut undone = Vec::new();
    let mut first_error = None;
    // Judge all changes before the first write, so that a side effect of these writes is not
    // mistaken for a change by another process.
    let judged: Vec<_> = in_order(&replay.open)
        .into_iter()
        .map(|open| (open, judge(root, replay, header, open, &PlannedValues::new())))
        .collect();
    for (open, outcome) in judged {
        let settled = outcome.and_then(|outcome| put_back_one(root, header, open, outcome));
        let settled = settled.and_then(|outcome| {
            journal.append(&JournalEntry::Undone(UndoneEntry {
                tunable: open.tunable.name().to_owned(),
                file: Some(open.file.clone()),
                outcome: outcome.clone(),
                unix_ms: unix_ms(),
            }))?;
            Ok(RestoreReport::new(replay, header, open, outcome))
        });
        match settled {
            // Do not report a preserved value that is unchanged.
            Ok(one) if !open.asked && one.outcome == RestoreOutcome::AlreadySo => {}
            Ok(one) => undone.push(one),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => {
            journal.remove()?;
            Ok(undone)
        }
    }
}

/// The values that the previewed steps would leave, by tunable name and file.
pub(crate) type PlannedValues = BTreeMap<(&'static str, PathBuf), Value>;

/// Returns the expected results of [`put_back`] after the `planned` steps, and adds its own.
pub(crate) fn preview(
    root: &Root,
    replay: &Replay,
    planned: &mut PlannedValues,
) -> Result<Vec<RestoreReport>, TunableError> {
    let Some(header) = &replay.header else { return Ok(Vec::new()) };
    let mut undone = Vec::new();
    let mut left = Vec::new();
    for open in in_order(&replay.open) {
        let outcome = judge(root, replay, header, open, planned)?;
        let value = match &outcome {
            RestoreOutcome::Restored | RestoreOutcome::AlreadySo => Some(&open.original),
            RestoreOutcome::LeftAlone { present } => Some(present),
            RestoreOutcome::DeviceGone => None,
        };
        left.extend(value.map(|value| (open.key(), value.clone())));
        if open.asked || outcome != RestoreOutcome::AlreadySo {
            undone.push(RestoreReport::new(replay, header, open, outcome));
        }
    }
    // Only now, because `put_back` judges all changes of a journal before its first write.
    planned.extend(left);
    Ok(undone)
}

/// Returns the changes in reverse order; tunables that others change as a side effect come last.
fn in_order(open: &[OpenChange]) -> Vec<&OpenChange> {
    let mut order: Vec<&OpenChange> = open.iter().rev().collect();
    order.sort_by_key(|open| open.tunable.write_rank());
    order
}

/// Restores a value as judged, even if restoring another tunable has just changed it.
fn put_back_one(
    root: &Root,
    header: &JournalHeader,
    open: &OpenChange,
    outcome: RestoreOutcome,
) -> Result<RestoreOutcome, TunableError> {
    let wanted = match &outcome {
        RestoreOutcome::DeviceGone => return Ok(outcome),
        RestoreOutcome::LeftAlone { present } => present,
        RestoreOutcome::Restored | RestoreOutcome::AlreadySo => &open.original,
    };
    // This value has no effect, and returns when the other tunable is restored.
    if open.tunable.defers_to_other(wanted) {
        return Ok(outcome);
    }
    let present = match read_file(root, open.tunable, &header.site, &open.file) {
        Ok(present) => present,
        Err(TunableError::Absent { .. }) => return Ok(RestoreOutcome::DeviceGone),
        Err(error) => return Err(error),
    };
    if present == *wanted {
        return Ok(outcome);
    }
    match write(root, open.tunable, &header.site, &open.file, wanted) {
        Ok(_) if outcome == RestoreOutcome::AlreadySo => Ok(RestoreOutcome::Restored),
        Ok(_) => Ok(outcome),
        Err(TunableError::Absent { .. }) => Ok(RestoreOutcome::DeviceGone),
        Err(error) => Err(error),
    }
}

/// Returns the expected result of undoing a change after the `planned` steps.
fn judge(
    root: &Root,
    replay: &Replay,
    header: &JournalHeader,
    open: &OpenChange,
    planned: &PlannedValues,
) -> Result<RestoreOutcome, TunableError> {
    let site = &header.site;
    let same_boot = header.owner.is_of_this_boot();
    let likeness = header.identity.compare(root, site, same_boot);
    if likeness == IdentityMatch::Other {
        return Ok(RestoreOutcome::DeviceGone);
    }
    let present = match read_file(root, open.tunable, site, &open.file) {
        Ok(present) => planned.get(&open.key()).cloned().unwrap_or(present),
        Err(TunableError::Absent { .. }) => return Ok(RestoreOutcome::DeviceGone),
        Err(error) => return Err(error),
    };
    if present == open.original {
        return Ok(RestoreOutcome::AlreadySo);
    }
    if likeness == IdentityMatch::Ambiguous {
        return Err(TunableError::Ambiguous {
            bdi: site.bdi.clone(),
            journal: replay.path.clone(),
            tunable: open.tunable.name(),
            original: open.original.clone(),
        });
    }
    // The process died between a change and the handling of its side effects, so the value is the
    // kernel's.
    let upset = replay.upsetting.is_some_and(|tunable| {
        tunable.side_effects().iter().any(|upset| upset.name() == open.tunable.name())
    });
    let ours = upset || open.ours.contains(&present);
    Ok(if ours { RestoreOutcome::Restored } else { RestoreOutcome::LeftAlone { present } })
}
