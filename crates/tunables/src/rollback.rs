//! Undoes changes of dead runs that no guard undid, for example after a power loss.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use host::{BdiId, Dirs, Root};

use crate::bdi_lock::take_others;
use crate::journal::{list, load};
use crate::restore::{PlannedValues, preview, put_back};
use crate::{DeviceLock, Replay, RestoreReport, TunableError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollbackSelection {
    /// The changes of dead runs, but not applied settings.
    Left,
    /// All open changes, including applied settings.
    All,
    Bdi(BdiId),
    /// The journal with this file name, with or without the extension.
    Journal(String),
}

/// A running process that will restore its changes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingRun {
    pub journal: PathBuf,
    /// The bdi that the process uses.
    pub bdi: BdiId,
    pub pid: u32,
}

#[derive(Debug, Default)]
pub struct RollbackReport {
    /// The results for all tunables that were examined.
    pub undone: Vec<RestoreReport>,
    pub journals: Vec<PathBuf>,
    /// Running processes that were skipped; a process of a selected bdi or journal is in `refused`.
    pub living: Vec<LivingRun>,
    /// Why some journals could not be undone; all others were undone.
    pub refused: Vec<TunableError>,
}

impl RollbackReport {
    fn take(&mut self, path: &Path, result: Result<Vec<RestoreReport>, TunableError>) {
        match result {
            Ok(undone) => {
                self.undone.extend(undone);
                self.journals.push(path.to_owned());
            }
            Err(error) => self.refused.push(error),
        }
    }
}

/// Restores the changes of dead runs, the latest run first. May be called repeatedly: restored
/// changes are in no journal.
pub fn rollback(
    dirs: &Dirs,
    root: &Root,
    which: &RollbackSelection,
) -> Result<RollbackReport, TunableError> {
    for_each(dirs, which, |replay| roll_back_one(dirs, root, replay))
}

/// Returns the results that [`rollback`] would have now.
pub fn rollback_preview(
    dirs: &Dirs,
    root: &Root,
    which: &RollbackSelection,
) -> Result<RollbackReport, TunableError> {
    let mut planned = PlannedValues::new();
    for_each(dirs, which, |replay| preview(root, replay, &mut planned))
}

fn for_each(
    dirs: &Dirs,
    which: &RollbackSelection,
    mut undo: impl FnMut(&Replay) -> Result<Vec<RestoreReport>, TunableError>,
) -> Result<RollbackReport, TunableError> {
    let journals = list(dirs)?;
    if let RollbackSelection::Journal(name) = which
        && !journals.iter().any(|path| is_named(path, which))
    {
        return Err(TunableError::NoSuchJournal { name: name.clone() });
    }
    let mut result = RollbackReport::default();
    let mut newer = StayingChanges::default();
    for path in journals.iter().rev() {
        let replay = match load(path) {
            Ok(Some(replay)) => replay,
            Ok(None) => continue,
            Err(error) if is_named(path, which) => {
                result.refused.push(error.into());
                continue;
            }
            Err(_) => continue,
        };
        if !is_named(path, which) || !is_at(&replay, which) {
            newer.add(&replay);
            continue;
        }
        match (living(&replay), which) {
            (Err(error), _) => result.refused.push(error),
            (Ok(Some(run)), RollbackSelection::Left | RollbackSelection::All) => {
                result.living.push(run)
            }
            (
                Ok(Some(LivingRun { journal, pid, .. })),
                RollbackSelection::Bdi(_) | RollbackSelection::Journal(_),
            ) => {
                result.refused.push(TunableError::OwnerAlive { journal, pid });
            }
            (Ok(None), _) => {
                let undone = newer.check(&replay).and_then(|()| undo(&replay));
                if undone.is_err() {
                    newer.add(&replay);
                }
                result.take(path, undone);
            }
        }
    }
    Ok(result)
}

/// The changes of newer journals that a rollback leaves in place, with their journals. An older
/// change of the same file cannot be undone before them: its value is no longer there, so its
/// original value would be lost.
#[derive(Debug, Default)]
struct StayingChanges(BTreeMap<(&'static str, PathBuf), PathBuf>);

impl StayingChanges {
    fn add(&mut self, replay: &Replay) {
        self.0.extend(replay.open.iter().map(|open| (open.key(), replay.path.clone())));
    }

    /// Checks that none of them hides a change of this journal.
    fn check(&self, replay: &Replay) -> Result<(), TunableError> {
        let hidden = replay.open.iter().find_map(|open| Some((open, self.0.get(&open.key())?)));
        match hidden.zip(replay.header.as_ref()) {
            Some(((open, newer), header)) => Err(TunableError::NewerChange {
                journal: replay.path.clone(),
                tunable: open.tunable.name(),
                bdi: header.site.bdi.clone(),
                newer: newer.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// Undoes changes of dead runs on one bdi, so that their values are not mistaken for the original
/// ones. The caller must hold its lock. An invalid journal is an error, because it may concern this
/// bdi.
pub(crate) fn inherit(
    dirs: &Dirs,
    root: &Root,
    bdi: &BdiId,
) -> Result<Vec<RestoreReport>, TunableError> {
    let which = RollbackSelection::Bdi(bdi.clone());
    let mut undone = Vec::new();
    for path in list(dirs)?.iter().rev() {
        let left = |replay: &Replay| !replay.kept && is_at(replay, &which);
        if let Some(replay) = load(path)?.filter(left) {
            let _others = take_others(dirs, root, &replay)?;
            // The owner may be running, but has no lease; a lease would hold the lock.
            undone.extend(put_back(root, &replay)?);
        }
    }
    Ok(undone)
}

fn roll_back_one(
    dirs: &Dirs,
    root: &Root,
    replay: &Replay,
) -> Result<Vec<RestoreReport>, TunableError> {
    let Some(header) = &replay.header else {
        // The first line is incomplete: the run is just starting, or died there.
        return Ok(Vec::new());
    };
    let _lock = DeviceLock::acquire(dirs, &header.site.bdi)?;
    let _others = take_others(dirs, root, replay)?;
    // The guard may have held the lock until now and restored everything.
    match load(&replay.path) {
        Ok(Some(replay)) => put_back(root, &replay),
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the process of a journal if it is still running.
fn living(replay: &Replay) -> Result<Option<LivingRun>, TunableError> {
    match &replay.header {
        // Applied settings have no owner, whether their process runs or not.
        Some(header) if !replay.kept && header.owner.is_alive()? => Ok(Some(LivingRun {
            journal: replay.path.clone(),
            bdi: header.site.bdi.clone(),
            pid: header.owner.pid,
        })),
        _ => Ok(None),
    }
}

fn is_named(path: &Path, which: &RollbackSelection) -> bool {
    match which {
        RollbackSelection::Journal(name) => {
            path.file_name().is_some_and(|file| file == name.as_str())
                || path.file_stem().is_some_and(|stem| stem == name.as_str())
        }
        _ => true,
    }
}

fn is_at(replay: &Replay, which: &RollbackSelection) -> bool {
    match which {
        RollbackSelection::Bdi(bdi) => {
            replay.header.as_ref().is_some_and(|header| header.site.bdi == *bdi)
        }
        RollbackSelection::Left => !replay.kept,
        _ => true,
    }
}
