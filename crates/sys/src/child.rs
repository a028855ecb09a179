//! Child processes that do not outlive their owner. Each has its own process group, which is killed
//! on drop. Threads read the output, so that a child never blocks on a full pipe.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

/// Time limit for reading the output of a process that has exited, and for its death on drop.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// A child process. Dropping it kills its process group unless its status was already collected.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    status: Option<ExitStatus>,
    stdout: Option<Capture>,
    stderr: Option<Capture>,
    max_output: usize,
}

/// The captured output of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl ChildProcess {
    /// Starts a command in its own process group, so that control-C at the terminal does not reach
    /// it. Captures the first `max_output` bytes of each piped output, and writes `input` to its
    /// standard input if that is piped.
    pub fn start(command: &mut Command, input: &str, max_output: usize) -> io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let stdout = child.stdout.take().map(|pipe| Capture::start(pipe, max_output));
        let stderr = child.stderr.take().map(|pipe| Capture::start(pipe, max_output));
        let stdin = child.stdin.take();
        let running = Self { child, status: None, stdout, stderr, max_output };
        if let Some(mut stdin) = stdin {
            // A process that does not read its input reports the reason itself.
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(running)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process has exited, without reaping it: /proc keeps its accounting.
    pub fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_some() {
            return Ok(true);
        }
        loop {
            match waitid(WaitId::Pid(Pid::from_child(&self.child)), options) {
                Err(rustix::io::Errno::INTR) => {}
                found => return Ok(found?.is_some()),
            }
        }
    }

    /// Returns the exit status; `None` while the process runs.
    pub fn try_status(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status)
    }

    /// Waits at most `timeout` for the exit status; `None` if the process still runs.
    pub fn wait_timeout(&mut self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            let status = self.try_status()?;
            if status.is_some() || start.elapsed() >= timeout {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends a signal to the process, but not to its own children.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Kills the process group, including background processes.
    pub fn kill_group(&self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Returns whether the process has printed more than `max_output` bytes.
    pub fn exceeds_output(&self) -> bool {
        let size = |capture: &Option<Capture>| capture.as_ref().map_or(0, Capture::size);
        size(&self.stdout).max(size(&self.stderr)) > self.max_output
    }

    /// Returns the output after exit; `None` if another process keeps a pipe open for 5 s.
    pub fn take_output(&mut self) -> Option<CapturedOutput> {
        let bytes = |capture: Option<Capture>| capture.map_or(Some(Vec::new()), Capture::bytes);
        let (stdout, stderr) = (bytes(self.stdout.take()), bytes(self.stderr.take()));
        Some(CapturedOutput { stdout: stdout?, stderr: stderr? })
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.kill_group();
            // Abandon a process that hangs in the kernel.
            let _ = self.wait_timeout(OUTPUT_TIMEOUT);
        }
    }
}

/// A thread that captures the bytes of a pipe.
#[derive(Debug)]
struct Capture {
    bytes: Receiver<Vec<u8>>,
    size: Arc<AtomicUsize>,
}

impl Capture {
    fn start(mut pipe: impl Read + Send + 'static, max: usize) -> Self {
        let (send, bytes) = channel();
        let size = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&size);
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(length) => {
                        count.fetch_add(length, Ordering::Relaxed);
                        let room = max.saturating_sub(kept.len());
                        kept.extend_from_slice(&buffer[..length.min(room)]);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            // The receiver may have timed out.
            let _ = send.send(kept);
        });
        Self { bytes, size }
    }

    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    fn bytes(self) -> Option<Vec<u8>> {
        match self.bytes.recv_timeout(OUTPUT_TIMEOUT) {
            Ok(bytes) => Some(bytes),
            Err(RecvTimeoutError::Disconnected) => Some(Vec::new()),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str, input: &str) -> ChildProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        ChildProcess::start(&mut command, input, 5).expect("a shell")
    }

    #[test]
    fn input_output_and_status_are_passed_on() {
        let mut child = shell("cat; echo failed >&2; exit 3", "hi\n");
        let status = child.wait_timeout(Duration::from_secs(30)).expect("a status");
        assert_eq!(status.and_then(|status| status.code()), Some(3));
        let start = Instant::now();
        while !child.exceeds_output() {
            assert!(start.elapsed() < Duration::from_secs(30), "seven bytes are more than five");
        }
        let output = child.take_output().expect("its output");
        assert_eq!(
            (output.stdout.as_slice(), output.stderr.as_slice()),
            (&b"hi\n"[..], &b"faile"[..])
        );
    }

    #[test]
    fn a_dropped_process_is_killed_with_its_children() {
        let mut child = shell("sleep 1000 & echo $!; sleep 1000", "");
        assert_eq!(child.wait_timeout(Duration::from_millis(50)).expect("a status"), None);
        assert!(!child.has_exited().expect("known"));
        let own = child.id();
        drop(child);
        assert_eq!(crate::process::start_time(own).expect("proc"), None);
    }
}
