//! `foreread auto` on the storage of the server, as another process, while a trial runs.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::ExperimentError;

/// How long it may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is kept of what it says.
const LINES: usize = 100;

/// `foreread auto` at work. It ends when this is dropped, and of itself after a while if nobody is
/// left to do that.
pub(super) struct Control {
    child: Child,
    /// What it says.
    said: Receiver<String>,
}

impl Control {
    /// Starts `program auto` on a storage, for `seconds` at most, and waits until it is at work.
    pub(super) fn begin(
        program: &Path,
        storage: &Path,
        seconds: u64,
    ) -> Result<Self, ExperimentError> {
        let fail = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| {
                ExperimentError::NotPossible(format!("cannot {what} foreread auto: {error}"))
            }
        };
        // As a service manager does, it is told when it is ready.
        let name = format!("foreread-pg-{}", std::process::id());
        let heard = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixDatagram::bind_addr(&address))
            .map_err(fail("listen to"))?;
        heard.set_nonblocking(true).map_err(fail("listen to"))?;
        let mut command = Command::new(program);
        command.args(["auto", "-q", "--for", &format!("{seconds}s")]).arg(storage);
        command.env("NOTIFY_SOCKET", format!("@{name}")).env_remove("WATCHDOG_USEC");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail("start"))?;
        let said = hear(child.stderr.take());
        let mut control = Self { child, said };
        control.wait_until_ready(&heard)?;
        Ok(control)
    }

    fn wait_until_ready(&mut self, heard: &UnixDatagram) -> Result<(), ExperimentError> {
        let begun = Instant::now();
        let mut word = [0; 256];
        loop {
            match heard.recv(&mut word) {
                Ok(length) if word[..length].starts_with(b"READY=1") => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(ExperimentError::NotPossible(error.to_string())),
            }
            let ended = self.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || begun.elapsed() > PATIENCE {
                // If it has ended, all of it comes; what it said is a help, and no more.
                let wait = if ended { PATIENCE } else { Duration::ZERO };
                let lines = std::iter::from_fn(|| self.said.recv_timeout(wait).ok());
                let said = lines.collect::<Vec<_>>().join("; ");
                let problem = format!("foreread auto did not begin: {said}");
                return Err(ExperimentError::NotPossible(problem));
            }
        }
    }
}

/// Takes in what it says, line by line, so that it never has to wait to say it. Who wants a log has
/// its lines, too.
fn hear(stderr: Option<ChildStderr>) -> Receiver<String> {
    let logs = std::env::var_os("FOREREAD_LOG").is_some();
    let (say, said) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        for line in stderr.into_iter().flat_map(|it| BufReader::new(it).lines()) {
            let Ok(line) = line else { return };
            if logs {
                // Where standard error has gone, nobody reads on.
                let _ = writeln!(std::io::stderr(), "auto: {line}");
            }
            // What comes after so many lines does not say why it did not begin.
            let _ = say.try_send(line);
        }
    });
    said
}

impl Drop for Control {
    fn drop(&mut self) {
        // One that has ended already needs no signal.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let begun = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if begun.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
