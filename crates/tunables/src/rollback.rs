//! Undoing what dead runs left: those whose guard died with them, or with the power.

use std::path::{Path, PathBuf};

use host::{BdiId, Dirs, Root};

use crate::bdi_lock::take_others;
use crate::journal::{list, load};
use crate::restore::{preview, put_back};
use crate::{DeviceLock, Replay, RestoreReport, TunableError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollbackSelection {
    /// Those that runs left which died; not what was applied to stay.
    Left,
    /// All that are open: what was applied too.
    All,
    Bdi(BdiId),
    /// The one of this file name, with or without its ending.
    Journal(String),
}

/// A run that is still at work, and puts back itself what it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingRun {
    pub journal: PathBuf,
    /// The bdi that it works on.
    pub bdi: BdiId,
    pub pid: u32,
}

#[derive(Debug, Default)]
pub struct RollbackReport {
    /// Each tunable that was looked after.
    pub undone: Vec<RestoreReport>,
    pub journals: Vec<PathBuf>,
    /// Runs that were left to themselves, where none of them was asked for by name.
    pub living: Vec<LivingRun>,
    /// Why a journal could not be undone; the others were.
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

/// Puts back what runs that are dead have left changed, the latest run first. May be called again
/// at any time: what was put back is in no journal any more.
pub fn rollback(
    dirs: &Dirs,
    root: &Root,
    which: &RollbackSelection,
) -> Result<RollbackReport, TunableError> {
    for_each(dirs, which, |replay| roll_back_one(dirs, root, replay))
}

/// What [`rollback`] would do now, without doing it: the outcomes are those that would come.
pub fn rollback_preview(
    dirs: &Dirs,
    root: &Root,
    which: &RollbackSelection,
) -> Result<RollbackReport, TunableError> {
    for_each(dirs, which, |replay| preview(root, replay))
}

fn for_each(
    dirs: &Dirs,
    which: &RollbackSelection,
    undo: impl Fn(&Replay) -> Result<Vec<RestoreReport>, TunableError>,
) -> Result<RollbackReport, TunableError> {
    let journals = list(dirs)?;
    if let RollbackSelection::Journal(name) = which
        && !journals.iter().any(|path| is_named(path, which))
    {
        return Err(TunableError::NoSuchJournal { name: name.clone() });
    }
    let mut result = RollbackReport::default();
    for path in journals.iter().rev().filter(|path| is_named(path, which)) {
        match load(path) {
            Ok(Some(replay)) if is_at(&replay, which) => match (living(&replay), which) {
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
                (Ok(None), _) => result.take(path, undo(&replay)),
            },
            Ok(_) => {}
            Err(error) => result.refused.push(error.into()),
        }
    }
    Ok(result)
}

/// Undoes what dead runs left on one bdi, whose lock the caller holds: nobody may take their values
/// for the original ones. A journal that cannot be believed forbids to go on, as it may be of this
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
            // Its owner may live, but holds no lease: that would hold the lock.
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
        // Its first line is not finished: a run that is just beginning, or one that died there.
        return Ok(Vec::new());
    };
    let _lock = DeviceLock::take(dirs, &header.site.bdi)?;
    let _others = take_others(dirs, root, replay)?;
    // The guard had the lock until now, and may have done the work.
    match load(&replay.path) {
        Ok(Some(replay)) => put_back(root, &replay),
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The run that a journal is of, if that is still at work.
fn living(replay: &Replay) -> Result<Option<LivingRun>, TunableError> {
    match &replay.header {
        // What was applied to stay has no owner any more, be he alive or not.
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
