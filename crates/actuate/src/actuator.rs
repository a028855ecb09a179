//! Gives advice on single open files and prefetches ranges of them.

use std::os::fd::{AsFd, BorrowedFd};

use host::{DevNo, Root, device_facts};
use observe::{Census, OpenFile, OpenFileFilter};
use rustix::fs::fadvise;
use sys::readahead::readahead;
use units::Bytes;

use crate::reach::{ConfirmedFile, DupFd, confirm, duplicate};
use crate::{AccessRules, ActionOutcome, ActuateError, ActuateFailure};

/// The size of one `readahead(2)` call if neither the window nor the device allows more: the
/// kernel's default window (`VM_READAHEAD_PAGES` in include/linux/pagemap.h).
pub(crate) const MIN_PIECE_BYTES: Bytes = Bytes::from_kib(128);

/// Advice of `posix_fadvise(2)` on a whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// Sets the window to the current one of the bdi.
    Normal,
    /// Sets the window to twice the current one of the bdi.
    Sequential,
    /// Disables read-ahead for `read(2)`. The window stays and still applies to page faults.
    Random,
}

impl FileAdvice {
    pub(crate) fn raw(self) -> rustix::fs::Advice {
        match self {
            Self::Normal => rustix::fs::Advice::Normal,
            Self::Sequential => rustix::fs::Advice::Sequential,
            Self::Random => rustix::fs::Advice::Random,
        }
    }

    /// Returns the window and the random flag that `file` has after this advice.
    fn result(self, file: &OpenFile) -> (Bytes, bool) {
        match self {
            Self::Normal => (file.bdi_window, false),
            Self::Sequential => (file.bdi_window * 2, false),
            Self::Random => (file.window, true),
        }
    }
}

/// Acts on the open files of other processes that its access rules allow.
#[derive(Debug)]
pub struct Actuator {
    pub(crate) census: Census,
    pub(crate) limits: AccessRules,
    pub(crate) root: Root,
}

impl Actuator {
    /// Loads a [`Census`].
    ///
    /// # Errors
    ///
    /// If the BPF program that lists open files cannot be loaded.
    pub fn load(limits: AccessRules) -> Result<Self, ActuateError> {
        Ok(Self::new(Census::load()?, limits))
    }

    /// Uses a census that is already loaded.
    pub fn new(census: Census, limits: AccessRules) -> Self {
        Self { census, limits, root: Root::system() }
    }

    /// Lists open files, including those that the access rules exclude.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed.
    pub fn open_files(&self, filter: &OpenFileFilter) -> Result<Vec<OpenFile>, ActuateError> {
        Ok(self.census.open_files(filter)?)
    }

    /// Sets the window of an open file to the current window of its bdi. `POSIX_FADV_NORMAL` also
    /// clears the advice that the process gave earlier.
    ///
    /// # Errors
    ///
    /// As [`Self::advise`].
    pub fn refresh(&self, file: &OpenFile) -> Result<ActionOutcome, ActuateError> {
        self.advise(file, FileAdvice::Normal)
    }

    /// Gives advice on an open file, as its own process could, and reads the result back.
    ///
    /// # Errors
    ///
    /// If open files cannot be listed. A failure that concerns only this file is an outcome.
    pub fn advise(
        &self,
        file: &OpenFile,
        advice: FileAdvice,
    ) -> Result<ActionOutcome, ActuateError> {
        if file.is_only_mapped() {
            return Ok(ActionOutcome::Failed(ActuateFailure::OnlyMapped));
        }
        let (duplicate, now) = match self.duplicate(file)? {
            Ok(taken) => taken,
            Err(missed) => return Ok(ActionOutcome::Failed(missed)),
        };
        let (window, random) = advice.result(&now);
        if (now.window, now.random) == (window, random) {
            return Ok(ActionOutcome::AsWanted { window });
        }
        if let Err(missed) = apply_advice(&duplicate, advice) {
            return Ok(ActionOutcome::Failed(missed));
        }
        let after = confirm(&self.census, &[(file, &duplicate)])?.pop().flatten();
        Ok(match after {
            None => ActionOutcome::Failed(ActuateFailure::Gone),
            Some(after) if (after.window, after.random) == (window, random) => {
                ActionOutcome::Done { before: now.window, after: after.window }
            }
            Some(after) => ActionOutcome::DidNotStick { wanted: window, found: after.window },
        })
    }

    /// Starts reading `length` bytes from `offset` into the page cache, without waiting for the
    /// data. Returns the number of bytes requested, which is smaller at the end of the file.
    ///
    /// The kernel silently limits one call to the larger of the device's largest request and the
    /// window (`force_page_cache_ra()` in mm/readahead.c), so this method makes several calls.
    ///
    /// # Errors
    ///
    /// The outer error: open files cannot be listed. The inner one: this file cannot be read ahead.
    pub fn prefetch(
        &self,
        file: &OpenFile,
        offset: Bytes,
        length: Bytes,
    ) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        self.prefetch_all(file, &[(offset, length)])
    }

    /// Prefetches several ranges, each an offset and a length.
    ///
    /// # Errors
    ///
    /// As [`Self::prefetch`].
    pub fn prefetch_all(
        &self,
        file: &OpenFile,
        wanted: &[(Bytes, Bytes)],
    ) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        let (duplicate, now) = match self.duplicate(file)? {
            Ok(taken) => taken,
            Err(missed) => return Ok(Err(missed)),
        };
        let piece = largest_piece(&self.root, now.device, now.window);
        Ok(read_places(duplicate.as_fd(), wanted, now.size, piece))
    }

    /// Duplicates a descriptor of `file` and confirms that it is this open file. Returns the
    /// duplicate and the current state of the file.
    pub(crate) fn duplicate(&self, file: &OpenFile) -> Result<ConfirmedFile, ActuateError> {
        let duplicate = match duplicate(&self.root, &self.limits, file) {
            Ok(duplicate) => duplicate,
            Err(missed) => return Ok(Err(missed)),
        };
        let now = confirm(&self.census, &[(file, &duplicate)])?.pop().flatten();
        let Some(now) = now else { return Ok(Err(ActuateFailure::Gone)) };
        if file.is_only_mapped() {
            // The `O_PATH` duplicate has a size but no window, and cannot be read ahead.
            return Ok(duplicate.open_mapped(&self.root).map(|opened| (opened, now)));
        }
        Ok(Ok((duplicate, now)))
    }
}

/// Gives advice that sets the window, which clears the random flag, and restores that flag.
pub(crate) fn apply_to_window(
    duplicate: &DupFd,
    now: &OpenFile,
    advice: FileAdvice,
) -> Result<(), ActuateFailure> {
    apply_advice(duplicate, advice)?;
    if now.random { apply_advice(duplicate, FileAdvice::Random) } else { Ok(()) }
}

/// Calls `posix_fadvise(2)` for the whole file.
pub(crate) fn apply_advice(duplicate: &DupFd, advice: FileAdvice) -> Result<(), ActuateFailure> {
    fadvise(duplicate.as_fd(), 0, None, advice.raw())
        .map_err(|errno| ActuateFailure::from_errno("posix_fadvise", duplicate.pid, errno))
}

/// Starts reading these ranges of a file of this size. Returns the number of bytes requested.
pub(crate) fn read_places(
    file: BorrowedFd<'_>,
    wanted: &[(Bytes, Bytes)],
    size: Bytes,
    piece: Bytes,
) -> Result<Bytes, ActuateFailure> {
    let mut asked = Bytes::ZERO;
    for (offset, length) in wanted {
        let end = Bytes::new(offset.get().saturating_add(length.get()).min(size.get()));
        asked += read_ahead(file, (*offset, end), piece)?;
    }
    Ok(asked)
}

/// Starts reading from one offset to another in calls of `piece`. Returns the number of bytes
/// requested.
pub(crate) fn read_ahead(
    file: BorrowedFd<'_>,
    (from, end): (Bytes, Bytes),
    piece: Bytes,
) -> Result<Bytes, ActuateFailure> {
    let mut at = from;
    while at < end {
        let now = piece.min(end - at);
        readahead(file, at, now).map_err(|error| ActuateFailure::kernel("readahead", error))?;
        at += now;
    }
    Ok(at.saturating_sub(from))
}

/// Returns the largest amount that one call reads from this device, for a file with this window.
pub(crate) fn largest_piece(root: &Root, device: DevNo, window: Bytes) -> Bytes {
    window.max(largest_request(root, device)).max(MIN_PIECE_BYTES)
}

/// Returns the largest request of the disk of this device; zero if there is no disk.
fn largest_request(root: &Root, device: DevNo) -> Bytes {
    let facts = device_facts(root, device).ok();
    facts.and_then(|facts| facts.max_sectors).unwrap_or(Bytes::ZERO)
}
