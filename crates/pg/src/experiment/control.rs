//! Runs `foreread auto` on the server's storage as another process during a trial.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sys::child::ChildProcess;

use crate::error::PgError;

/// Time limit for `foreread auto` to start or to exit.
const AUTO_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of its messages that is kept.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// A running `foreread auto`. Dropping this stops it; if this process dies first, it exits after
/// its `--duration`.
pub(super) struct AutoProcess(ChildProcess);

impl AutoProcess {
    /// Starts `program auto` on a storage, for at most `seconds`, and waits until it is ready.
    pub(super) fn start(program: &Path, storage: &Path, seconds: u64) -> Result<Self, PgError> {
        let fail = |what: &'static str| {
            move |error: std::io::Error| {
                PgError::NotPossible(format!("cannot {what} foreread auto: {error}"))
            }
        };
        // foreread auto reports READY=1 here, as to a service manager (sd_notify(3)).
        let name = format!("foreread-pg-{}", std::process::id());
        let notifications = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixDatagram::bind_addr(&address))
            .map_err(fail("listen to"))?;
        notifications.set_nonblocking(true).map_err(fail("listen to"))?;
        let mut command = Command::new(program);
        command.args(["auto", "-q", "--duration", &format!("{seconds}s")]).arg(storage);
        command.env("NOTIFY_SOCKET", format!("@{name}")).env_remove("WATCHDOG_USEC");
        // With a requested log, messages appear immediately.
        let logs = std::env::var_os("FOREREAD_LOG").is_some();
        command.stderr(if logs { Stdio::inherit() } else { Stdio::piped() });
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = ChildProcess::start(&mut command, "", MAX_MESSAGE_BYTES);
        let mut auto = Self(child.map_err(fail("start"))?);
        auto.wait_until_ready(&notifications)?;
        Ok(auto)
    }

    fn wait_until_ready(&mut self, notifications: &UnixDatagram) -> Result<(), PgError> {
        let start = Instant::now();
        let mut message = [0; 256];
        loop {
            match notifications.recv(&mut message) {
                Ok(length) if message[..length].starts_with(b"READY=1") => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(PgError::NotPossible(error.to_string())),
            }
            let has_exited = self.0.has_exited().unwrap_or(true);
            if has_exited || start.elapsed() > AUTO_TIMEOUT {
                self.0.kill_group();
                let output = self.0.take_output().unwrap_or_default();
                let message = String::from_utf8_lossy(&output.stderr);
                let lines: Vec<&str> = message.lines().collect();
                let problem = format!("foreread auto did not start: {}", lines.join("; "));
                return Err(PgError::NotPossible(problem));
            }
        }
    }
}

impl Drop for AutoProcess {
    fn drop(&mut self) {
        self.0.signal(Signal::TERM);
        let _ = self.0.wait_timeout(AUTO_TIMEOUT);
    }
}
