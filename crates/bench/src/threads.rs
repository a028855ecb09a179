//! Starts the readers' threads, waits for the end of the trial, and joins the threads.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use sys::realtime;
use units::Nanos;

use crate::reader::{ReaderTally, StartGate, TrialReader};
use crate::timeline::slot_of;
use crate::{BenchError, TrialOptions};

const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Time that readers may take to react to an interruption before they are abandoned.
const INTERRUPT_PATIENCE: Nanos = Nanos::from_millis(60);

pub(crate) type ReaderThread = JoinHandle<Result<ReaderTally, BenchError>>;

/// Starts a thread for each reader. A thread owns all data that it uses, so that it can be
/// abandoned if it hangs in the kernel.
pub(crate) fn spawn(readers: Vec<TrialReader>) -> Result<Vec<ReaderThread>, BenchError> {
    let course = readers.first().map(|reader| Arc::clone(&reader.course));
    let mut threads = Vec::with_capacity(readers.len());
    for (index, reader) in readers.into_iter().enumerate() {
        let builder = Builder::new().name(format!("reader-{index}"));
        match builder.spawn(move || reader.run()) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                // Otherwise the readers that are waiting for the start would wait forever.
                if let Some(course) = &course {
                    course.end(Nanos::ZERO, false);
                    course.start(threads.len());
                }
                return Err(BenchError::io("start a reader for", "the trial")(error));
            }
        }
    }
    Ok(threads)
}

/// Waits until the trial is over and all readers have finished; calls `look` once per slot.
pub(crate) fn wait_for_readers(
    threads: Vec<ReaderThread>,
    course: &StartGate,
    start: Nanos,
    options: &TrialOptions,
    look: &mut dyn FnMut(),
) -> Result<Vec<ReaderTally>, BenchError> {
    let readers = threads.len();
    let deadline = start.get().saturating_add(options.duration.scaled(options.dilation).get());
    let patience = options.drain_limit.scaled(options.dilation);
    let mut interrupted = None;
    let slot = slot_of(options.duration.scaled(options.dilation));
    let mut next = start + slot;
    loop {
        let finished = course.wait(readers, POLL_INTERVAL);
        if finished >= readers {
            break;
        }
        let now = realtime::now();
        if now >= next && course.ending().is_none() {
            look();
            next = now + slot;
        }
        if now.get() >= deadline {
            course.end(now, false);
        }
        if options.cancel.is_cancelled() {
            course.end(now, false);
            let since = *interrupted.get_or_insert(now);
            if now.saturating_sub(since) >= INTERRUPT_PATIENCE {
                return Err(BenchError::Cancelled);
            }
        } else if let Some((end, _)) = course.ending() {
            let waited = now.saturating_sub(end);
            if waited >= patience {
                return Err(BenchError::Stuck { readers: readers - finished, waited });
            }
        }
    }
    let results: Vec<_> = threads.into_iter().map(join).collect();
    // The first reader that failed stopped the others, which return no error.
    let tallies = results.into_iter().collect::<Result<Vec<ReaderTally>, BenchError>>()?;
    if options.cancel.is_cancelled() { Err(BenchError::Cancelled) } else { Ok(tallies) }
}

fn join(thread: ReaderThread) -> Result<ReaderTally, BenchError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
