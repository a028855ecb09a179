//! The right to change one bdi.

use std::collections::BTreeMap;
use std::path::Path;

use host::{Dirs, Root, Storage, page_size};
use sys::lock::Lock;

use crate::access::{check_writable, read, write};
use crate::guard::Guard;
use crate::journal::{Header, Journal, Owner, VERSION, unix_ms};
use crate::restore::put_back;
use crate::rollback::inherit;
use crate::{GuardCommand, Identity, Replay, Site, Tunable, TunableError, Undone, Value, bdi_lock};

/// The exclusive right over one bdi while a study runs; everything is put back when it ends, by
/// [`Tenure::restore`], by being dropped, or by its guard.
#[derive(Debug)]
pub struct Tenure {
    pub(crate) root: Root,
    pub(crate) site: Site,
    pub(crate) journal: Journal,
    pub(crate) changes: u64,
    /// What this tenure last set, by the tunable's name.
    pub(crate) set: BTreeMap<&'static str, Value>,
    inherited: Vec<Undone>,
    /// `None` once it has been dismissed.
    guard: Option<Guard>,
    /// `None` once it has been released.
    lock: Option<Lock>,
}

impl Tenure {
    /// Takes the lock, undoes what dead runs left on this bdi, opens a journal, starts the guard.
    pub fn begin(
        dirs: &Dirs,
        root: &Root,
        storage: &Storage,
        guard: &GuardCommand,
    ) -> Result<Self, TunableError> {
        let site = Site::from(storage);
        let lock = bdi_lock::take(dirs, &site.bdi)?;
        let inherited = inherit(dirs, root, &site.bdi)?;
        let header = Header {
            version: VERSION,
            owner: Owner::this_process()?,
            site: site.clone(),
            identity: Identity::of(root, &site),
            unix_ms: unix_ms(),
        };
        let journal = Journal::create(dirs, header)?;
        let guard = match Guard::start(guard, journal.path(), &lock) {
            Ok(guard) => Some(guard),
            Err(error) => {
                // Nothing has been changed: the reason for stopping is the guard, not these.
                let _ = journal.remove();
                let _ = lock.release();
                return Err(error);
            }
        };
        let (root, set) = (root.clone(), BTreeMap::new());
        Ok(Self { root, site, journal, changes: 0, set, inherited, guard, lock: Some(lock) })
    }

    /// What was left by dead runs and undone at the beginning.
    pub fn inherited(&self) -> &[Undone] {
        &self.inherited
    }

    /// The journal's file.
    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    /// What the tunable is now.
    pub fn read(&self, tunable: &dyn Tunable) -> Result<Value, TunableError> {
        read(&self.root, tunable, &self.site)
    }

    /// Journals, writes and reads back. Gives what was read, rounded as [`Tunable::validate`] does.
    ///
    /// If somebody else has changed the value since this tenure set it, nothing is written: he must
    /// have had a reason, and what was measured since is of his setting.
    pub fn set(
        &mut self,
        tunable: &'static dyn Tunable,
        value: &Value,
    ) -> Result<Value, TunableError> {
        let value = tunable.validate(value, page_size())?.value;
        let old = self.unchanged(tunable)?;
        if old == value {
            // Nothing to write; but whoever may not should hear so before he relies on it.
            check_writable(&self.root, tunable, &self.site)?;
            return Ok(value);
        }
        self.check_guard()?;
        self.note(tunable, &old, &value)?;
        match write(&self.root, tunable, &self.site, &value) {
            Ok(written) => {
                self.set.insert(tunable.name(), written.clone());
                Ok(written)
            }
            Err(error @ TunableError::DidNotStick { .. }) => {
                // The value there now is nobody's wish, and the journal does not know it as ours.
                let _ = write(&self.root, tunable, &self.site, &old);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn check_guard(&mut self) -> Result<(), TunableError> {
        self.guard.as_mut().map_or(Ok(()), Guard::check)
    }

    /// Puts everything back and says what came of it.
    pub fn restore(mut self) -> Result<Vec<Undone>, TunableError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Vec<Undone>, TunableError> {
        let Some(guard) = self.guard.take() else { return Ok(Vec::new()) };
        // From the journal, not from memory: what is undone is what the guard would undo.
        let undone = Replay::load(self.journal.path())
            .map_err(TunableError::from)
            .and_then(|replay| put_back(&self.root, &replay));
        match undone {
            Ok(_) => guard.dismiss(),
            Err(_) => guard.abandon(),
        }
        if let Some(lock) = self.lock.take() {
            // If this fails, it is free when the file is closed, which is now.
            let _ = lock.release();
        }
        undone
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        // What fails here the guard has tried once more, and said so.
        let _ = self.finish();
    }
}
