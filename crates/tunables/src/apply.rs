//! Settings that stay until they are rolled back: plan, apply, record, verify.

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
    /// Whether the value differs from the current one.
    pub fn changes(&self) -> bool {
        self.present != self.wanted
    }
}

#[derive(Clone, Debug)]
pub struct ApplyPlan {
    /// The settings, rounded as by the kernel.
    pub settings: TunableValues,
    /// The writes, in the order in which they are made.
    pub writes: Vec<PlannedWrite>,
    /// The memory that some of the settings use.
    pub costs: Vec<(Setting, MemoryCost)>,
    pub notes: Vec<String>,
}

/// Checks settings: values, files, memory. `streams` is the expected number of concurrent streams.
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

/// Refuses two settings that express the same thing.
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
    /// Changes of dead runs that were undone first.
    pub inherited: Vec<RestoreReport>,
    /// Side effects that could not be prevented.
    pub notes: Vec<String>,
    /// The lock of the device: drop it after the open files are handled.
    pub lock: Option<DeviceLock>,
}

/// Applies a plan entirely or not at all. If the process dies at any time, the guard leaves either
/// the old state or the new one.
pub fn apply(
    dirs: &Dirs,
    root: &Root,
    site: &TunableScope,
    plan: &ApplyPlan,
    guard: &GuardCommand,
) -> Result<AppliedPlan, TunableError> {
    let mut lease = BdiLease::begin_at(dirs, root, site.clone(), guard, JournalPurpose::Apply)?;
    let inherited = lease.inherited().to_vec();
    // All locks are taken before the first change, so that a refusal changes nothing.
    let reserved = plan.writes.iter().try_for_each(|write| lease.reserve(&write.file));
    let mut settings = plan.settings.iter();
    let settled = reserved
        .and_then(|()| {
            settings.try_for_each(|setting| lease.set(setting.tunable, &setting.value).map(drop))
        })
        .and_then(|()| all_there(root, site, plan));
    if let Err(error) = settled {
        // A failure to restore stays in the journal; the first error is more important.
        let _ = lease.restore();
        return Err(error);
    }
    let notes = lease.take_notes();
    let (journal, lock) = lease.keep()?;
    Ok(AppliedPlan { journal, inherited, notes, lock })
}

/// Reads everything back after the last write, because a later write may have changed an earlier
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

/// Applied settings from a journal.
#[derive(Clone, Debug)]
pub struct AppliedSettings {
    pub journal: PathBuf,
    /// When, where and on which device.
    pub header: JournalHeader,
    pub values: Vec<OpenChange>,
}

impl AppliedSettings {
    /// The name for `rollback`.
    pub fn name(&self) -> &str {
        self.journal.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// The requested settings, each tunable once.
    pub fn settings(&self) -> TunableValues {
        self.values.iter().fold(TunableValues::default(), |settings, open| {
            settings.with(Setting { tunable: open.tunable, value: open.last().clone() })
        })
    }
}

/// All settings that were applied and not rolled back, oldest first, and the unreliable journals:
/// those that cannot be read, and those of an apply that died or whose end is missing.
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
            // A journal of a study, or one that was undone since the list was made.
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    Ok((applied, refused))
}

/// Whether a journal of an apply has changes, but neither its last line nor a live owner.
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
    /// The device does not exist, or another one has its number.
    Gone,
}

/// An applied value and the current one.
#[derive(Clone, Debug)]
pub struct VerifiedValue {
    pub site: TunableScope,
    pub tunable: &'static Tunable,
    pub file: PathBuf,
    pub wanted: Value,
    pub state: DriftState,
    pub journal: PathBuf,
}

/// Compares applied with current values. If several values apply to one file, the last one counts.
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
    // Values are compared even if two disks cannot be distinguished, because nothing is written.
    if header.identity.compare(root, &header.site, same_boot) == IdentityMatch::Other {
        return Ok(DriftState::Gone);
    }
    state_of(root, open.tunable, &header.site, &open.file, open.last())
}

/// Compares one value with what is in its file.
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
