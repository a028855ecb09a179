//! The window of files that will be opened.
//!
//! An open file has the window that its bdi had when it was opened (`file_ra_state_init()` in
//! mm/readahead.c). Files that are read to their end before anybody could act on them are helped
//! only so: the bdi itself is set, for as long as that is of use. What was opened meanwhile, and is
//! still open, gets afterwards what it would have had.

use std::collections::{BTreeSet, HashSet};

use observe::{OpenFile, OpenFileId};
use tunables::{BdiLease, find};
use units::Bytes;

use crate::exact::{CollateralRestore, Instant, with_such};
use crate::{ActuateError, Actuator};

/// An open file with a window that it had of its own before the bdi was set to that.
type Had = (OpenFileId, u64, Bytes);

/// The window of files that will be opened on one bdi.
#[derive(Debug)]
pub struct NewFiles {
    own: Bytes,
    /// What the bdi is set to.
    now: Option<Bytes>,
    /// All that it was set to since it last was at its own for good.
    given: BTreeSet<Bytes>,
    had: HashSet<Had>,
}

impl NewFiles {
    /// Files are opened with the bdi's own window, which is this.
    pub fn with(own: Bytes) -> Self {
        Self { own, now: None, given: BTreeSet::new(), had: HashSet::new() }
    }

    pub fn own(&self) -> Bytes {
        self.own
    }

    /// The window of the bdi, unless somebody else has set it.
    pub fn window(&self) -> Bytes {
        self.now.unwrap_or(self.own)
    }

    /// Has files opened with this window from now on; with the bdi's own if there is none. Whether
    /// that is a change.
    pub fn set(
        &mut self,
        actuator: &Actuator,
        lease: &mut BdiLease,
        window: Option<Bytes>,
    ) -> Result<bool, ActuateError> {
        let window = window.filter(|window| *window != self.own);
        if window == self.now {
            return Ok(false);
        }
        let tunable = find("read_ahead")?;
        match window {
            Some(window) => {
                self.note(actuator.open_files(&with_such(lease.bdi(), window))?);
                self.given.insert(window);
                lease.set(tunable, &window.into())?;
            }
            None => lease.release_value(tunable, &self.own.into())?,
        }
        self.now = window;
        Ok(true)
    }

    /// Notes who has a window already that is to be given.
    fn note(&mut self, files: Vec<OpenFile>) {
        let own: Vec<Had> = files.iter().filter(|file| !self.gave(file)).map(had).collect();
        self.had.extend(own);
    }

    /// Whether an open file has its window from the bdi when it was not at its own.
    fn gave(&self, file: &OpenFile) -> bool {
        let of = |given: &Bytes| Instant { window: *given, own: self.own }.gave(file.window);
        self.given.iter().any(of) && !self.had.contains(&had(file))
    }

    /// The window that an open file would have if the bdi had always been at its own.
    pub fn would_have(&self, file: &OpenFile) -> Bytes {
        match self.given.contains(&file.window) {
            _ if !self.gave(file) => file.window,
            true => self.own,
            false => self.own * 2,
        }
    }

    /// Ends: the bdi is at its own again, and so are files that were opened meanwhile, but for
    /// `others`, which somebody else looks after.
    pub fn end(
        &mut self,
        actuator: &Actuator,
        lease: &mut BdiLease,
        others: &HashSet<OpenFileId>,
    ) -> Result<Vec<CollateralRestore>, ActuateError> {
        self.set(actuator, lease, None)?;
        let mut mended = Vec::new();
        for window in std::mem::take(&mut self.given) {
            let instant = Instant { window, own: self.own };
            let mut after = actuator.open_files(&with_such(lease.bdi(), window))?;
            after.retain(|file| !self.had.contains(&had(file)));
            for stray in instant.strays(&[], &after, others) {
                mended.push(instant.mend(actuator, stray)?);
            }
        }
        self.had.clear();
        Ok(mended)
    }
}

fn had(file: &OpenFile) -> Had {
    (file.id, file.inode, file.window)
}
