//! Readers: threads that perform accesses until the trial is over.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::realtime;
use sys::thread_usage::{ThreadCpu, thread_cpu, thread_read_bytes};
use units::{Bytes, Nanos};
use workload::{AccessClass, Accesses, Workload};

use crate::source::DataSource;
use crate::timeline::ReaderPace;
use crate::{
    BenchError, ClassSample, ColdProof, CpuTime, ReaderSample, Sample, Timeline, TrialOptions,
};

/// A longer pause is split into pieces of this length, so that readers notice the end of a trial.
const REST_PIECE: Nanos = Nanos::from_millis(20);

/// Buffers are page-aligned, as in optimised programs: the kernel copies faster.
const BUFFER_ALIGNMENT: usize = 4096;

/// The state that all readers of a trial share.
#[derive(Debug, Default)]
pub(crate) struct StartGate {
    over: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: usize,
    finished: usize,
    start: Option<Nanos>,
    end: Option<Nanos>,
    exhausted: bool,
}

impl StartGate {
    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic in another thread, the plain numbers are still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all readers are ready, then starts them together; returns the start time.
    pub(crate) fn start(&self, readers: usize) -> Nanos {
        let mut state = self.state();
        // A reader that finished before the start has panicked: do not wait for it.
        while state.ready < readers && state.finished == 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let now = realtime::now();
        state.start = Some(now);
        self.changed.notify_all();
        now
    }

    fn wait_for_start(&self) -> Nanos {
        let mut state = self.state();
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(start) = state.start {
                return start;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the trial at `now`, unless it is already over.
    pub(crate) fn end(&self, now: Nanos, exhausted: bool) {
        self.over.store(true, Ordering::Relaxed);
        let mut state = self.state();
        if state.end.is_none() {
            state.end = Some(now);
            state.exhausted = exhausted;
        }
        self.changed.notify_all();
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns when the trial ended and whether its data was exhausted; `None` while it runs.
    pub(crate) fn ending(&self) -> Option<(Nanos, bool)> {
        let state = self.state();
        state.end.map(|end| (end, state.exhausted))
    }

    /// Waits up to `limit` for a change; returns the number of finished readers.
    pub(crate) fn wait(&self, readers: usize, limit: Duration) -> usize {
        let state = self.state();
        if state.finished >= readers {
            return state.finished;
        }
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0.finished
    }

    fn finish(&self) {
        let mut state = self.state();
        state.finished += 1;
        self.changed.notify_all();
    }
}

/// Counts a reader as finished when dropped.
struct Finish<'a>(&'a StartGate);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

#[derive(Debug)]
pub(crate) struct TrialReader {
    pub(crate) sources: Vec<Arc<DataSource>>,
    /// The same files opened again for random reads, so that these do not affect the stream's open
    /// files; empty if not needed.
    pub(crate) random_sources: Vec<Arc<DataSource>>,
    pub(crate) accesses: Accesses,
    pub(crate) block: Bytes,
    /// Pause after each request, in wall time.
    pub(crate) think: Nanos,
    /// True if the times of requests count from the end of the previous request.
    pub(crate) has_think_times: bool,
    /// Factor by which the storage is slower than its model.
    pub(crate) dilation: f64,
    /// True if the trial is over when this reader has exhausted its data; false for a replay, whose
    /// processes start and exit.
    pub(crate) ends_all: bool,
    /// Time limit in wall time.
    pub(crate) duration: Nanos,
    pub(crate) course: Arc<StartGate>,
}

#[derive(Debug, Default)]
pub(crate) struct ReaderTally {
    pub(crate) sample: ReaderSample,
    pub(crate) stream: ClassSample,
    pub(crate) random: ClassSample,
    pub(crate) cpu: CpuTime,
    /// File index and end offset of the last request.
    pub(crate) reached: Option<(u32, Bytes)>,
    pub(crate) pace: ReaderPace,
    /// Data that devices read for the thread; `None` without the kernel's I/O accounting.
    pub(crate) device_bytes: Option<Bytes>,
}

impl TrialReader {
    /// Waits for the start and reads until the end. A failure ends the trial for all readers.
    pub(crate) fn run(self) -> Result<ReaderTally, BenchError> {
        let course = Arc::clone(&self.course);
        let _finish = Finish(&course);
        let result = self.work();
        if result.is_err() {
            course.end(realtime::now(), false);
        }
        result
    }

    fn work(mut self) -> Result<ReaderTally, BenchError> {
        let mut tally =
            ReaderTally { pace: ReaderPace::new(self.duration), ..ReaderTally::default() };
        let mut memory = vec![1; self.block.get() as usize + BUFFER_ALIGNMENT];
        let aligned = memory.as_ptr().align_offset(BUFFER_ALIGNMENT).min(BUFFER_ALIGNMENT);
        let buffer = &mut memory[aligned..];
        if self.think > Nanos::ZERO || !self.ends_all {
            // If exact timers are not permitted, each pause is up to 50 µs too long.
            let _ = realtime::exact_timers();
        }
        let (cpu, read) = (thread_cpu(), thread_read_bytes());
        let start = self.course.wait_for_start();
        self.read_until_over(start, buffer, &mut tally)?;
        let account = |cpu: io::Result<ThreadCpu>| {
            cpu.map_err(BenchError::io("read the account of", "/proc/thread-self"))
        };
        tally.cpu = cpu_between(account(cpu)?, account(thread_cpu())?);
        tally.device_bytes =
            read.zip(thread_read_bytes()).map(|(before, after)| after.saturating_sub(before));
        Ok(tally)
    }

    /// The hot loop: no allocation, and one clock read per request (two with pauses).
    fn read_until_over(
        &mut self,
        start: Nanos,
        buffer: &mut [u8],
        tally: &mut ReaderTally,
    ) -> Result<(), BenchError> {
        let deadline = Nanos::new(start.get().saturating_add(self.duration.get()));
        let mut before = start;
        while !self.course.is_over() {
            let Some(access) = self.accesses.next() else {
                if self.ends_all {
                    self.course.end(before, true);
                }
                break;
            };
            if access.not_before > Nanos::ZERO {
                let since = if self.has_think_times { before } else { start };
                before = self.wait_until(since + access.not_before.scaled(self.dilation), before);
                if self.course.is_over() {
                    break;
                }
            }
            let random = access.class == AccessClass::Random;
            let sources = if random && !self.random_sources.is_empty() {
                &self.random_sources
            } else {
                &self.sources
            };
            if let Some(advice) = access.advice {
                let source = &sources[access.file as usize];
                source.advise_range(advice, access.offset, access.length)?;
                before = realtime::now();
                continue;
            }
            let place = &mut buffer[..access.length.get() as usize];
            sources[access.file as usize].read(access.offset, place)?;
            let now = realtime::now();
            tally.pace.pass(now.saturating_sub(start), || done(&tally.stream, &tally.random));
            let class = if random { &mut tally.random } else { &mut tally.stream };
            class.latency.record(now.saturating_sub(before));
            class.useful += access.length;
            tally.sample.elapsed = now.saturating_sub(start);
            tally.reached = Some((access.file, access.offset + access.length));
            before = now;
            if now >= deadline {
                self.course.end(now, false);
                break;
            }
            if self.think > Nanos::ZERO {
                before = self.rest(now);
            }
        }
        (tally.sample.useful, tally.sample.requests) = done(&tally.stream, &tally.random);
        tally.pace.finish(tally.sample.useful, tally.sample.requests);
        Ok(())
    }

    /// Sleeps for the think time or until the trial is over; returns the wake-up time.
    fn rest(&self, from: Nanos) -> Nanos {
        self.wait_until(Nanos::new(from.get().saturating_add(self.think.get())), from)
    }

    /// Sleeps until this time or until the trial is over; returns the wake-up time.
    fn wait_until(&self, until: Nanos, from: Nanos) -> Nanos {
        let mut now = from;
        while now < until && !self.course.is_over() {
            realtime::sleep_until(until.min(now + REST_PIECE));
            now = realtime::now();
        }
        now
    }
}

fn done(stream: &ClassSample, random: &ClassSample) -> (Bytes, u64) {
    (stream.useful + random.useful, stream.latency.count() + random.latency.count())
}

pub(crate) fn cpu_between(before: ThreadCpu, after: ThreadCpu) -> CpuTime {
    CpuTime {
        user: after.user.saturating_sub(before.user),
        system: after.system.saturating_sub(before.system),
    }
}

/// Combines the readers' tallies into the sample of a trial.
pub(crate) fn collect(
    workload: &Workload,
    options: &TrialOptions,
    tallies: Vec<ReaderTally>,
    cold: ColdProof,
) -> Sample {
    let mut sample = Sample::new(&workload.name, options.seed, options.dilation, cold);
    sample.timeline = Timeline::over(options.duration.scaled(options.dilation));
    for tally in tallies {
        sample.timeline.add(&tally.pace);
        sample.readers.push(tally.sample);
        sample.stream.add(&tally.stream);
        sample.random.add(&tally.random);
        sample.cpu.user += tally.cpu.user;
        sample.cpu.system += tally.cpu.system;
    }
    sample
}
