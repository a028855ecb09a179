//! A trace that is opened once for all of its simulations.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use policy::cache::PAGE;
use sim::oracle::{OracleWork, clairvoyant, lower_bound};
use sim::{AccessSteps, Scenario, SimError, SimMachine, SimOutcome, lay_out};
use trace::{
    RECORDS_MAX, ReadOptions, Trace, TraceError, TraceFileError, TraceLocation, open_long,
};
use units::{Bytes, Nanos, Pages};
use workload::{ReplayPace, TraceReplay, Workload};

use crate::cell::SimCell;
use crate::content::{TraceContent, TraceFacts};
use crate::error::BatchError;

/// Limits on the speed of a trace's reads on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimLimits {
    /// Time that no schedule can improve on.
    pub lower_bound: Nanos,
    /// Time that the device needs to deliver every page once.
    pub device: Nanos,
    /// Time that the busiest reader needs if it never waits.
    pub processor: Nanos,
    /// Minimum number of pages to read from the device.
    pub fetches: Pages,
    /// Time with a read-ahead algorithm that knows all future reads; `None` if not requested.
    pub clairvoyant: Option<Nanos>,
}

/// A trace with the workloads made from it. A long trace in foreread's own format stays in its
/// file; each simulation reads it block by block.
#[derive(Debug)]
pub struct LoadedTrace {
    /// Path or name of the trace.
    pub source: String,
    content: TraceContent,
    facts: Mutex<Option<TraceFacts>>,
    workloads: Mutex<Vec<((ReplayPace, bool), Workload)>>,
}

impl LoadedTrace {
    /// Reads a trace in any format that `foreread trace` reads.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a trace.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, BatchError> {
        let source = path.display().to_string();
        let may_stream = options.format.as_deref().is_none_or(|name| name == "foreread");
        match if may_stream { open_long(path)? } else { None } {
            Some(stream) => Ok(Self::from_content(source, stream.into())),
            None => Ok(Self::new(source, trace::read(path, options)?.0)),
        }
    }

    pub fn new(source: String, trace: Trace) -> Self {
        Self::from_content(source, trace.into())
    }

    pub(crate) fn from_content(source: String, content: TraceContent) -> Self {
        Self { source, content, facts: Mutex::default(), workloads: Mutex::default() }
    }

    /// Returns the records and files of the trace.
    pub fn content(&self) -> &TraceContent {
        &self.content
    }

    /// Returns the facts of the trace. The first call computes them in a pass over all records.
    ///
    /// # Errors
    ///
    /// If the trace is damaged.
    pub fn facts(&self) -> Result<TraceFacts, BatchError> {
        let mut known = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = &*known {
            return Ok(facts.clone());
        }
        let facts = self.content.facts().map_err(|problem| self.broken(problem))?;
        Ok(known.insert(facts).clone())
    }

    fn broken(&self, problem: String) -> TraceFileError {
        let error = TraceError { place: TraceLocation::Whole, problem };
        TraceFileError::Broken { path: PathBuf::from(&self.source), error }
    }

    /// Returns the reads of the trace, made once for each pace and form.
    fn workload(&self, cell: &SimCell) -> Result<Workload, BatchError> {
        let key = (cell.replay_pace()?, cell.compact);
        if key.0 != ReplayPace::Asap && !self.content.is_timed() {
            let problem = "the trace has no times: give pace=asap";
            return Err(units::text::SettingError::invalid("pace", &cell.pace, problem).into());
        }
        let mut made = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, workload)) = made.iter().find(|(made, _)| *made == key) {
            return Ok(workload.clone());
        }
        let workload = match &self.content {
            TraceContent::Memory(trace) => {
                trace.to_workload("trace", &self.source, key.0, key.1).map_err(SimError::from)?
            }
            // Compact and think need the records before and after each block.
            TraceContent::Stream(stream) if cell.compact || key.0 == ReplayPace::Think => {
                if stream.len() > RECORDS_MAX as u64 {
                    let (key, value) = match cell.compact {
                        true => ("compact", "true"),
                        false => ("pace", cell.pace.as_str()),
                    };
                    let problem =
                        format!("it needs all requests in memory: more than {RECORDS_MAX}");
                    return Err(units::text::SettingError::invalid(key, value, problem).into());
                }
                let read = Trace::from_stream(stream);
                let (trace, damage) = read.map_err(|error| self.broken(error.problem))?;
                if let Some(damage) = damage {
                    return Err(damage.in_file(&self.source).into());
                }
                trace.to_workload("trace", &self.source, key.0, key.1).map_err(SimError::from)?
            }
            TraceContent::Stream(stream) => {
                stream.to_workload("trace", &self.source, key.0).map_err(SimError::from)?
            }
        };
        made.push((key, workload.clone()));
        Ok(workload)
    }

    fn scenario(
        &self,
        cell: &SimCell,
        machine: &SimMachine,
    ) -> Result<Scenario<AccessSteps>, BatchError> {
        let workload = self.workload(cell)?;
        let sizes = workload.data_files(Bytes::ZERO);
        let layout = machine.filesystem.layout;
        let footprint = sizes.iter().map(|size| layout.footprint(*size)).sum::<Bytes>();
        let (needed, capacity) = (machine.files_at + footprint, machine.model.capacity());
        if needed > capacity {
            return Err(SimError::DeviceTooSmall { needed, capacity }.into());
        }
        let files = lay_out(&sizes, workload.layout, layout, machine.files_at);
        let scenario = Scenario::of_workload(&workload, files, cell.seed);
        Ok(scenario.map_err(SimError::from)?)
    }

    /// Simulates the trace to its end.
    ///
    /// # Errors
    ///
    /// If the cell is invalid, the trace does not fit on its device, or cannot be read to its end.
    pub fn simulate(&self, cell: &SimCell) -> Result<SimOutcome, BatchError> {
        let machine = cell.machine()?;
        let scenario = self.scenario(cell, &machine)?;
        let outcome = sim::run_workload(&machine, scenario)?;
        self.check_all_read(cell)?;
        Ok(outcome)
    }

    /// Fails if the file of a stream was damaged or unreadable during the simulation.
    fn check_all_read(&self, cell: &SimCell) -> Result<(), BatchError> {
        let failure = self.workload(cell)?.replay.as_ref().and_then(TraceReplay::failure);
        failure.map_or(Ok(()), |problem| Err(self.broken(problem).into()))
    }

    /// Computes the limits that no policy can exceed. `with_clairvoyant` takes several simulations.
    /// All reads are in memory during the computation.
    ///
    /// # Errors
    ///
    /// As [`LoadedTrace::simulate`], or if the trace has too many records.
    pub fn limits(&self, cell: &SimCell, with_clairvoyant: bool) -> Result<SimLimits, BatchError> {
        let count = self.content.records();
        if count > RECORDS_MAX as u64 {
            let problem = format!(
                "limits keep all requests in memory: it has {count}, and {RECORDS_MAX} are the most"
            );
            return Err(self.broken(problem).into());
        }
        let machine = cell.machine()?;
        let Scenario { files, opens, readers, .. } = self.scenario(cell, &machine)?;
        let readers = readers.into_iter().map(|reader| reader.steps.into_iter().collect());
        let work = OracleWork { files, opens, readers: readers.collect() };
        self.check_all_read(cell)?;
        let bound = lower_bound(&machine, &work);
        let seen = with_clairvoyant.then(|| clairvoyant(&machine, &work)).transpose()?;
        Ok(SimLimits {
            lower_bound: bound.time(),
            device: bound.device,
            processor: bound.processor,
            fetches: bound.fetches,
            clairvoyant: seen.map(|seen| seen.time),
        })
    }
}

impl TraceFacts {
    /// Returns the number of pages that the reads request.
    pub fn pages(&self) -> Pages {
        self.requested.to_pages_ceil(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;

    use trace::{TraceBuilder, TraceRecord, TraceRecordKind, TraceStream};
    use units::Bytes;
    use workload::AccessMethod;

    use super::*;
    use crate::row::CellFigures;

    /// Returns a trace of more than two blocks: two threads with streams and random reads, and a
    /// third file that is opened first and read last.
    fn trace() -> Trace {
        let mut builder = TraceBuilder::new(true);
        let opens: Vec<u32> = ["late", "stream", "random"]
            .iter()
            .map(|name| {
                let file = builder.file(name);
                builder.open(file, AccessMethod::Read)
            })
            .collect();
        let threads = [7, 8].map(|number| builder.process(number));
        for at in 0..40_000u64 {
            let is_random = at % 3 == 0;
            let offset = if is_random { at.wrapping_mul(2_654_435_761) % 9000 } else { at };
            let open = if at > 39_990 { 0 } else { 1 + usize::from(is_random) };
            let record = TraceRecord {
                took: Nanos::new(40),
                time: Nanos::new(at * 1000),
                open_file: opens[open],
                process: threads[(at / 5 % 2) as usize],
                kind: TraceRecordKind::Read,
                offset: Bytes::new(offset * 4096),
                length: Bytes::new(4096),
            };
            builder.push(TraceLocation::Whole, record).unwrap();
        }
        builder.finish().unwrap()
    }

    fn streamed(trace: &Trace) -> (tempfile::NamedTempFile, LoadedTrace) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&trace.encode()).unwrap();
        let stream = TraceStream::open(Arc::new(File::open(file.path()).unwrap())).unwrap();
        assert!(stream.blocks() > 3);
        let loaded = LoadedTrace::from_content(file.path().display().to_string(), stream.into());
        (file, loaded)
    }

    #[test]
    fn a_stream_gives_what_the_same_trace_in_memory_gives() {
        let trace = trace();
        let (_file, stream) = streamed(&trace);
        let memory = LoadedTrace::new("memory".to_owned(), trace);
        assert_eq!(stream.facts().unwrap(), memory.facts().unwrap());
        // The digest does not depend on the compression library of this build.
        let digest = "a314d8b0281c7f62b816f4eb6c0de14e82928004df8291915b86c36507f2ee6b";
        assert_eq!(memory.facts().unwrap().digest, digest);
        assert_eq!(stream.facts().unwrap().requested, Bytes::new(40_000 * 4096));
        for (pace, compact) in
            [("asap", false), ("recorded", false), ("think", false), ("asap", true)]
        {
            let cell = SimCell {
                device: "hdd-2008".to_owned(),
                cache_bytes: 1 << 24,
                pace: pace.to_owned(),
                compact,
                ..SimCell::default()
            };
            let figures = |loaded: &LoadedTrace| CellFigures::new(&loaded.simulate(&cell).unwrap());
            assert_eq!(figures(&stream), figures(&memory), "{pace} {compact}");
            let limits = |loaded: &LoadedTrace| loaded.limits(&cell, false).unwrap();
            assert_eq!(limits(&stream), limits(&memory), "{pace} {compact}");
        }
    }

    #[test]
    fn a_stream_that_is_damaged_meanwhile_gives_no_result() {
        let (file, stream) = streamed(&trace());
        let cell = SimCell::default();
        let mut bytes = std::fs::read(file.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(file.path(), bytes).unwrap();
        let error = stream.simulate(&cell).unwrap_err().to_string();
        assert!(error.contains("block") && error.contains("checksum"), "{error}");
        assert!(stream.facts().unwrap_err().to_string().contains("checksum"));
        assert!(stream.limits(&cell, false).unwrap_err().to_string().contains("checksum"));
    }
}
