//! Undoing what dead runs left: those whose guard died with them, or with the power.

use std::io;
use std::path::Path;

use host::{BdiId, Dirs, Root};

use crate::journal::list;
use crate::restore::{preview, put_back};
use crate::{JournalError, Replay, TunableError, Undone, bdi_lock};

/// Which journals to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that runs left which died; not what was applied to stay.
    Left,
    /// All that are open: what was applied too.
    All,
    /// Those of one bdi.
    Bdi(BdiId),
    /// The one of this file name, with or without its ending.
    Journal(String),
}

/// What came of a rollback.
#[derive(Debug, Default)]
pub struct Rollback {
    /// Each tunable that was looked after.
    pub undone: Vec<Undone>,
    /// Why a journal could not be undone; the others were.
    pub refused: Vec<TunableError>,
}

impl Rollback {
    fn take(&mut self, result: Result<Vec<Undone>, TunableError>) {
        match result {
            Ok(undone) => self.undone.extend(undone),
            Err(error) => self.refused.push(error),
        }
    }
}

/// Puts back what runs that are dead have left changed, the latest run first. May be called again
/// at any time: what was put back is in no journal any more.
pub fn rollback(dirs: &Dirs, root: &Root, which: &Which) -> Result<Rollback, TunableError> {
    for_each(dirs, which, |replay| roll_back_one(dirs, root, replay))
}

/// What [`rollback`] would do now, without doing it: the outcomes are those that would come.
pub fn rollback_preview(dirs: &Dirs, root: &Root, which: &Which) -> Result<Rollback, TunableError> {
    for_each(dirs, which, |replay| {
        refuse_living(replay)?;
        preview(root, replay)
    })
}

fn for_each(
    dirs: &Dirs,
    which: &Which,
    undo: impl Fn(&Replay) -> Result<Vec<Undone>, TunableError>,
) -> Result<Rollback, TunableError> {
    let journals = list(dirs)?;
    if let Which::Journal(name) = which
        && !journals.iter().any(|path| is_named(path, which))
    {
        return Err(TunableError::NoSuchJournal { name: name.clone() });
    }
    let mut result = Rollback::default();
    for path in journals.iter().rev().filter(|path| is_named(path, which)) {
        match load(path) {
            Ok(Some(replay)) if is_at(&replay, which) => result.take(undo(&replay)),
            Ok(_) => {}
            Err(error) => result.take(Err(error.into())),
        }
    }
    Ok(result)
}

/// Undoes what dead runs left on one bdi, whose lock the caller holds: nobody may take their values
/// for the original ones. A journal that cannot be believed forbids to go on, as it may be of this
/// bdi.
pub(crate) fn inherit(dirs: &Dirs, root: &Root, bdi: &BdiId) -> Result<Vec<Undone>, TunableError> {
    let which = Which::Bdi(bdi.clone());
    let mut undone = Vec::new();
    for path in list(dirs)?.iter().rev() {
        let left = |replay: &Replay| !replay.kept && is_at(replay, &which);
        if let Some(replay) = load(path)?.filter(left) {
            // Its owner may live, but holds no tenure: that would hold the lock.
            undone.extend(put_back(root, &replay)?);
        }
    }
    Ok(undone)
}

fn roll_back_one(dirs: &Dirs, root: &Root, replay: &Replay) -> Result<Vec<Undone>, TunableError> {
    let Some(header) = &replay.header else {
        // Its first line is not finished: a run that is just beginning, or one that died there.
        return Ok(Vec::new());
    };
    refuse_living(replay)?;
    let lock = bdi_lock::take(dirs, &header.site.bdi)?;
    // The guard had the lock until now, and may have done the work.
    let undone = match load(&replay.path) {
        Ok(Some(replay)) => put_back(root, &replay),
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    };
    // If this fails, it is free when the file is closed, which is now.
    let _ = lock.release();
    undone
}

fn refuse_living(replay: &Replay) -> Result<(), TunableError> {
    match &replay.header {
        // What was applied to stay has no owner any more, be he alive or not.
        Some(header) if !replay.kept && header.owner.is_alive()? => {
            let (journal, pid) = (replay.path.clone(), header.owner.pid);
            Err(TunableError::OwnerAlive { journal, pid })
        }
        _ => Ok(()),
    }
}

/// Reads a journal; `None` if it has been removed meanwhile.
fn load(path: &Path) -> Result<Option<Replay>, JournalError> {
    match Replay::load(path) {
        Ok(replay) => Ok(Some(replay)),
        Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_named(path: &Path, which: &Which) -> bool {
    match which {
        Which::Journal(name) => {
            path.file_name().is_some_and(|file| file == name.as_str())
                || path.file_stem().is_some_and(|stem| stem == name.as_str())
        }
        _ => true,
    }
}

fn is_at(replay: &Replay, which: &Which) -> bool {
    match which {
        Which::Bdi(bdi) => replay.header.as_ref().is_some_and(|header| header.site.bdi == *bdi),
        Which::Left => !replay.kept,
        _ => true,
    }
}
