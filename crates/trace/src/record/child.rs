//! Starting programs and waiting for them.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::TraceFileError;

/// How often a program is asked whether it has ended.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A program under way, which does not outlive whoever watches it.
pub(super) struct RecordedChild {
    child: Child,
    ended: Option<ExitStatus>,
}

impl RecordedChild {
    pub(super) fn start(command: &mut Command) -> Result<Self, TraceFileError> {
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(TraceFileError::io("start", program))?;
        Ok(Self { child, ended: None })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let (None, Some(pid)) = (self.ended, Pid::from_raw(self.child.id().cast_signed())) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end; asks it to end when `stop` says so, and makes it if it does not.
    pub(super) fn wait(&mut self, stop: &dyn Fn() -> bool, asking: Signal) -> ExitStatus {
        let (mut asked, mut patience) = (false, 250);
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            if stop() && !asked {
                self.signal(asking);
                asked = true;
            }
            if asked {
                patience -= 1;
                if patience == 0 {
                    self.signal(Signal::KILL);
                }
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for RecordedChild {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::CONT);
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// What is to be said of how a command ended.
pub(super) fn note(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("the command did not end well: {status}"))
}
