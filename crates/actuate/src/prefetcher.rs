//! Reading ahead on a thread of its own.
//!
//! `readahead(2)` waits where the device's queue is full, and while the file system looks up where
//! a file lies. Whoever decides must not wait with it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use observe::OpenFile;
use units::Bytes;

use crate::{ActuateError, ActuateFailure, Actuator, Directory, OwnFiles};

/// Orders that wait at most. What comes on top pushes out the oldest: its reader has been there.
const MAX_QUEUED_JOBS: usize = 256;

/// What came of orders since the last time.
#[derive(Debug, Default)]
pub struct Prefetched {
    /// What the kernel was asked to read.
    pub asked: Bytes,
    /// Orders that were pushed out, as the device did not keep up.
    pub dropped: u64,
    /// Open files that could not be reached, and why.
    pub missed: Vec<(OpenFile, ActuateFailure)>,
    pub failed: Option<ActuateError>,
}

#[derive(Debug)]
enum PrefetchJob {
    /// Places and lengths of an open file.
    Places(OpenFile, Vec<(Bytes, Bytes)>),
    /// Files of a directory, by inode, from an offset on.
    Files(Arc<Directory>, Vec<(u64, Bytes)>),
}

impl PrefetchJob {
    fn file(self) -> OpenFile {
        match self {
            Self::Places(file, _) => file,
            Self::Files(directory, _) => directory.file().clone(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    orders: VecDeque<PrefetchJob>,
    done: Prefetched,
    ends: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

impl Shared {
    /// No thread panics while it holds the lock, so what it guards is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next order; `None` at the end.
    fn next(&self) -> Option<PrefetchJob> {
        let idle = |state: &mut State| state.orders.is_empty() && !state.ends;
        let waited = self.wake.wait_while(self.lock(), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ends { None } else { state.orders.pop_front() }
    }
}

#[derive(Debug)]
enum Worker {
    Any(Actuator),
    Own(OwnFiles),
}

impl Worker {
    fn follow(&self, order: &PrefetchJob) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        match (self, order) {
            (Self::Any(actuator), PrefetchJob::Places(file, wanted)) => {
                actuator.prefetch_all(file, wanted)
            }
            (Self::Any(actuator), PrefetchJob::Files(directory, wanted)) => {
                actuator.prefetch_files(directory, wanted)
            }
            (Self::Own(files), PrefetchJob::Places(file, wanted)) => {
                Ok(files.prefetch(file, wanted))
            }
            (Self::Own(_), PrefetchJob::Files(..)) => Ok(Ok(Bytes::ZERO)),
        }
    }
}

/// Has open files read ahead, and does not let its owner wait. Dropped, it ends with the order that
/// it is at.
#[derive(Debug)]
pub struct Prefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetcher {
    /// Starts the thread, which acts by `actuator`.
    pub fn begin(actuator: Actuator) -> io::Result<Self> {
        Self::begin_with(Worker::Any(actuator))
    }

    /// The same on open files of one's own processes. Files of a directory it leaves alone.
    pub fn begin_own(files: OwnFiles) -> io::Result<Self> {
        Self::begin_with(Worker::Own(files))
    }

    fn begin_with(hand: Worker) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("prefetch".to_owned()).spawn(move || {
            while let Some(order) = own.next() {
                let result = hand.follow(&order);
                let mut state = own.lock();
                match result {
                    Ok(Ok(asked)) => state.done.asked += asked,
                    Ok(Err(missed)) => state.done.missed.push((order.file(), missed)),
                    Err(error) => state.done.failed = Some(error),
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has these places and lengths of a file read, after what was ordered before.
    pub fn order(&self, file: OpenFile, wanted: Vec<(Bytes, Bytes)>) {
        self.push(PrefetchJob::Places(file, wanted));
    }

    /// Has files of a directory read, by inode and from an offset on, after what was ordered
    /// before.
    pub fn order_files(&self, directory: Arc<Directory>, wanted: Vec<(u64, Bytes)>) {
        self.push(PrefetchJob::Files(directory, wanted));
    }

    fn push(&self, order: PrefetchJob) {
        let mut state = self.shared.lock();
        if state.orders.len() >= MAX_QUEUED_JOBS {
            state.orders.pop_front();
            state.done.dropped += 1;
        }
        state.orders.push_back(order);
        self.shared.wake.notify_one();
    }

    /// Forgets what was ordered and is not begun.
    pub fn clear(&self) {
        self.shared.lock().orders.clear();
    }

    /// What came of orders since the last time.
    pub fn report(&self) -> Prefetched {
        std::mem::take(&mut self.shared.lock().done)
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing to be done about it here.
            let _ = thread.join();
        }
    }
}
