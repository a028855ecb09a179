//! SIGINT and SIGTERM ask a study to stop; it puts everything back, and then the program ends with
//! the code of the signal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Which signal has come, if any.
#[derive(Clone, Debug)]
pub struct Signals {
    cancelled: Arc<AtomicBool>,
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to listen. The first signal sets the flag; a second one ends the program at once,
    /// and then it is the guard process that puts everything back.
    pub fn listen() -> io::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&cancelled),
            )?;
            signal_hook::flag::register_usize(signal, Arc::clone(&which), signal as usize)?;
            signal_hook::flag::register(signal, Arc::clone(&cancelled))?;
        }
        Ok(Self { cancelled, which })
    }

    /// The flag that a signal sets.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancelled)
    }

    /// Whether one has come.
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Which one came.
    pub fn which(&self) -> Option<i32> {
        match self.which.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}
