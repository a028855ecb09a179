//! The window of files that are opened in the future.
//!
//! An open file gets the window of its bdi at open (`file_ra_state_init()` in mm/readahead.c). A
//! file that is read to its end immediately benefits only if the bdi is set before. When foreread
//! restores the bdi, it also restores files that were opened meanwhile and are still open.

use std::collections::{BTreeSet, HashSet};

use observe::{OpenFile, OpenFileId};
use tunables::{BdiLease, find};
use units::Bytes;

use crate::exact::{CollateralRestore, FileWithWindow, TemporaryWindow, key, with_window};
use crate::{ActuateError, Actuator};

/// The window of files that are opened in the future on one bdi.
#[derive(Debug)]
pub struct NewFiles {
    /// The original window of the bdi.
    original: Bytes,
    /// The value of the bdi, if it is not the original one.
    now: Option<Bytes>,
    /// All values that the bdi has had since [`Self::end`].
    temporary: BTreeSet<Bytes>,
    /// Files that had a temporary window before the bdi was set to it.
    preexisting: HashSet<FileWithWindow>,
}

impl NewFiles {
    /// Creates the state of a bdi whose original window is `own`.
    pub fn new(own: Bytes) -> Self {
        Self { original: own, now: None, temporary: BTreeSet::new(), preexisting: HashSet::new() }
    }

    /// Returns the original window of the bdi.
    pub fn own(&self) -> Bytes {
        self.original
    }

    /// Returns the window that foreread set on the bdi, or the original one.
    pub fn window(&self) -> Bytes {
        self.now.unwrap_or(self.original)
    }

    /// Sets the window of files that are opened from now on; `None` restores the original one.
    /// Returns whether this changed the bdi.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed, or the bdi cannot be set or was changed by another process.
    pub fn set(
        &mut self,
        actuator: &Actuator,
        lease: &mut BdiLease,
        window: Option<Bytes>,
    ) -> Result<bool, ActuateError> {
        let window = window.filter(|window| *window != self.original);
        if window == self.now {
            return Ok(false);
        }
        let tunable = find("read_ahead")?;
        match window {
            Some(window) => {
                self.remember(actuator.open_files(&with_window(lease.bdi(), window))?);
                self.temporary.insert(window);
                lease.set(tunable, &window.into())?;
            }
            None => lease.release_value(tunable, &self.original.into())?,
        }
        self.now = window;
        Ok(true)
    }

    /// Records which of these files already have the window, before the bdi is set to it.
    fn remember(&mut self, files: Vec<OpenFile>) {
        let preexisting: Vec<FileWithWindow> =
            files.iter().filter(|file| !self.has_temporary(file)).map(key).collect();
        self.preexisting.extend(preexisting);
    }

    /// Returns whether an open file got its window from a temporary value of the bdi.
    fn has_temporary(&self, file: &OpenFile) -> bool {
        let explains = |window: &Bytes| {
            TemporaryWindow { window: *window, original: self.original }.explains(file.window)
        };
        self.temporary.iter().any(explains) && !self.preexisting.contains(&key(file))
    }

    /// Returns the window that an open file would have if the bdi had kept its original one.
    pub fn would_have(&self, file: &OpenFile) -> Bytes {
        match self.temporary.contains(&file.window) {
            _ if !self.has_temporary(file) => file.window,
            true => self.original,
            // Twice a temporary window comes from `FADV_SEQUENTIAL`.
            false => self.original * 2,
        }
    }

    /// Restores the bdi and the files that were opened meanwhile. `others` are files that the
    /// caller restores itself.
    ///
    /// # Errors
    ///
    /// As [`Self::set`].
    pub fn end(
        &mut self,
        actuator: &Actuator,
        lease: &mut BdiLease,
        others: &HashSet<OpenFileId>,
    ) -> Result<Vec<CollateralRestore>, ActuateError> {
        self.set(actuator, lease, None)?;
        let mut restored = Vec::new();
        for window in std::mem::take(&mut self.temporary) {
            let temporary = TemporaryWindow { window, original: self.original };
            let mut after = actuator.open_files(&with_window(lease.bdi(), window))?;
            after.retain(|file| !self.preexisting.contains(&key(file)));
            for file in temporary.collateral(&[], &after, others) {
                restored.push(temporary.restore(actuator, file)?);
            }
        }
        self.preexisting.clear();
        Ok(restored)
    }
}
