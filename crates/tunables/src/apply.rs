//! Settings that stay until they are rolled back: plans, applies, records and verifies them.

use std::path::{Path, PathBuf};

use host::{Dirs, Root, page_size};

use crate::access::read_file;
use crate::cost::refuse_costly;
use crate::journal::{list, load};
use crate::journal_entry::JournalPurpose;
use crate::replay::OpenChange;
use crate::{
    BdiLease, DeviceLock, GuardCommand, IdentityMatch, JournalError, JournalHeader, MemoryCost,
    Replay, RestoreReport, Setting, Tunable, TunableError, TunableScope, TunableValues, Value,
    memory_cost, read_all,
};

/// A planned write.
#[derive(Clone, Debug)]
pub struct PlannedWrite {
    pub tunable: &'static Tunable,
    pub file: PathBuf,
    pub present: Value,
    /// The value to write.
    pub wanted: Value,
}

impl PlannedWrite {
    /// Returns whether the write changes the current value.
    pub fn changes(&self) -> bool {
        self.present != self.wanted
    }
}

#[derive(Clone, Debug)]
pub struct ApplyPlan {
    /// The settings, rounded as the kernel rounds them.
    pub settings: TunableValues,
    /// The writes, in order.
    pub writes: Vec<PlannedWrite>,
    /// The memory that settings use, for those that use any.
    pub costs: Vec<(Setting, MemoryCost)>,
    pub notes: Vec<String>,
}

/// Checks values, files and memory of settings. `streams` is the expected number of streams.
pub fn plan_apply(
    root: &Root,
    site: &TunableScope,
    settings: &TunableValues,
    streams: u32,
) -> Result<ApplyPlan, TunableError> {
    let mut plan = ApplyPlan {
        settings: TunableValues::default(),
        writes: Vec::new(),
        costs: Vec::new(),
        notes: Vec::new(),
    };
    refuse_rivals(settings)?;
    for Setting { tunable, value } in settings.iter() {
        let checked = tunable.validate(value, page_size())?;
        let setting = Setting { tunable, value: checked.value };
        let present = read_all(root, tunable, site)?;
        let first = present.first().map(|(_, value)| value);
        refuse_costly(root, site, &setting, first, streams)?;
        if let Some(cost) = memory_cost(root, site, &setting, streams) {
            plan.costs.push((setting.clone(), cost));
        }
        plan.notes.extend(checked.notes);
        plan.writes.extend(present.into_iter().map(|(file, present)| PlannedWrite {
            tunable,
            file,
            present,
            wanted: setting.value.clone(),
        }));
        plan.settings = plan.settings.with(setting);
    }
    Ok(plan)
}

/// Refuses two settings that set the same thing in different ways.
fn refuse_rivals(settings: &TunableValues) -> Result<(), TunableError> {
    for Setting { tunable, value } in settings.iter() {
        let rival = tunable.side_effects().iter().find_map(|upset| match upset {
            crate::SideEffect::Cleared(name) => settings.get(name).map(|_| *name),
            crate::SideEffect::Recomputed(_) => None,
        });
        let problem = match rival {
            Some(rival) => format!("{rival} sets the same in another way: give only one of them"),
            None if tunable.defers_to_other(value) => {
                "0 only means that its rival applies".to_owned()
            }
            None => continue,
        };
        let text = format!("{}={}", tunable.name(), tunable.show(value));
        return Err(TunableError::Syntax { text, problem });
    }
    Ok(())
}

#[derive(Debug)]
pub struct AppliedPlan {
    pub journal: PathBuf,
    /// Changes of dead runs that were undone before.
    pub inherited: Vec<RestoreReport>,
    /// Side effects that could not be prevented.
    pub notes: Vec<String>,
    /// The device's lock; drop it when the open files are done.
    pub lock: Option<DeviceLock>,
}

/// Applies a plan entirely or not at all. If the process dies, the guard leaves either the old or
/// the new state.
pub fn apply(
    dirs: &Dirs,
    root: &Root,
    site: &TunableScope,
    plan: &ApplyPlan,
    guard: &GuardCommand,
) -> Result<AppliedPlan, TunableError> {
    let mut lease = BdiLease::begin_at(dirs, root, site.clone(), guard, JournalPurpose::Apply)?;
    let inherited = lease.inherited().to_vec();
    // Take all locks before the first change, so that a refusal changes nothing.
    let reserved = plan.writes.iter().try_for_each(|write| lease.reserve(&write.file));
    let mut settings = plan.settings.iter();
    let settled = reserved
        .and_then(|()| {
            settings.try_for_each(|setting| lease.set(setting.tunable, &setting.value).map(drop))
        })
        .and_then(|()| all_there(root, site, plan));
    if let Err(error) = settled {
        // If restoring fails, the changes stay in the journal; the first error is more important.
        let _ = lease.restore();
        return Err(error);
    }
    let notes = lease.take_notes();
    let (journal, lock) = lease.keep()?;
    Ok(AppliedPlan { journal, inherited, notes, lock })
}

/// Reads back all values after the last write, because a later write may have changed an earlier
/// value.
fn all_there(root: &Root, site: &TunableScope, plan: &ApplyPlan) -> Result<(), TunableError> {
    for write in &plan.writes {
        let found = read_file(root, write.tunable, site, &write.file)?;
        if found != write.wanted {
            let (path, wanted) = (root.path(&write.file), write.wanted.clone());
            return Err(TunableError::DidNotStick { path, wanted, found });
        }
    }
    Ok(())
}

/// The applied settings of one journal.
#[derive(Clone, Debug)]
pub struct AppliedSettings {
    pub journal: PathBuf,
    /// The time, owner and device of the apply.
    pub header: JournalHeader,
    pub values: Vec<OpenChange>,
}

impl AppliedSettings {
    /// Returns the journal's name as an argument of `rollback`.
    pub fn name(&self) -> &str {
        self.journal.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// Returns the requested settings, each tunable once.
    pub fn settings(&self) -> TunableValues {
        self.values.iter().fold(TunableValues::default(), |settings, open| {
            settings.with(Setting { tunable: open.tunable, value: open.last().clone() })
        })
    }
}

/// Returns all settings that were applied and not rolled back, oldest first. Also returns the
/// errors of unreliable journals: those that are unreadable, truncated, or of an apply that died.
pub fn remembered(dirs: &Dirs) -> Result<(Vec<AppliedSettings>, Vec<JournalError>), TunableError> {
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    for path in list(dirs)? {
        match load(&path) {
            Ok(Some(replay)) if replay.kept => {
                let values = replay.open.into_iter().filter(|open| open.asked).collect();
                if let Some(header) = replay.header {
                    applied.push(AppliedSettings { journal: path, header, values });
                }
            }
            Ok(Some(replay)) if is_cut_short(&replay) => {
                refused.push(JournalError::Unfinished { path });
            }
            // The journal of a study, or one that was undone since `list` returned it.
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    Ok((applied, refused))
}

/// Returns whether an apply's journal has changes, but neither a last line nor a live owner.
fn is_cut_short(replay: &Replay) -> bool {
    let dead = |header: &JournalHeader| !header.owner.is_alive().unwrap_or(true);
    let applies = |header: &&JournalHeader| header.purpose == JournalPurpose::Apply;
    !replay.open.is_empty() && replay.header.as_ref().filter(applies).is_some_and(dead)
}

/// Whether an applied value is still set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftState {
    Holds,
    Drifted {
        present: Value,
    },
    /// The device does not exist, or another device has its number.
    Gone,
}

/// An applied value compared with the current one.
#[derive(Clone, Debug)]
pub struct VerifiedValue {
    pub site: TunableScope,
    pub tunable: &'static Tunable,
    pub file: PathBuf,
    pub wanted: Value,
    pub state: DriftState,
    pub journal: PathBuf,
}

/// Compares applied and current values. Of several values for one file, the last one is expected.
pub fn verify(
    root: &Root,
    applied: &[AppliedSettings],
) -> Result<Vec<VerifiedValue>, TunableError> {
    let mut verified: Vec<VerifiedValue> = Vec::new();
    for one in applied {
        for open in &one.values {
            verified.retain(|known| known.file != open.file);
            verified.push(VerifiedValue {
                site: one.header.site.clone(),
                tunable: open.tunable,
                file: open.file.clone(),
                wanted: open.last().clone(),
                state: state(root, &one.header, open)?,
                journal: one.journal.clone(),
            });
        }
    }
    Ok(verified)
}

fn state(
    root: &Root,
    header: &JournalHeader,
    open: &OpenChange,
) -> Result<DriftState, TunableError> {
    let same_boot = header.owner.is_of_this_boot();
    // Compare values even if two disks cannot be distinguished, because nothing is written.
    if header.identity.compare(root, &header.site, same_boot) == IdentityMatch::Other {
        return Ok(DriftState::Gone);
    }
    state_of(root, open.tunable, &header.site, &open.file, open.last())
}

/// Compares the value that was set with the value in its file.
pub fn state_of(
    root: &Root,
    tunable: &Tunable,
    site: &TunableScope,
    file: &Path,
    wanted: &Value,
) -> Result<DriftState, TunableError> {
    match read_file(root, tunable, site, file) {
        Ok(present) if present == *wanted => Ok(DriftState::Holds),
        Ok(present) => Ok(DriftState::Drifted { present }),
        Err(TunableError::Absent { .. }) => Ok(DriftState::Gone),
        Err(error) => Err(error),
    }
}
