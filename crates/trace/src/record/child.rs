//! Starts programs and waits for their exit.

use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::TraceFileError;

/// Interval between checks whether a program has exited.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of polls until a program that was asked to exit is killed: 5 s.
const POLLS_TO_KILL: u32 = 250;
/// Number of polls until its tracer is killed, too: another second, to write the log.
const POLLS_TO_KILL_TRACER: u32 = POLLS_TO_KILL + 50;

/// A running program. Dropping it kills the program.
pub(super) struct RecordedChild {
    child: Child,
    /// Whether the program is a tracer that runs the recorded command as its child.
    tracer: bool,
    ended: Option<ExitStatus>,
}

impl RecordedChild {
    pub(super) fn start(command: &mut Command) -> Result<Self, TraceFileError> {
        let program = PathBuf::from(command.get_program());
        let child = command.spawn().map_err(TraceFileError::io("start", program))?;
        Ok(Self { child, tracer: false, ended: None })
    }

    /// Starts a tracer that runs the recorded command as its child and ignores signals meanwhile.
    pub(super) fn start_tracer(command: &mut Command) -> Result<Self, TraceFileError> {
        let mut running = Self::start(command)?;
        running.tracer = true;
        Ok(running)
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

    /// Sends a signal to the program, or to the command of a tracer if it still runs.
    pub(super) fn signal(&self, signal: Signal) {
        if self.ended.is_some() {
            return;
        }
        let own = self.pid();
        let mut pids = if self.tracer { children(own) } else { Vec::new() };
        if pids.is_empty() {
            pids.push(own);
        }
        for pid in pids.into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for exit. Once `stop` returns true, sends `asking`, and SIGKILL after another 5 s.
    pub(super) fn wait(&mut self, stop: &dyn Fn() -> bool, asking: Signal) -> ExitStatus {
        let (mut asked, mut polls) = (false, 0);
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            if stop() && !asked {
                self.signal(asking);
                asked = true;
            }
            if asked {
                polls += 1;
                match polls {
                    POLLS_TO_KILL => self.signal(Signal::KILL),
                    POLLS_TO_KILL_TRACER => drop(self.child.kill()),
                    _ => {}
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
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns the children of a process that has one thread (proc_pid_task(5)).
fn children(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    list.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns a note on a command that did not exit successfully.
pub(super) fn note(status: ExitStatus) -> Option<String> {
    (!status.success()).then(|| format!("the command did not end well: {status}"))
}
