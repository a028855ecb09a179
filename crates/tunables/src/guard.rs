//! The guard: a process that restores all settings if the run dies.
//!
//! The guard's standard input is one end of a socket; only the run has the other end. End of file
//! without a message means that the run died, by whatever signal. The guard's standard output is
//! the lock of the bdi: the lock belongs to the open file, so it stays held from the death of the
//! run until the guard exits, and no process mistakes a changed value for the original. The guard
//! has its own session and ignores termination signals, so Ctrl-C or a service manager's SIGTERM
//! reaches only the run.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use host::Root;
use sys::lock::Lock;

use crate::restore::put_back;
use crate::{JournalError, Replay, RestoreReport, TunableError};

/// The guard sends READY when it is ready; the run sends DONE when it has restored everything.
const READY_BYTE: u8 = b'r';
const DONE_BYTE: u8 = b'd';

/// A guard that is not ready after this time counts as failed.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The command that starts the guard; the journal's path is appended as the last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardCommand {
    /// The program, usually the running executable.
    pub program: PathBuf,
    /// The arguments before the journal, usually `guard`.
    pub args: Vec<OsString>,
}

/// The run's handle of a running guard.
#[derive(Debug)]
pub(crate) struct GuardProcess {
    program: PathBuf,
    child: Child,
    link: UnixStream,
}

impl GuardProcess {
    /// Starts a guard and waits until it is ready.
    pub(crate) fn start(
        command: &GuardCommand,
        journal: &Path,
        lock: &Lock,
    ) -> Result<Self, TunableError> {
        let program = command.program.clone();
        let fail = |problem: String| TunableError::Guard { program: program.clone(), problem };
        let spawn = || -> io::Result<(Child, UnixStream)> {
            let (link, its_end) = UnixStream::pair()?;
            let child = Command::new(&command.program)
                .args(&command.args)
                .arg(journal)
                .stdin(Stdio::from(OwnedFd::from(its_end)))
                .stdout(Stdio::from(lock.file().try_clone()?))
                .spawn()?;
            Ok((child, link))
        };
        let (child, link) =
            spawn().map_err(|error| fail(format!("cannot be started ({error})")))?;
        let mut guard = Self { program: program.clone(), child, link };
        match guard.await_ready() {
            Ok(()) => Ok(guard),
            Err(error) => {
                let _ = guard.child.kill();
                let status = guard.child.wait();
                let status = status.map_or_else(|_| String::new(), |status| format!(", {status}"));
                Err(fail(format!("did not get ready ({error}{status})")))
            }
        }
    }

    fn await_ready(&mut self) -> io::Result<()> {
        self.link.set_read_timeout(Some(START_TIMEOUT))?;
        let mut word = [0];
        self.link.read_exact(&mut word)?;
        if word == [READY_BYTE] { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    /// Returns an error if the guard has exited; without it, nothing may be changed.
    pub(crate) fn check(&mut self) -> Result<(), TunableError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.gone(format!("has gone ({status})"))),
            Err(error) => Err(self.gone(format!("cannot be seen ({error})"))),
        }
    }

    fn gone(&self, problem: String) -> TunableError {
        TunableError::Guard { program: self.program.clone(), problem }
    }

    /// Sends DONE, because everything is restored, and waits for the guard to exit.
    pub(crate) fn dismiss(mut self) {
        // If the guard has already exited, the write fails and nothing remains to be done.
        let _ = self.link.write_all(&[DONE_BYTE]);
        let _ = self.child.wait();
    }

    /// Lets the guard restore what the run could not, as if the run had died.
    pub(crate) fn abandon(self) {
        let Self { mut child, link, .. } = self;
        drop(link);
        let _ = child.wait();
    }
}

/// The body of `foreread guard JOURNAL`: waits until the run is done or has died. If it died, the
/// guard restores everything that the journal lists as changed.
///
/// Writes nothing to standard output, which is the lock.
pub fn guard_main(root: &Root, journal: &Path) -> Result<Vec<RestoreReport>, TunableError> {
    let own = |source| TunableError::Own { path: "/dev/stdin".into(), hint: "", source };
    sys::process::ignore_termination_signals();
    // Fails only for the leader of a process group, as when a shell starts it.
    let _ = sys::process::leave_session();
    // Only root may do this; the OOM killer may kill other users' guards like any process.
    let _ = sys::process::spare_from_oom();
    let _ = std::env::set_current_dir("/");
    rustix::io::write(io::stdin().as_fd(), &[READY_BYTE]).map_err(|errno| own(errno.into()))?;
    if owner_is_done().map_err(own)? {
        return Ok(Vec::new());
    }
    match Replay::load(journal) {
        // The run completed an apply and died before it sent DONE.
        Ok(replay) if replay.kept => Ok(Vec::new()),
        Ok(replay) => put_back(root, &replay),
        // The journal was removed: the run restored everything and died before it sent DONE.
        Err(JournalError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

fn owner_is_done() -> io::Result<bool> {
    let mut word = [0];
    match io::stdin().lock().read_exact(&mut word) {
        Ok(()) => Ok(word == [DONE_BYTE]),
        // The socket reports a reset if the run died with unread data.
        Err(error)
            if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
