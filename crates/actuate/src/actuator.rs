//! Acts on open files, one call each.

use std::os::fd::{AsFd, BorrowedFd};

use host::{DevNo, Root, device_facts};
use observe::{Census, OpenFile, OpenFileFilter};
use rustix::fs::fadvise;
use sys::readahead::readahead;
use units::Bytes;

use crate::reach::{ConfirmedFile, DupFd, confirm, reach};
use crate::{AccessRules, ActionOutcome, ActuateError, ActuateFailure};

/// The largest piece that is asked for at once where nothing says more: what the kernel gives any
/// device at least.
pub(crate) const SMALLEST_PIECE: Bytes = Bytes::from_kib(128);

/// What an open file can be told by `posix_fadvise(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// The window of the bdi, as it is now.
    Normal,
    /// Twice the window of the bdi.
    Sequential,
    /// No read-ahead for `read(2)`; the window stays, and is used for mapped files.
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

    /// The window and the random flag that `file` has once it was told.
    fn result(self, file: &OpenFile) -> (Bytes, bool) {
        match self {
            Self::Normal => (file.bdi_window, false),
            Self::Sequential => (file.bdi_window * 2, false),
            Self::Random => (file.window, true),
        }
    }
}

/// Acts on open files of other processes, within its limits.
#[derive(Debug)]
pub struct Actuator {
    pub(crate) census: Census,
    pub(crate) limits: AccessRules,
    pub(crate) root: Root,
}

impl Actuator {
    /// An actuator that may touch what `limits` let it.
    pub fn begin(limits: AccessRules) -> Result<Self, ActuateError> {
        Ok(Self::with(Census::begin()?, limits))
    }

    /// The same with a census that is there already.
    pub fn with(census: Census, limits: AccessRules) -> Self {
        Self { census, limits, root: Root::system() }
    }

    /// Lists open files, also those that it may not touch.
    pub fn open_files(&self, filter: &OpenFileFilter) -> Result<Vec<OpenFile>, ActuateError> {
        Ok(self.census.open_files(filter)?)
    }

    /// Gives an open file the window that files opened now get. Advice that its process had given
    /// is forgotten by this, as the kernel has one word for both.
    pub fn refresh(&self, file: &OpenFile) -> Result<ActionOutcome, ActuateError> {
        self.advise(file, FileAdvice::Normal)
    }

    /// Gives advice on an open file as if its process did, and reads back what came of it.
    pub fn advise(
        &self,
        file: &OpenFile,
        advice: FileAdvice,
    ) -> Result<ActionOutcome, ActuateError> {
        let (grip, now) = match self.take(file)? {
            Ok(taken) => taken,
            Err(missed) => return Ok(ActionOutcome::Failed(missed)),
        };
        let (window, random) = advice.result(&now);
        if (now.window, now.random) == (window, random) {
            return Ok(ActionOutcome::AsWanted { window });
        }
        if let Err(missed) = tell(&grip, advice) {
            return Ok(ActionOutcome::Failed(missed));
        }
        let after = confirm(&self.census, &[(file, &grip)])?.pop().flatten();
        Ok(match after {
            None => ActionOutcome::Failed(ActuateFailure::Gone),
            Some(after) if (after.window, after.random) == (window, random) => {
                ActionOutcome::Done { before: now.window, after: after.window }
            }
            Some(after) => ActionOutcome::DidNotStick { wanted: window, found: after.window },
        })
    }

    /// Has the kernel read `length` bytes of a file from `offset` on into the cache, and does not
    /// wait for it. Gives how much was asked for: less where the file ends.
    ///
    /// One request is silently cut at the larger of the device's largest request and the window
    /// (`force_page_cache_ra()`), so this makes as many as it takes.
    pub fn prefetch(
        &self,
        file: &OpenFile,
        offset: Bytes,
        length: Bytes,
    ) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        self.prefetch_all(file, &[(offset, length)])
    }

    /// The same for several places and lengths.
    pub fn prefetch_all(
        &self,
        file: &OpenFile,
        wanted: &[(Bytes, Bytes)],
    ) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        let (grip, now) = match self.take(file)? {
            Ok(taken) => taken,
            Err(missed) => return Ok(Err(missed)),
        };
        let piece = largest_piece(&self.root, now.device, now.window);
        Ok(read_places(grip.as_fd(), wanted, now.size, piece))
    }

    /// A duplicate of the very open file that is meant, and what that is now.
    pub(crate) fn take(&self, file: &OpenFile) -> Result<ConfirmedFile, ActuateError> {
        let grip = match reach(&self.root, &self.limits, file) {
            Ok(grip) => grip,
            Err(missed) => return Ok(Err(missed)),
        };
        let now = confirm(&self.census, &[(file, &grip)])?.pop().flatten();
        Ok(now.map(|now| (grip, now)).ok_or(ActuateFailure::Gone))
    }
}

/// Gives advice on the whole of an open file.
pub(crate) fn tell(grip: &DupFd, advice: FileAdvice) -> Result<(), ActuateFailure> {
    fadvise(grip.as_fd(), 0, None, advice.raw())
        .map_err(|errno| ActuateFailure::of("posix_fadvise", grip.pid, errno))
}

/// Has the kernel read these places and lengths of a file of this size; how much that is.
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

/// Has the kernel read from one offset to another, in pieces; how much that is.
pub(crate) fn read_ahead(
    file: BorrowedFd<'_>,
    (from, end): (Bytes, Bytes),
    piece: Bytes,
) -> Result<Bytes, ActuateFailure> {
    let mut at = from;
    while at < end {
        let now = piece.min(end - at);
        readahead(file, at, now).map_err(|error| ActuateFailure::Kernel {
            doing: "readahead",
            reason: error.to_string(),
        })?;
        at += now;
    }
    Ok(at.saturating_sub(from))
}

/// The most that one call reads on this device of a file with this window.
pub(crate) fn largest_piece(root: &Root, device: DevNo, window: Bytes) -> Bytes {
    window.max(largest_request(root, device)).max(SMALLEST_PIECE)
}

/// The largest request of the disk that a device is or is on; nothing where there is none.
fn largest_request(root: &Root, device: DevNo) -> Bytes {
    let facts = device_facts(root, device).ok();
    facts.and_then(|facts| facts.max_sectors).unwrap_or(Bytes::ZERO)
}
