//! The exclusive right to change one bdi.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use host::{BdiId, Dirs, Root, Storage, page_size};

use crate::access::{read, read_all, write};
use crate::bdi_lock::bdi_of;
use crate::cost::refuse_costly;
use crate::guard::GuardProcess;
use crate::journal::Journal;
use crate::journal_entry::{
    JournalEntry, JournalHeader, JournalOwner, JournalPurpose, JournaledChange, VERSION, unix_ms,
};
use crate::restore::put_back;
use crate::rollback::inherit;
use crate::{
    DeviceLock, GuardCommand, Identity, Replay, RestoreReport, Setting, Tunable, TunableError,
    TunableScope, Value,
};

/// The exclusive right to change one bdi. A study's changes are restored by [`BdiLease::restore`],
/// by dropping the lease, or by the guard. Applied settings stay after [`BdiLease::keep`]; until
/// then they are restored like those of a study.
#[derive(Debug)]
pub struct BdiLease {
    pub(crate) root: Root,
    pub(crate) site: TunableScope,
    purpose: JournalPurpose,
    pub(crate) journal: Journal,
    pub(crate) changes: u64,
    /// The last values that this lease has set, by tunable name and file.
    pub(crate) set: BTreeMap<(&'static str, PathBuf), Value>,
    /// The tunables and files whose original value is in the journal.
    pub(crate) known: BTreeSet<(&'static str, PathBuf)>,
    inherited: Vec<RestoreReport>,
    pub(crate) notes: Vec<String>,
    /// The guard; `None` after it was dismissed.
    guard: Option<GuardProcess>,
    /// The lock of the bdi; `None` after its release.
    lock: Option<DeviceLock>,
    dirs: Dirs,
    /// The locks of other changed devices: those below the bdi, and the machine.
    others: BTreeMap<BdiId, DeviceLock>,
}

impl BdiLease {
    /// Takes the lock, undoes changes of dead runs on this bdi, creates a journal, and starts the
    /// guard.
    pub fn begin(
        dirs: &Dirs,
        root: &Root,
        storage: &Storage,
        guard: &GuardCommand,
    ) -> Result<Self, TunableError> {
        Self::begin_at(
            dirs,
            root,
            TunableScope::with_layers(root, storage),
            guard,
            JournalPurpose::Study,
        )
    }

    /// Begins a lease on a known scope, for either purpose.
    pub fn begin_at(
        dirs: &Dirs,
        root: &Root,
        site: TunableScope,
        guard: &GuardCommand,
        purpose: JournalPurpose,
    ) -> Result<Self, TunableError> {
        let lock = DeviceLock::acquire(dirs, &site.bdi)?;
        let inherited = inherit(dirs, root, &site.bdi)?;
        let header = JournalHeader {
            version: VERSION,
            owner: JournalOwner::this_process()?,
            site: site.clone(),
            identity: Identity::read(root, &site),
            purpose,
            unix_ms: unix_ms(),
        };
        let journal = Journal::create(dirs, header)?;
        let guard = match GuardProcess::start(guard, journal.path(), lock.lock()) {
            Ok(guard) => Some(guard),
            Err(error) => {
                // Nothing was changed, so the guard's error is the one to report.
                let _ = journal.remove();
                return Err(error);
            }
        };
        Ok(Self {
            root: root.clone(),
            site,
            purpose,
            journal,
            changes: 0,
            set: BTreeMap::new(),
            known: BTreeSet::new(),
            inherited,
            notes: Vec::new(),
            guard,
            lock: Some(lock),
            dirs: dirs.clone(),
            others: BTreeMap::new(),
        })
    }

    /// Returns the changes of dead runs that `begin` has undone.
    pub fn inherited(&self) -> &[RestoreReport] {
        &self.inherited
    }

    pub fn journal(&self) -> &Path {
        self.journal.path()
    }

    pub fn read(&self, tunable: &Tunable) -> Result<Value, TunableError> {
        read(&self.root, tunable, &self.site)
    }

    /// Journals, writes and reads back each existing file of the tunable. Returns the value,
    /// rounded as by [`Tunable::validate`]. Undoes side effects on other tunables.
    ///
    /// If another process has changed the value since this lease set it, nothing is written: that
    /// process had a reason, and later measurements would be of its setting.
    pub fn set(&mut self, tunable: &'static Tunable, value: &Value) -> Result<Value, TunableError> {
        let value = tunable.validate(value, page_size())?.value;
        let present = read_all(&self.root, tunable, &self.site)?;
        for (file, old) in &present {
            self.reserve(file)?;
            self.refuse_changed(tunable, file, old)?;
        }
        let setting = Setting { tunable, value };
        let first = present.first().map(|(_, old)| old);
        refuse_costly(&self.root, &self.site, &setting, first, 0)?;
        for (file, old) in present {
            self.set_file(tunable, file, &old, &setting.value)?;
        }
        Ok(setting.value)
    }

    /// Takes the lock of a file's device if that is not the bdi itself, because another process may
    /// be measuring there.
    pub(crate) fn reserve(&mut self, file: &Path) -> Result<(), TunableError> {
        let bdi = bdi_of(&self.root, file);
        if bdi != self.site.bdi && !self.others.contains_key(&bdi) {
            let lock = DeviceLock::acquire(&self.dirs, &bdi)?;
            self.others.insert(bdi, lock);
        }
        Ok(())
    }

    pub(crate) fn refuse_changed(
        &self,
        tunable: &'static Tunable,
        file: &Path,
        found: &Value,
    ) -> Result<(), TunableError> {
        let expected = self.set.get(&(tunable.name(), file.to_owned()));
        match expected.filter(|expected| *expected != found) {
            None => Ok(()),
            Some(expected) => Err(self.changed_by_other(tunable, expected.clone(), found.clone())),
        }
    }

    fn set_file(
        &mut self,
        tunable: &'static Tunable,
        file: PathBuf,
        old: &Value,
        value: &Value,
    ) -> Result<(), TunableError> {
        if old == value {
            // Nothing to write, but an applied value is recorded so that it can be verified later.
            if self.purpose == JournalPurpose::Apply {
                self.journal_change(tunable, &file, old, value, false)?;
            }
            return Ok(());
        }
        self.check_guard()?;
        let held = self.journal_side_effects(tunable)?;
        self.journal_change(tunable, &file, old, value, false)?;
        match write(&self.root, tunable, &self.site, &file, value) {
            Ok(written) => {
                self.set.insert((tunable.name(), file), written);
            }
            Err(error) => {
                // The current value was not requested, and the journal does not list it as ours.
                if matches!(error, TunableError::DidNotStick { .. }) {
                    let _ = write(&self.root, tunable, &self.site, &file, old);
                }
                self.restore_side_effects(tunable, held)?;
                return Err(error);
            }
        }
        self.restore_side_effects(tunable, held)
    }

    /// Journals a change; must precede the change.
    pub(crate) fn journal_change(
        &mut self,
        tunable: &'static Tunable,
        file: &Path,
        old: &Value,
        new: &Value,
        held: bool,
    ) -> Result<(), TunableError> {
        self.reserve(file)?;
        self.changes += 1;
        self.known.insert((tunable.name(), file.to_owned()));
        Ok(self.journal.append(&JournalEntry::Change(JournaledChange {
            number: self.changes,
            tunable: tunable.name().to_owned(),
            file: file.to_owned(),
            old: old.clone(),
            new: new.clone(),
            held,
            unix_ms: unix_ms(),
        }))?)
    }

    pub(crate) fn check_guard(&mut self) -> Result<(), TunableError> {
        self.guard.as_mut().map_or(Ok(()), GuardProcess::check)
    }

    /// Returns the side effects that could not be undone, and forgets them.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Keeps the settings. Returns the path of the journal, with which they can be rolled back, and
    /// the lock, for remaining work.
    pub fn keep(mut self) -> Result<(PathBuf, Option<DeviceLock>), TunableError> {
        let path = self.journal.path().to_owned();
        self.journal.append(&JournalEntry::Kept { unix_ms: unix_ms() })?;
        self.journal.publish();
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
        Ok((path, self.lock.take()))
    }

    /// Restores all settings and reports the results.
    pub fn restore(mut self) -> Result<Vec<RestoreReport>, TunableError> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Vec<RestoreReport>, TunableError> {
        let Some(guard) = self.guard.take() else { return Ok(Vec::new()) };
        // Uses the journal, not memory, so that the result is the same as the guard's.
        let undone = Replay::load(self.journal.path())
            .map_err(TunableError::from)
            .and_then(|replay| put_back(&self.root, &replay));
        match undone {
            Ok(_) => guard.dismiss(),
            Err(_) => guard.abandon(),
        }
        drop(self.lock.take());
        undone
    }
}

impl Drop for BdiLease {
    fn drop(&mut self) {
        // If this fails, the guard has retried and reported it.
        let _ = self.finish();
    }
}
