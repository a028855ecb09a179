//! Duplicates descriptors of other processes, and confirms that they are the intended open files.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use host::Root;
use observe::{Census, Handle, Holder, ObserveError, OpenFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::mounted::reopen;
use crate::{AccessRules, ActuateFailure};

/// A duplicate of a descriptor of another process. While it exists, the file stays open, its locks
/// persist and its file system cannot be unmounted, so it must be dropped soon. The longest
/// lifetime is 0.1 s, in [`crate::MissPrefetcher`].
#[derive(Debug)]
pub(crate) struct DupFd {
    descriptor: OwnedFd,
    /// The process whose descriptor was duplicated.
    pub pid: u32,
}

impl DupFd {
    /// Opens a mapped file that was found and confirmed. The result is another open file than the
    /// mapped one, so it can only be used to prefetch.
    pub(crate) fn open_mapped(self, root: &Root) -> Result<Self, ActuateFailure> {
        let descriptor = reopen(root, self.descriptor.as_fd(), OFlags::empty())
            .map_err(|errno| ActuateFailure::from_errno("open", self.pid, errno))?;
        Ok(Self { descriptor, pid: self.pid })
    }
}

impl AsFd for DupFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A duplicate with the current state of its open file, or why there is none.
pub(crate) type ConfirmedFile = Result<(DupFd, OpenFile), ActuateFailure>;

/// Duplicates the descriptor of one of the holders of `file`, if the access rules allow it. The
/// duplicate must pass [`confirm`] before it is used.
pub(crate) fn duplicate(
    root: &Root,
    limits: &AccessRules,
    file: &OpenFile,
) -> Result<DupFd, ActuateFailure> {
    let mut failure = ActuateFailure::Gone;
    for process in holders(root, limits, file)? {
        match process.duplicate(root) {
            Ok(duplicate) => return Ok(duplicate),
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

/// Opens the processes that held `file` when it was listed, if the access rules allow all of them.
pub(crate) fn holders<'a>(
    root: &Root,
    limits: &AccessRules,
    file: &'a OpenFile,
) -> Result<Vec<HolderProcess<'a>>, ActuateFailure> {
    limits.check_mount(root, &file.mounted_devices())?;
    let mut allowed = Vec::new();
    let own = std::process::id();
    // This process holds duplicates of other processes' files, so it does not count as a holder.
    for holder in file.holders.iter().filter(|holder| holder.pid != own || file.holders.len() == 1)
    {
        let process = match HolderProcess::open(holder) {
            Ok(process) => process,
            // A process that has exited holds no file, so the rules need not allow it.
            Err(ActuateFailure::Gone) => continue,
            Err(why) => return Err(why),
        };
        let denied = limits.denies(root, holder);
        let is_allowed = denied.is_none() && limits.allows(root, holder);
        if !process.is_alive() {
            continue; // the rules may have been checked against a new process with the same pid
        }
        match denied {
            Some(rule) => return Err(ActuateFailure::Denied(rule)),
            None if is_allowed => allowed.push(process),
            // All holders must be allowed: the window of a shared open file affects each of them.
            None => return Err(ActuateFailure::NotAllowed),
        }
    }
    if allowed.is_empty() { Err(ActuateFailure::Gone) } else { Ok(allowed) }
}

/// Looks up the duplicates in the list of this process's open files. Returns the current state of
/// each intended file, or `None` if the duplicate is another open file. If a file is only mapped,
/// its duplicate is always another open file, which must have the same inode.
pub(crate) fn confirm(
    census: &Census,
    wanted: &[(&OpenFile, &DupFd)],
) -> Result<Vec<Option<OpenFile>>, ObserveError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let own = census.of_process(std::process::id())?;
    let found = |duplicate: &DupFd| {
        let number = u32::try_from(duplicate.descriptor.as_raw_fd()).ok()?;
        own.iter().find(|file| file.holders.iter().any(|holder| holder.has_descriptor(number)))
    };
    let is_same = |file: &OpenFile, found: &OpenFile| {
        let is_open_file = file.id == found.id || file.is_only_mapped();
        is_open_file && file.device == found.device && file.inode == found.inode
    };
    let confirmed = wanted
        .iter()
        .map(|(file, duplicate)| found(duplicate).filter(|found| is_same(file, found)).cloned());
    Ok(confirmed.collect())
}

/// A process that holds an open file, identified by a pidfd: unlike a pid, a pidfd is never reused.
#[derive(Debug)]
pub(crate) struct HolderProcess<'a> {
    pub holder: &'a Holder,
    pidfd: OwnedFd,
}

impl<'a> HolderProcess<'a> {
    pub(crate) fn open(holder: &'a Holder) -> Result<Self, ActuateFailure> {
        let pid =
            i32::try_from(holder.pid).ok().and_then(Pid::from_raw).ok_or(ActuateFailure::Gone)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { holder, pidfd }),
            // The number now belongs to a thread, so the process has exited.
            Err(Errno::INVAL) => Err(ActuateFailure::Gone),
            Err(errno) => Err(ActuateFailure::from_errno("pidfd_open", holder.pid, errno)),
        }
    }

    /// Returns whether the process still runs: a pidfd becomes readable when its process exits.
    fn is_alive(&self) -> bool {
        let mut exited = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut exited, Some(&Timespec::default())) == Ok(0)
    }

    pub(crate) fn duplicate(&self, root: &Root) -> Result<DupFd, ActuateFailure> {
        let pid = self.holder.pid;
        let descriptor = match self.holder.handle {
            Handle::Descriptor { fd } => {
                let number = i32::try_from(fd).map_err(|_| ActuateFailure::Gone)?;
                pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty())
                    .map_err(|errno| ActuateFailure::from_errno("pidfd_getfd", pid, errno))?
            }
            Handle::Mapping { .. } => self.find_mapped(root)?,
        };
        Ok(DupFd { descriptor, pid })
    }

    /// Finds the mapped file without opening it: another file may be mapped there by now.
    fn find_mapped(&self, root: &Root) -> Result<OwnedFd, ActuateFailure> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        open(root.path(self.holder.link()), flags, Mode::empty()).map_err(|errno| match errno {
            Errno::PERM => ActuateFailure::MappingNotPermitted { pid: self.holder.pid },
            errno => ActuateFailure::from_errno("open", self.holder.pid, errno),
        })
    }
}
