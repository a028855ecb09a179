//! Runs trials with external programs: fio, bonnie++, any command. The cache is cold at the start,
//! the device's I/O is counted during the run, and no process or file remains.

mod bonnie;
mod cgroup;
mod command;
mod eviction;
mod fio;
mod metric;
mod process;
mod tool;

use std::process::Command;

use sys::realtime;
use units::{Bytes, Nanos};
use workload::Outside;

use crate::input::TrialInput;
use crate::memory::MemoryLimit;
use crate::watch::DeviceWatch;
use crate::{BenchError, ColdProof, CpuTime, Disturbance, ReaderSample, Sample, TrialOptions};
use process::{Ended, ProcessUsage, RunOptions};

/// A program is active once it has read more than this: opening files reads some metadata blocks.
const MIN_ACTIVE_READ: Bytes = Bytes::from_kib(256);

/// The result of a program, and the sample with the machine's counters.
struct Outcome {
    ended: Ended,
    /// Time from the first device read of the program until no request was in flight.
    busy: Nanos,
    sample: Sample,
}

/// Finds the program of a workload, so that a missing one is reported before files are created.
/// Returns its version; `None` for a command.
pub fn find_program(outside: &Outside) -> Result<Option<String>, BenchError> {
    match outside {
        Outside::Fio { .. } => fio::find().map(|found| Some(found.version)),
        Outside::Bonnie { .. } => bonnie::find().map(|found| Some(found.version)),
        Outside::Command { metric, .. } => metric::check(metric).map(|()| None),
    }
}

pub(crate) fn run(input: &TrialInput<'_>, outside: &Outside) -> Result<Sample, BenchError> {
    match outside {
        Outside::Fio { .. } => fio::trial(input, outside),
        Outside::Command { command, prepare, metric, limit_seconds } => {
            let limit = Nanos::from_secs(*limit_seconds);
            command::trial(input, command, prepare.as_deref(), metric, limit)
        }
        Outside::Bonnie { size, chunk, files, limit_seconds } => {
            let limit = Nanos::from_secs(*limit_seconds);
            bonnie::trial(
                input,
                &bonnie::Sizes { size: *size, chunk: *chunk, files: *files },
                limit,
            )
        }
    }
}

impl TrialInput<'_> {
    /// Runs the program and waits until the devices are idle. The sample contains the machine's
    /// counters, but no figures from the program's output.
    fn run_program(
        &self,
        command: Command,
        terms: &RunOptions<'_>,
        cold: ColdProof,
        data: Bytes,
    ) -> Result<Outcome, BenchError> {
        let watch = DeviceWatch::start(self.root, self.storage)?;
        let start = realtime::now();
        let mut span: Option<(Nanos, Nanos)> = None;
        let mut look = || {
            let now = realtime::now();
            let Some(moment) = watch.moment(self.root, self.storage) else { return };
            if moment.bytes >= MIN_ACTIVE_READ {
                let (first, last) = span.get_or_insert((now, now));
                let _ = first;
                if moment.in_flight > 0 {
                    *last = now;
                }
            }
        };
        // The program starts in the control group of this process.
        let limited = self.options.memory_limit.map(MemoryLimit::enter).transpose()?;
        let ended = process::run(command, terms, &mut look)?;
        let memory = limited.map(MemoryLimit::leave);
        let exit = realtime::now();
        let undrained = self.drain()?;
        let drained = realtime::now();
        // The program caused read-ahead that was still in flight when it exited.
        let late = drained.saturating_sub(exit) > Nanos::from_millis(5);
        let busy = span.map(|(first, last)| {
            (if late { drained } else { last.max(first) }).saturating_sub(first)
        });
        let account = ended.account;
        let observed = watch.finish(self.root, self.storage, account.map(|it| it.read))?;
        let mut sample = self.sample(cold, account);
        sample.elapsed = ended.elapsed;
        sample.settled = drained.saturating_sub(start);
        sample.device = observed.device;
        sample.memory = memory;
        let found = self.disturbances(cold, data, &observed, Bytes::ZERO, false);
        sample.disturbances.extend(found.into_iter().filter(|found| !self.is_own_writing(found)));
        sample.disturbances.extend(undrained);
        Ok(Outcome { ended, busy: busy.unwrap_or_default(), sample })
    }

    /// Returns whether a disturbance is only the program's own writing.
    fn is_own_writing(&self, disturbance: &Disturbance) -> bool {
        let writes = self.workload.outside.as_ref().is_some_and(Outside::writes);
        matches!(disturbance, Disturbance::ForeignTraffic { .. }) && writes
    }

    fn sample(&self, cold: ColdProof, account: Option<ProcessUsage>) -> Sample {
        let TrialOptions { seed, dilation, .. } = *self.options;
        Sample {
            cpu: account.map_or(CpuTime::default(), |account| account.cpu),
            ..Sample::new(&self.workload.name, seed, dilation, cold)
        }
    }
}

/// Returns one reader that represents all reads of a program.
fn as_reader(useful: Bytes, elapsed: Nanos) -> ReaderSample {
    ReaderSample { requests: 0, useful, elapsed }
}

fn problem(program: &str, problem: impl Into<String>) -> BenchError {
    BenchError::Tool { program: program.to_owned(), problem: problem.into() }
}
