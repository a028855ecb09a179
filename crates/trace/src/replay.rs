//! A trace as a workload: who reads what, and when.

use std::collections::HashMap;

use units::{Bytes, Nanos};

use workload::{
    Access, AccessClass, ReplayPace, ReplayScript, TraceOpenFile, TraceReplay, Workload,
    WorkloadError,
};

use crate::model::{Trace, TraceRecord, TraceRecordKind};

/// What is left out of a compact replay, at least, and what is kept around each request.
const COMPACT_GRANULE_BYTES: u64 = 1 << 20;

impl Trace {
    /// The reads of the trace as a workload.
    ///
    /// Each process is a reader; processes that did not run at the same time may share one.
    /// Readers share the open files. `source` is where the trace came from, for the record.
    ///
    /// # Errors
    ///
    /// If the trace has no reads, or its sizes are beyond the limits of workloads.
    pub fn to_workload(
        &self,
        name: impl Into<String>,
        source: impl Into<String>,
        pace: ReplayPace,
        compact: bool,
    ) -> Result<Workload, WorkloadError> {
        let script = match compact {
            true => self.compacted(COMPACT_GRANULE_BYTES).script(pace),
            false => self.script(pace),
        };
        let replay = TraceReplay::new(source.into(), self.digest(), pace, compact, script);
        Workload::from_replay(name, replay)
    }

    fn script(&self, pace: ReplayPace) -> ReplayScript {
        let mut script = ReplayScript::default();
        let mut opens = HashMap::new();
        let mut files = HashMap::new();
        let lanes = lanes(self);
        let mut readers = vec![Vec::new(); lanes.count];
        let mut runs = Runs::new(self.open_files.len());
        for record in self.reads() {
            let open_file = *opens.entry(record.open_file).or_insert_with(|| {
                let open = self.open_files[record.open_file as usize];
                let file = *files.entry(open.file).or_insert_with(|| {
                    script.file_sizes.push(self.files[open.file as usize].size);
                    script.file_sizes.len() as u32 - 1
                });
                script.open_files.push(TraceOpenFile { file, ..open });
                script.open_files.len() as u32 - 1
            });
            let lane = lanes.of[record.process as usize];
            let not_before = if pace == ReplayPace::Recorded { record.time } else { Nanos::ZERO };
            let (class, first) = runs.class(record, (lane, readers[lane].len()));
            readers[lane].push(Access {
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
        record: &TraceRecord,
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

struct Lanes {
    of: Vec<usize>,
    count: usize,
}

/// Gives each process the first reader whose processes before have all ended by then.
fn lanes(trace: &Trace) -> Lanes {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; trace.processes.len()];
    for (at, record) in trace.records.iter().enumerate() {
        if record.kind == TraceRecordKind::Read {
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
        let file_of =
            |record: &TraceRecord| self.open_files[record.open_file as usize].file as usize;
        for record in self.reads() {
            let pieces = (record.offset.get() / granule, (record.end().get() - 1) / granule + 1);
            read[file_of(record)].push(pieces);
        }
        let kept: Vec<Kept> = read.into_iter().map(Kept::of).collect();
        let mut trace = self.clone();
        trace.records.retain(|record| record.kind == TraceRecordKind::Read);
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
    use workload::AccessMethod;

    use super::*;
    use crate::builder::TraceBuilder;
    use crate::error::TraceLocation;

    /// Times, processes, open files and offsets of reads of 4096 bytes.
    fn trace(reads: &[(u64, u64, u32, u64)]) -> Trace {
        let mut builder = TraceBuilder::new(true);
        for name in ["a", "b"] {
            let file = builder.file(name);
            builder.open(file, AccessMethod::Read);
        }
        for &(time, process, open_file, offset) in reads {
            let process = builder.process(process);
            let record = TraceRecord {
                took: Nanos::ZERO,
                time: Nanos::new(time),
                open_file,
                process,
                kind: TraceRecordKind::Read,
                offset: Bytes::new(offset),
                length: Bytes::new(4096),
            };
            builder.push(TraceLocation::Whole, record).unwrap();
        }
        builder.finish().unwrap()
    }

    fn replay(trace: &Trace, pace: ReplayPace) -> Workload {
        trace.to_workload("t", "t.trace", pace, false).unwrap()
    }

    #[test]
    fn processes_that_do_not_meet_share_a_reader() {
        let trace = trace(&[(0, 1, 0, 0), (1, 2, 1, 0), (2, 2, 1, 4096), (3, 3, 0, 4096)]);
        let workload = replay(&trace, ReplayPace::Asap);
        assert_eq!(workload.readers, 1);
        let overlapping = replay(
            &self::trace(&[(0, 1, 0, 0), (1, 2, 1, 0), (2, 1, 0, 4096), (3, 3, 1, 8192)]),
            ReplayPace::Asap,
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
        let workload = replay(&trace, ReplayPace::Recorded);
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
        let csv = crate::import::format("csv").unwrap();
        let trace = csv.parse(text, crate::import::ImportOptions::default()).unwrap();
        let compact = trace.compacted(1 << 20);
        assert_eq!(compact.records()[1].offset.get(), 1 << 20);
        // Too large to be read by any program: refused, not tried.
        assert!(trace.to_workload("t", "t", ReplayPace::Asap, true).is_err());
    }

    #[test]
    fn a_declaration_keeps_what_makes_it_the_same_trace() {
        let workload = replay(&trace(&[(0, 1, 0, 0)]), ReplayPace::Recorded);
        let again = Workload::from_toml(&workload.to_toml()).unwrap();
        assert_eq!(again, workload);
        assert!(!again.replay.as_ref().unwrap().is_loaded());
        assert!(again.accesses(0, &[Bytes::from_kib(4)], 1).is_err(), "nothing to read from yet");
        let mut adopted = again;
        adopted.adopt_trace(&workload);
        assert!(adopted.accesses(0, &adopted.data_files(Bytes::ZERO), 1).is_ok());
    }
}
