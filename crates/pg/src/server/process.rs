//! Runs programs to completion, with a time limit and cancellation.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::child::ChildProcess;

use crate::error::PgError;

/// Interval of the checks whether a program has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum output of a program that is kept.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// A time limit and a cancellation flag.
#[derive(Clone)]
pub struct RunLimit {
    pub time: Duration,
    /// True if the program should stop immediately.
    pub cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl RunLimit {
    /// Creates a time limit without cancellation.
    pub fn seconds(seconds: u64) -> Self {
        Self { time: Duration::from_secs(seconds), cancelled: Arc::new(|| false) }
    }

    /// Waits until a program exits, and calls `poll` at each interval.
    pub(crate) fn wait(
        &self,
        child: &mut ChildProcess,
        program: &str,
        interval: Duration,
        poll: &mut dyn FnMut(&ChildProcess),
    ) -> Result<ExitStatus, PgError> {
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_status().map_err(PgError::io("wait for", program))? {
                return Ok(status);
            }
            if (self.cancelled)() {
                return Err(PgError::Cancelled);
            }
            if start.elapsed() > self.time {
                return Err(PgError::Hangs { program: program.to_owned(), limit: self.time });
            }
            poll(child);
            std::thread::sleep(interval);
        }
    }
}

/// A program with its arguments and input.
pub(crate) struct PgCommand {
    command: Command,
    name: String,
    input: String,
    held: Option<File>,
}

impl PgCommand {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self::from_command(Command::new(&program), &program)
    }

    /// Creates the invocation; errors name `program`, whatever program starts it.
    pub(crate) fn from_command(command: Command, program: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { command, name, input: String::new(), held: None }
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn input(mut self, text: String) -> Self {
        self.input = text;
        self
    }

    /// Passes a locked file as the program's standard input.
    pub(crate) fn holding(mut self, file: File) -> Self {
        self.held = Some(file);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the program until it exits; returns its stdout.
    pub(crate) fn run(self, limit: &RunLimit) -> Result<String, PgError> {
        let program = self.name.clone();
        let mut child = self.start()?;
        let status = limit.wait(&mut child, &program, POLL_INTERVAL, &mut |_| ())?;
        let (stdout, stderr) = output(&mut child);
        if status.success() {
            return Ok(stdout);
        }
        Err(failed(program, &status, &format!("{stdout}\n{stderr}")))
    }

    pub(crate) fn start(mut self) -> Result<ChildProcess, PgError> {
        let starting = PgError::io("start", self.command.get_program().to_owned());
        self.command
            .env("LC_ALL", "C.UTF-8")
            .stdin(self.held.take().map_or_else(Stdio::piped, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        ChildProcess::start(&mut self.command, &self.input, MAX_OUTPUT_BYTES).map_err(starting)
    }
}

/// Returns the stdout and stderr of a program that has exited.
pub(crate) fn output(child: &mut ChildProcess) -> (String, String) {
    let output = child.take_output().unwrap_or_default();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

/// Returns an error with the last lines of output.
pub(crate) fn failed(program: String, status: &ExitStatus, said: &str) -> PgError {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(4);
    PgError::Failed { program, status: status.to_string(), message: lines[last..].join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> PgCommand {
        PgCommand::new("/bin/sh".into()).arg("-c").arg(script)
    }

    #[test]
    fn what_is_said_is_heard_and_failure_told() {
        let limit = RunLimit::seconds(20);
        assert_eq!(sh("cat").input("hello".to_owned()).run(&limit).unwrap(), "hello");
        let error = sh("echo no room >&2; exit 3").run(&limit).unwrap_err().to_string();
        assert!(error.contains("sh failed") && error.contains("no room"), "{error}");
    }

    #[test]
    fn what_hangs_is_ended() {
        let limit = RunLimit { time: Duration::from_millis(50), ..RunLimit::seconds(0) };
        assert!(matches!(sh("sleep 60").run(&limit), Err(PgError::Hangs { .. })));
        let limit = RunLimit { cancelled: Arc::new(|| true), ..RunLimit::seconds(60) };
        assert!(matches!(sh("sleep 60").run(&limit), Err(PgError::Cancelled)));
    }
}
