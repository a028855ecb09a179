//! Starts programs and waits for their exit.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::TraceFileError;

/// Interval between checks whether a program has exited.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running program. Dropping it kills the program.
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

    /// Returns the exit status; `None` while the program runs.
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

    /// Waits for exit. Once `stop` returns true, sends `asking`, and SIGKILL after another 5 s.
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

/// Returns a note on a command that did not exit successfully.
pub(super) fn note(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("the command did not end well: {status}"))
}
