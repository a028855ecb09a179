//! A trace as a workload: who reads what, and when.

use std::collections::HashMap;
use std::sync::Arc;

use units::{Bytes, Nanos};

use super::{Kind, OpenFile, Record, Trace};
use crate::{
    Access, AccessClass, AccessMethod, Hint, Layout, Pattern, Sharing, Workload, WorkloadError,
};

/// When a replayed request is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As soon as its reader's request before has been served.
    #[default]
    Asap,
    /// When it was made in the trace, or as soon after that as its reader is free.
    Recorded,
}

/// What a workload of the pattern [`Pattern::Trace`] replays: the reads of a trace. Writes are
/// left out, since nothing that is there is ever written to.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Where the trace is, for whoever loads it.
    pub trace: String,
    /// Tells whether it is still the same trace.
    pub digest: u64,
    /// When requests are made.
    pub pace: Pace,
    /// Whether the places that nothing was read from are left out of the files.
    pub compact: bool,
    /// What is to be done; none in a declaration that was read from text.
    script: Option<Arc<Script>>,
}

impl PartialEq for Replay {
    fn eq(&self, other: &Self) -> bool {
        let key = |replay: &Self| (replay.digest, replay.pace, replay.compact);
        self.trace == other.trace && key(self) == key(other)
    }
}

/// The reads of a trace, by reader.
#[derive(Debug)]
struct Script {
    /// One for each open file that is read from.
    open_files: Vec<OpenFile>,
    /// The sizes of the files, by the numbers that `open_files` has for them.
    sizes: Vec<Bytes>,
    /// What each reader does, in order.
    readers: Vec<Arc<[Access]>>,
    largest: Bytes,
}

impl Replay {
    /// What a declaration in text says.
    pub(crate) fn declared(trace: String, digest: u64, pace: Pace, compact: bool) -> Self {
        Self { trace, digest, pace, compact, script: None }
    }

    /// Whether the trace is at hand.
    pub fn is_loaded(&self) -> bool {
        self.script.is_some()
    }

    /// The reads of one reader.
    pub(crate) fn reads(&self, reader: u32) -> Option<Arc<[Access]>> {
        self.script.as_ref()?.readers.get(reader as usize).cloned()
    }

    /// How many requests all readers together make.
    pub fn requests(&self) -> u64 {
        let readers = self.script.iter().flat_map(|script| &script.readers);
        readers.map(|reads| reads.len() as u64).sum()
    }

    pub(crate) fn open_file(&self, open_file: u32) -> Option<&OpenFile> {
        self.script.as_ref()?.open_files.get(open_file as usize)
    }

    pub(crate) fn sizes(&self) -> &[Bytes] {
        self.script.as_ref().map_or(&[], |script| &script.sizes)
    }
}

/// What is left out of a compact replay, at least, and what is kept around each request.
const COMPACT_GRANULE: u64 = 1 << 20;

impl Workload {
    /// The reads of a trace as a workload.
    ///
    /// Each process is a reader; processes that were not at work at the same time may share one.
    /// Readers share the open files. `source` is where the trace came from, for the record.
    pub fn of_trace(
        name: impl Into<String>,
        source: impl Into<String>,
        trace: &Trace,
        pace: Pace,
        compact: bool,
    ) -> Result<Self, WorkloadError> {
        let source = source.into();
        if trace.reads().next().is_none() {
            return Err(WorkloadError::TraceWithoutReads { trace: source });
        }
        let script = match compact {
            true => Script::of(&trace.compacted(COMPACT_GRANULE), pace),
            false => Script::of(trace, pace),
        };
        let digest = trace.digest();
        let workload = Self {
            readers: u32::try_from(script.readers.len()).unwrap_or(u32::MAX),
            sharing: Sharing::SharedOpenFile,
            files_per_reader: u32::try_from(script.open_files.len()).unwrap_or(u32::MAX),
            think: Nanos::ZERO,
            access: AccessMethod::Read,
            hint: Hint::None,
            layout: Layout::Contiguous,
            replay: Some(Replay {
                trace: source,
                digest,
                pace,
                compact,
                script: Some(Arc::new(script)),
            }),
            ..Self::new(name, Pattern::Trace, Bytes::new(1))
        };
        let block = workload.replay.as_ref().and_then(|replay| replay.script.as_ref());
        let block = block.map_or(Bytes::new(1), |script| script.largest);
        let workload = Self { block, ..workload };
        workload.validate()?;
        Ok(workload)
    }

    /// Takes the loaded trace of another workload that replays the same.
    pub fn adopt_trace(&mut self, other: &Self) {
        if let (Some(own), Some(theirs)) = (&mut self.replay, &other.replay)
            && own == theirs
        {
            own.script.clone_from(&theirs.script);
        }
    }
}

impl Script {
    fn of(trace: &Trace, pace: Pace) -> Self {
        let mut script = Self {
            open_files: Vec::new(),
            sizes: Vec::new(),
            readers: Vec::new(),
            largest: Bytes::ZERO,
        };
        let mut opens = HashMap::new();
        let mut files = HashMap::new();
        let lanes = lanes(trace);
        let mut readers = vec![Vec::new(); lanes.count];
        let mut runs = Runs::new(trace.open_files.len());
        for record in trace.reads() {
            let open_file = *opens.entry(record.open_file).or_insert_with(|| {
                let open = trace.open_files[record.open_file as usize];
                let file = *files.entry(open.file).or_insert_with(|| {
                    script.sizes.push(trace.files[open.file as usize].size);
                    script.sizes.len() as u32 - 1
                });
                script.open_files.push(OpenFile { file, ..open });
                script.open_files.len() as u32 - 1
            });
            script.largest = script.largest.max(record.length);
            let lane = &mut readers[lanes.of[record.process as usize]];
            let place = (lanes.of[record.process as usize], lane.len());
            let not_before = if pace == Pace::Recorded { record.time } else { Nanos::ZERO };
            let (class, first) = runs.class(record, place);
            lane.push(Access {
                file: open_file,
                offset: record.offset,
                length: record.length,
                class,
                not_before,
            });
            if let Some((reader, at)) = first {
                readers[reader][at].class = AccessClass::Stream;
            }
        }
        script.readers = readers.into_iter().map(Into::into).collect();
        script
    }
}

/// Which requests are of a stream: those that begin where one before on the same open file ended,
/// and that one.
struct Runs {
    /// The last few ends of each open file, and whose they were.
    ends: Vec<Vec<(Bytes, (usize, usize))>>,
}

/// So many streams of one open file are told apart.
const STREAMS_TOLD_APART: usize = 16;

impl Runs {
    fn new(open_files: usize) -> Self {
        Self { ends: vec![Vec::new(); open_files] }
    }

    /// The class of a request, and the place of the one that it goes on from.
    fn class(
        &mut self,
        record: &Record,
        place: (usize, usize),
    ) -> (AccessClass, Option<(usize, usize)>) {
        let ends = &mut self.ends[record.open_file as usize];
        let before = ends.iter().position(|(end, _)| *end == record.offset);
        let from = before.map(|at| ends.remove(at).1);
        if ends.len() >= STREAMS_TOLD_APART {
            ends.remove(0);
        }
        ends.push((record.end(), place));
        (if from.is_some() { AccessClass::Stream } else { AccessClass::Random }, from)
    }
}

/// Which reader each process is.
struct Lanes {
    of: Vec<usize>,
    count: usize,
}

/// Gives each process the first reader whose processes before have all ended by then.
fn lanes(trace: &Trace) -> Lanes {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; trace.processes.len()];
    for (at, record) in trace.records.iter().enumerate() {
        if record.kind == Kind::Read {
            let span = spans[record.process as usize].get_or_insert((at, at));
            span.1 = at;
        }
    }
    let mut order: Vec<usize> = (0..spans.len()).filter(|at| spans[*at].is_some()).collect();
    order.sort_by_key(|at| spans[*at]);
    let mut busy: Vec<usize> = Vec::new();
    let mut of = vec![0; spans.len()];
    for process in order {
        let Some((first, last)) = spans[process] else { continue };
        let free = busy.iter().position(|until| *until < first);
        let lane = free.unwrap_or(busy.len());
        match free {
            Some(lane) => busy[lane] = last,
            None => busy.push(last),
        }
        of[process] = lane;
    }
    Lanes { of, count: busy.len() }
}

/// Runs of pieces that are kept, and where each begins among those kept: runs, because one request
/// may be of any number of pieces.
struct Kept(Vec<(u64, u64, u64)>);

impl Kept {
    fn of(mut read: Vec<(u64, u64)>) -> Self {
        read.sort_unstable();
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        for (start, end) in read {
            match runs.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                last => {
                    let place = last.map_or(0, |last| last.2 + (last.1 - last.0));
                    runs.push((start, end, place));
                }
            }
        }
        Self(runs)
    }

    fn place_of(&self, piece: u64) -> u64 {
        let at = self.0.partition_point(|run| run.0 <= piece);
        let run = at.checked_sub(1).and_then(|at| self.0.get(at));
        run.map_or(0, |run| run.2 + (piece - run.0))
    }
}

impl Trace {
    /// The same trace on files without the places that nothing was read from: whole pieces of
    /// `granule` bytes are left out, and those that stay keep their order. What was written only
    /// is left out too.
    #[must_use]
    pub fn compacted(&self, granule: u64) -> Self {
        let granule = granule.max(1);
        let mut read: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.files.len()];
        let file_of = |record: &Record| self.open_files[record.open_file as usize].file as usize;
        for record in self.reads() {
            let pieces = (record.offset.get() / granule, (record.end().get() - 1) / granule + 1);
            read[file_of(record)].push(pieces);
        }
        let kept: Vec<Kept> = read.into_iter().map(Kept::of).collect();
        let mut trace = self.clone();
        trace.records.retain(|record| record.kind == Kind::Read);
        for record in &mut trace.records {
            let pieces = &kept[self.open_files[record.open_file as usize].file as usize];
            let place = pieces.place_of(record.offset.get() / granule);
            record.offset = Bytes::new(place * granule + record.offset.get() % granule);
        }
        for file in &mut trace.files {
            file.size = Bytes::ZERO;
        }
        for record in &trace.records {
            let file = trace.open_files[record.open_file as usize].file as usize;
            trace.files[file].size = trace.files[file].size.max(record.end());
        }
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Place, TraceBuilder};

    /// Times, processes, open files and offsets of reads of 4096 bytes.
    fn trace(reads: &[(u64, u64, u32, u64)]) -> Trace {
        let mut builder = TraceBuilder::new(true);
        for name in ["a", "b"] {
            let file = builder.file(name);
            builder.open(file, AccessMethod::Read);
        }
        for &(time, process, open_file, offset) in reads {
            let process = builder.process(process);
            let record = Record {
                time: Nanos::new(time),
                open_file,
                process,
                kind: Kind::Read,
                offset: Bytes::new(offset),
                length: Bytes::new(4096),
            };
            builder.push(Place::Whole, record).unwrap();
        }
        builder.finish().unwrap()
    }

    fn replay(trace: &Trace, pace: Pace) -> Workload {
        Workload::of_trace("t", "t.trace", trace, pace, false).unwrap()
    }

    #[test]
    fn processes_that_do_not_meet_share_a_reader() {
        let trace = trace(&[(0, 1, 0, 0), (1, 2, 1, 0), (2, 2, 1, 4096), (3, 3, 0, 4096)]);
        let workload = replay(&trace, Pace::Asap);
        assert_eq!(workload.readers, 1);
        let overlapping = replay(
            &self::trace(&[(0, 1, 0, 0), (1, 2, 1, 0), (2, 1, 0, 4096), (3, 3, 1, 8192)]),
            Pace::Asap,
        );
        assert_eq!(overlapping.readers, 2);
        let sizes = overlapping.data_files(Bytes::ZERO);
        let own: Vec<Access> = overlapping.accesses(0, &sizes, 1).unwrap().collect();
        let places: Vec<(u32, u64)> =
            own.iter().map(|access| (access.file, access.offset.get())).collect();
        assert_eq!(places, [(0, 0), (0, 4096), (1, 8192)], "process 3 comes when 1 has gone");
    }

    #[test]
    fn requests_that_follow_each_other_are_a_stream() {
        let trace = trace(&[(0, 1, 0, 0), (1, 1, 0, 40960), (2, 1, 0, 4096), (3, 1, 1, 8192)]);
        let workload = replay(&trace, Pace::Recorded);
        let sizes = workload.data_files(Bytes::ZERO);
        let accesses: Vec<Access> = workload.accesses(0, &sizes, 1).unwrap().collect();
        let classes: Vec<AccessClass> = accesses.iter().map(|access| access.class).collect();
        use AccessClass::{Random, Stream};
        assert_eq!(classes, [Stream, Random, Stream, Random]);
        let times: Vec<u64> = accesses.iter().map(|access| access.not_before.get()).collect();
        assert_eq!(times, [0, 1, 2, 3]);
    }

    #[test]
    fn compacting_keeps_order_and_neighbours() {
        let far = 1 << 40;
        let trace = trace(&[(0, 1, 0, far), (1, 1, 0, far + 4096), (2, 1, 0, 0), (3, 1, 1, far)]);
        let compact = trace.compacted(1 << 20);
        let offsets: Vec<u64> = compact.records().iter().map(|r| r.offset.get()).collect();
        assert_eq!(offsets, [1 << 20, (1 << 20) + 4096, 0, 0]);
        assert!(compact.files().iter().all(|file| file.size <= Bytes::from_mib(2)));
    }

    #[test]
    fn a_request_of_any_size_is_compacted_at_once() {
        let text = b"offset,length\n0,4096\n1125899906842624,2251799813685248\n";
        let csv = crate::trace::format("csv").unwrap();
        let trace = csv.parse(text, crate::trace::ImportOptions::default()).unwrap();
        let compact = trace.compacted(1 << 20);
        assert_eq!(compact.records()[1].offset.get(), 1 << 20);
        // Too large to be read by any program: refused, not tried.
        assert!(Workload::of_trace("t", "t", &trace, Pace::Asap, true).is_err());
    }

    #[test]
    fn a_declaration_keeps_what_makes_it_the_same_trace() {
        let workload = replay(&trace(&[(0, 1, 0, 0)]), Pace::Recorded);
        let again = Workload::from_toml(&workload.to_toml()).unwrap();
        assert_eq!(again, workload);
        assert!(!again.replay.as_ref().unwrap().is_loaded());
        assert!(again.accesses(0, &[Bytes::from_kib(4)], 1).is_err(), "nothing to read from yet");
        let mut adopted = again;
        adopted.adopt_trace(&workload);
        assert!(adopted.accesses(0, &adopted.data_files(Bytes::ZERO), 1).is_ok());
    }
}
