//! Getting hold of another process's open file, and making sure that it is the one that was meant.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use host::Root;
use observe::{Census, Holder, ObserveError, OpenFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::{AccessRules, ActuateFailure};

/// A duplicate of a descriptor of another process. It is to be dropped soon: as long as it lives,
/// the file is open, its locks hold and its file system cannot be unmounted. The longest that one
/// is kept is a tenth of a second, for misses that are answered ([`crate::MissPrefetcher`]).
#[derive(Debug)]
pub(crate) struct DupFd {
    descriptor: OwnedFd,
    /// The process it was taken from.
    pub pid: u32,
}

impl AsFd for DupFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A duplicate together with what it was found to be, or why there is none.
pub(crate) type ConfirmedFile = Result<(DupFd, OpenFile), ActuateFailure>;

/// Takes a duplicate of `file` from one of its holders, if the limits let it. Whether it is that
/// very open file [`confirm`] must say before it is used.
pub(crate) fn reach(
    root: &Root,
    limits: &AccessRules,
    file: &OpenFile,
) -> Result<DupFd, ActuateFailure> {
    let mut missed = ActuateFailure::Gone;
    for process in holders(root, limits, file)? {
        match process.duplicate() {
            Ok(grip) => return Ok(grip),
            Err(why) => missed = why,
        }
    }
    Err(missed)
}

/// The processes that hold `file`, or held it when it was listed, if the limits let it be touched.
pub(crate) fn holders<'a>(
    root: &Root,
    limits: &AccessRules,
    file: &'a OpenFile,
) -> Result<Vec<HolderProcess<'a>>, ActuateFailure> {
    limits.check_mount(root, file.device)?;
    let mut allowed = Vec::new();
    let own = std::process::id();
    // That this process has a hand on it at the moment says nothing.
    for holder in file.holders.iter().filter(|holder| holder.pid != own || file.holders.len() == 1)
    {
        let process = match HolderProcess::of(holder) {
            Ok(process) => process,
            // A holder that has gone holds nothing, and what it was does not matter.
            Err(ActuateFailure::Gone) => continue,
            Err(why) => return Err(why),
        };
        let denied = limits.denies(root, holder);
        let is_allowed = denied.is_none() && limits.allows(root, holder);
        if !process.lives() {
            continue; // what was read was perhaps of another process with its number
        }
        match denied {
            Some(rule) => return Err(ActuateFailure::Denied(rule)),
            None if is_allowed => allowed.push(process),
            // Who holds a file together with another answers for himself only.
            None => return Err(ActuateFailure::NotAllowed),
        }
    }
    if allowed.is_empty() { Err(ActuateFailure::Gone) } else { Ok(allowed) }
}

/// Asks the kernel what this process now has open by the grips, one for each; `None` where that is
/// not the open file that was meant.
pub(crate) fn confirm(
    census: &Census,
    wanted: &[(&OpenFile, &DupFd)],
) -> Result<Vec<Option<OpenFile>>, ObserveError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let own = census.of_process(std::process::id())?;
    let found = |grip: &DupFd| {
        let number = u32::try_from(grip.descriptor.as_raw_fd()).ok()?;
        own.iter().find(|file| file.holders.iter().any(|holder| holder.fd == number))
    };
    let is_it = |meant: &OpenFile, found: &OpenFile| {
        meant.id == found.id && meant.device == found.device && meant.inode == found.inode
    };
    let confirmed =
        wanted.iter().map(|(meant, grip)| found(grip).filter(|found| is_it(meant, found)).cloned());
    Ok(confirmed.collect())
}

/// A process that cannot be taken for another: a pidfd stays with the one it was opened for.
#[derive(Debug)]
pub(crate) struct HolderProcess<'a> {
    pub holder: &'a Holder,
    pidfd: OwnedFd,
}

impl<'a> HolderProcess<'a> {
    pub(crate) fn of(holder: &'a Holder) -> Result<Self, ActuateFailure> {
        let pid =
            i32::try_from(holder.pid).ok().and_then(Pid::from_raw).ok_or(ActuateFailure::Gone)?;
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { holder, pidfd }),
            // The number belongs to a thread now, so the process has gone.
            Err(Errno::INVAL) => Err(ActuateFailure::Gone),
            Err(errno) => Err(ActuateFailure::of("pidfd_open", holder.pid, errno)),
        }
    }

    /// A pidfd can be read from when its process has ended.
    fn lives(&self) -> bool {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec::default())) == Ok(0)
    }

    pub(crate) fn duplicate(&self) -> Result<DupFd, ActuateFailure> {
        let pid = self.holder.pid;
        let number = i32::try_from(self.holder.fd).map_err(|_| ActuateFailure::Gone)?;
        let descriptor = pidfd_getfd(&self.pidfd, number, PidfdGetfdFlags::empty())
            .map_err(|errno| ActuateFailure::of("pidfd_getfd", pid, errno))?;
        Ok(DupFd { descriptor, pid })
    }
}
