//! SIGINT, SIGTERM, SIGHUP and the loss of the terminal ask a verb to stop. The verb restores all
//! settings, then the program exits with the code of the signal.

use std::fs;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How long a computation may take to stop normally after a signal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Reports which signal has arrived.
#[derive(Clone, Debug)]
pub struct Signals {
    cancelled: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Starts listening. The first signal sets the flag. A second SIGINT or SIGTERM terminates the
    /// program at once, and the guard process restores the settings. A second SIGHUP does not:
    /// closing a terminal sends one, and the shell in it another.
    pub fn listen() -> io::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_hangup_ignored() {
                continue;
            }
            if signal != SIGHUP {
                signal_hook::flag::register_conditional_shutdown(
                    signal,
                    128 + signal,
                    Arc::clone(&cancelled),
                )?;
            }
            signal_hook::flag::register_usize(signal, Arc::clone(&which), signal as usize)?;
            signal_hook::flag::register(signal, Arc::clone(&cancelled))?;
        }
        Ok(Self { cancelled, which })
    }

    /// Like [`Self::listen`], for a verb that uses the terminal. Loss of the terminal counts as
    /// SIGHUP, even if SIGHUP is ignored or goes to another process, as in another session.
    pub fn listen_on_terminal() -> io::Result<Self> {
        let signals = Self::listen()?;
        let watcher = signals.clone();
        std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || watcher.watch_terminal())?;
        Ok(signals)
    }

    /// Waits, without busy polling, until the terminal hangs up.
    fn watch_terminal(&self) {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let mut terminals: Vec<PollFd<'_>> = Vec::new();
        // A hang-up is always reported, so no event is requested.
        if stdout.is_terminal() {
            terminals.push(PollFd::new(&stdout, PollFlags::empty()));
        }
        if stderr.is_terminal() {
            terminals.push(PollFd::new(&stderr, PollFlags::empty()));
        }
        if terminals.is_empty() {
            return;
        }
        loop {
            match poll(&mut terminals, None) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.hang_up(),
                Err(_) => return,
            }
        }
    }

    /// Terminates the program if a computation, which may take hours, continues after a signal. For
    /// verbs that only compute: no setting must be restored, and the record is always consistent.
    pub fn end_computing(&self) -> io::Result<()> {
        let watched = self.clone();
        let watcher = move || {
            while !watched.cancelled() {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(SHUTDOWN_TIMEOUT);
            std::process::exit(128 + watched.which().unwrap_or(SIGTERM));
        };
        std::thread::Builder::new().name("computing".to_owned()).spawn(watcher).map(drop)
    }

    /// Reacts to SIGHUP.
    fn hang_up(&self) {
        let hangup = SIGHUP.cast_unsigned() as usize;
        let _ = self.which.compare_exchange(0, hangup, Ordering::SeqCst, Ordering::SeqCst);
        self.cancelled.store(true, Ordering::SeqCst);
    }

    /// Returns the flag that a signal sets.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    pub fn which(&self) -> Option<i32> {
        match self.which.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }

    /// Returns a pending signal, to pass it on to a command.
    pub fn pending(&self) -> Option<Signal> {
        self.cancelled().then(|| match self.which() {
            Some(SIGHUP) => Signal::HUP,
            Some(SIGINT) => Signal::INT,
            _ => Signal::TERM,
        })
    }

    /// Returns whether the terminal or its session is gone.
    pub fn hung_up(&self) -> bool {
        self.which() == Some(SIGHUP)
    }
}

/// Returns whether this process was started to survive its terminal, as by nohup(1).
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
