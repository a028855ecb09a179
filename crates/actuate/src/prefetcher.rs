//! A thread that prefetches, so that the control loop does not wait.
//!
//! `readahead(2)` blocks while the device's queue is full, and while the file system reads the
//! metadata that maps the file to blocks.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use observe::OpenFile;
use units::Bytes;

use crate::{ActuateError, ActuateFailure, Actuator, Directory, OwnFiles};

/// The length of the queue. A new job replaces the oldest one when the queue is full, because the
/// reader has probably passed its ranges.
const MAX_QUEUED_JOBS: usize = 256;

/// Counters since the last report.
#[derive(Debug, Default)]
pub struct Prefetched {
    /// Bytes that the kernel was requested to read.
    pub asked: Bytes,
    /// Jobs that were dropped from the full queue because the device was too slow.
    pub dropped: u64,
    /// Open files that could not be prefetched.
    pub missed: Vec<(OpenFile, ActuateFailure)>,
    pub failed: Option<ActuateError>,
}

#[derive(Debug)]
enum PrefetchJob {
    /// Ranges of an open file, as offsets and lengths.
    Ranges(OpenFile, Vec<(Bytes, Bytes)>),
    /// Files of a directory, each by its inode, with the offset and the length of a range of it.
    Files(Arc<Directory>, Vec<(u64, (Bytes, Bytes))>),
}

impl PrefetchJob {
    fn file(self) -> OpenFile {
        match self {
            Self::Ranges(file, _) => file,
            Self::Files(directory, _) => directory.file().clone(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<PrefetchJob>,
    done: Prefetched,
    stopping: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

impl Shared {
    /// Ignores poisoning: no thread panics while it holds the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None` when the thread must stop.
    fn next_job(&self) -> Option<PrefetchJob> {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.stopping;
        let waited = self.wake.wait_while(self.lock(), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopping { None } else { state.jobs.pop_front() }
    }
}

#[derive(Debug)]
enum Worker {
    Any(Actuator),
    Own(OwnFiles),
}

impl Worker {
    fn execute(&self, job: &PrefetchJob) -> Result<Result<Bytes, ActuateFailure>, ActuateError> {
        match (self, job) {
            (Self::Any(actuator), PrefetchJob::Ranges(file, wanted)) => {
                actuator.prefetch_all(file, wanted)
            }
            (Self::Any(actuator), PrefetchJob::Files(directory, wanted)) => {
                Ok(actuator.prefetch_files(directory, wanted))
            }
            (Self::Own(files), PrefetchJob::Ranges(file, wanted)) => {
                Ok(files.prefetch(file, wanted))
            }
            (Self::Own(_), PrefetchJob::Files(..)) => Ok(Ok(Bytes::ZERO)),
        }
    }
}

/// Prefetches in a thread. Dropping it stops the thread after the current job.
#[derive(Debug)]
pub struct Prefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetcher {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(actuator: Actuator) -> io::Result<Self> {
        Self::spawn(Worker::Any(actuator))
    }

    /// Starts the thread for the open files of the user's own processes. This thread ignores jobs
    /// for files of directories.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn begin_own(files: OwnFiles) -> io::Result<Self> {
        Self::spawn(Worker::Own(files))
    }

    fn spawn(worker: Worker) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("prefetch".to_owned()).spawn(move || {
            while let Some(job) = own.next_job() {
                let result = worker.execute(&job);
                let mut state = own.lock();
                match result {
                    Ok(Ok(asked)) => state.done.asked += asked,
                    Ok(Err(missed)) => state.done.missed.push((job.file(), missed)),
                    Err(error) => state.done.failed = Some(error),
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Queues ranges of a file, as offsets and lengths.
    pub fn enqueue(&self, file: OpenFile, wanted: Vec<(Bytes, Bytes)>) {
        self.push(PrefetchJob::Ranges(file, wanted));
    }

    /// Queues files of a directory, each by its inode, with the offset and the length of a range.
    pub fn enqueue_files(&self, directory: Arc<Directory>, wanted: Vec<(u64, (Bytes, Bytes))>) {
        self.push(PrefetchJob::Files(directory, wanted));
    }

    fn push(&self, job: PrefetchJob) {
        let mut state = self.shared.lock();
        if state.jobs.len() >= MAX_QUEUED_JOBS {
            state.jobs.pop_front();
            state.done.dropped += 1;
        }
        state.jobs.push_back(job);
        self.shared.wake.notify_one();
    }

    /// Empties the queue.
    pub fn clear(&self) {
        self.shared.lock().jobs.clear();
    }

    /// Returns the counters since the last call and resets them.
    pub fn report(&self) -> Prefetched {
        std::mem::take(&mut self.shared.lock().done)
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread could not be handled here.
            let _ = thread.join();
        }
    }
}
