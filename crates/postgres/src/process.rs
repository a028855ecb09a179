//! Programs that are run to their end, within a time, and unless interrupted.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::PostgresError;

/// How often a program that runs is looked after.
const LOOK: Duration = Duration::from_millis(10);
/// More of what a program says is not kept.
const KEPT: u64 = 1 << 20;

/// How long a program may take, and what ends it before.
#[derive(Clone)]
pub struct Limit {
    /// The time.
    pub time: Duration,
    /// Whether to stop at once.
    pub cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Limit {
    /// So many seconds, and nothing else.
    pub fn seconds(seconds: u64) -> Self {
        Self { time: Duration::from_secs(seconds), cancelled: Arc::new(|| false) }
    }
}

/// A program with its arguments and what it is told.
pub(crate) struct Order {
    command: Command,
    name: String,
    input: String,
    held: Option<File>,
}

impl Order {
    pub(crate) fn new(program: PathBuf) -> Self {
        Self::of(Command::new(&program), &program)
    }

    /// What is said of errors names `program`, whatever starts it.
    pub(crate) fn of(command: Command, program: &Path) -> Self {
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

    /// Has it hold a locked file, which it gets instead of an input.
    pub(crate) fn holding(mut self, file: File) -> Self {
        self.held = Some(file);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it to its end; what it said on stdout.
    pub(crate) fn run(self, limit: &Limit) -> Result<String, PostgresError> {
        let program = self.name.clone();
        let mut running = self.start()?;
        let status = running.wait(limit)?;
        let (said, complaint) = running.words();
        if status.success() {
            return Ok(said);
        }
        Err(failed(program, &status, &format!("{said}\n{complaint}")))
    }

    /// Starts it, in a group of its own: control-C at the terminal is for us to act upon.
    pub(crate) fn start(mut self) -> Result<Running, PostgresError> {
        let starting = PostgresError::io("start", self.command.get_program().to_owned());
        let child = self
            .command
            .env("LC_ALL", "C.UTF-8")
            .process_group(0)
            .stdin(self.held.take().map_or_else(Stdio::piped, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(starting)?;
        let mut running = Running { child, program: self.name, said: None, complaint: None };
        let stdin = running.child.stdin.take();
        running.said = running.child.stdout.take().map(drain);
        running.complaint = running.child.stderr.take().map(drain);
        if let Some(mut stdin) = stdin {
            // Whoever does not listen says why on its own.
            let _ = stdin.write_all(self.input.as_bytes());
        }
        Ok(running)
    }
}

/// A program at work.
pub(crate) struct Running {
    child: Child,
    program: String,
    said: Option<JoinHandle<String>>,
    complaint: Option<JoinHandle<String>>,
}

impl Running {
    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, PostgresError> {
        self.child.try_wait().map_err(PostgresError::io("wait for", &self.program))
    }

    pub(crate) fn interrupt(&self) {
        signal(&self.child, Signal::INT);
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, limit: &Limit) -> Result<ExitStatus, PostgresError> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            let cancelled = (limit.cancelled)();
            if cancelled || begun.elapsed() > limit.time {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let program = self.program.clone();
                return Err(match cancelled {
                    true => PostgresError::Cancelled,
                    false => PostgresError::Hangs { program, limit: limit.time },
                });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What it said on stdout and on stderr, once it has ended.
    pub(crate) fn words(&mut self) -> (String, String) {
        let join = |thread: Option<JoinHandle<String>>| {
            thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
        };
        (join(self.said.take()), join(self.complaint.take()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Reads to the end, and keeps the beginning.
fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let _ = (&mut pipe).take(KEPT).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// A failure, with the last lines of what was said.
pub(crate) fn failed(program: String, status: &ExitStatus, said: &str) -> PostgresError {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.len().saturating_sub(4);
    PostgresError::Failed { program, status: status.to_string(), message: lines[last..].join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Order {
        Order::new("/bin/sh".into()).arg("-c").arg(script)
    }

    #[test]
    fn what_is_said_is_heard_and_failure_told() {
        let limit = Limit::seconds(20);
        assert_eq!(sh("cat").input("hello".to_owned()).run(&limit).unwrap(), "hello");
        let error = sh("echo no room >&2; exit 3").run(&limit).unwrap_err().to_string();
        assert!(error.contains("sh failed") && error.contains("no room"), "{error}");
    }

    #[test]
    fn what_hangs_is_ended() {
        let limit = Limit { time: Duration::from_millis(50), ..Limit::seconds(0) };
        assert!(matches!(sh("sleep 60").run(&limit), Err(PostgresError::Hangs { .. })));
        let limit = Limit { cancelled: Arc::new(|| true), ..Limit::seconds(60) };
        assert!(matches!(sh("sleep 60").run(&limit), Err(PostgresError::Cancelled)));
    }
}
