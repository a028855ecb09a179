//! SIGINT, SIGTERM, SIGHUP and the loss of the terminal ask a verb to stop; it restores everything,
//! and then the program exits with the code of the signal.

use std::fs;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How long a computation may go on after a signal, to end in its own way.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Which signal has come, if any.
#[derive(Clone, Debug)]
pub struct Signals {
    cancelled: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to listen. The first signal sets the flag; a second SIGINT or SIGTERM ends the
    /// program at once, and then it is the guard process that puts everything back. A second SIGHUP
    /// does not: a terminal that is closed sends one, and the shell in it another.
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

    /// The same for a verb that draws on the terminal: when that has gone, it is as if SIGHUP had
    /// come, also where that is ignored or goes to another process, as in another session.
    pub fn listen_on_terminal() -> io::Result<Self> {
        let signals = Self::listen()?;
        let watcher = signals.clone();
        std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || watcher.watch_terminal())?;
        Ok(signals)
    }

    /// Waits, at no cost, until a terminal that is written to has gone.
    fn watch_terminal(&self) {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let mut terminals: Vec<PollFd<'_>> = Vec::new();
        // No flag is asked for: a hang-up is reported all the same.
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

    /// For a verb that only computes: when a signal has come and the computation goes on, which may
    /// take hours, the program ends all the same. There is nothing to restore, and the record of
    /// the run is whole at any moment.
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

    /// What SIGHUP does.
    fn hang_up(&self) {
        let hangup = SIGHUP.cast_unsigned() as usize;
        let _ = self.which.compare_exchange(0, hangup, Ordering::SeqCst, Ordering::SeqCst);
        self.cancelled.store(true, Ordering::SeqCst);
    }

    /// The flag that a signal sets.
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

    /// Whether the terminal has gone, or its session.
    pub fn hung_up(&self) -> bool {
        self.which() == Some(SIGHUP)
    }
}

/// Whether this process was started to outlive its terminal, as nohup(1) does.
fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
