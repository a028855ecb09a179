//! Converts a trace to a workload: which reader reads what, and when.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use units::{Bytes, Nanos};

use workload::{
    Access, AccessClass, AccessSource, LoadedAccesses, ReplayPace, ReplayScript, TraceOpenFile,
    TraceReplay, Workload, WorkloadError,
};

use crate::blocks::{ThreadUse, TraceDamage, TraceStream};
use crate::model::{Trace, TraceFile, TraceRecord, TraceRecordKind};

/// Granularity of a compact replay in bytes: it keeps or drops whole pieces of this size.
const COMPACT_GRANULE_BYTES: u64 = 1 << 20;

impl Trace {
    /// Converts the reads of the trace to a workload.
    ///
    /// Each thread is a reader, but threads that did not run at the same time may share one.
    /// Readers share the open files. `source` names the origin of the trace and is stored in the
    /// record.
    ///
    /// # Errors
    ///
    /// If the trace has no reads, or its sizes exceed the limits of workloads.
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
        let lanes = lanes(self);
        let mut readers = vec![Vec::new(); lanes.count];
        let mut runs = Runs::new(self.open_files.len());
        let mut is_read = vec![false; self.open_files.len()];
        self.reads().for_each(|record| is_read[record.open_file as usize] = true);
        let (mut script, numbers) =
            script_of_files(&self.files, &self.open_files, |open_file| is_read[open_file as usize]);
        let mut returned = vec![None; self.threads.len()];
        for record in self.records.iter().filter(|record| record.kind.is_replayed()) {
            let Some(open_file) = numbers[record.open_file as usize] else { continue };
            let lane = lanes.of[record.process as usize];
            let before = returned[record.process as usize].replace(record.time + record.took);
            let not_before = not_before(pace, record.time, before);
            let advice = record.kind.advice();
            let (class, first) = match advice {
                None => runs.class(record, (lane, readers[lane].len())),
                Some(_) => (AccessClass::Stream, None),
            };
            script.largest =
                script.largest.max(if advice.is_none() { record.length } else { Bytes::ZERO });
            readers[lane].push(Access {
                file: open_file,
                offset: record.offset,
                length: record.length,
                class,
                not_before,
                advice,
            });
            if let Some((reader, at)) = first {
                readers[reader][at].class = AccessClass::Stream;
            }
        }
        let source = |reads: Vec<Access>| -> Arc<dyn AccessSource> {
            Arc::new(LoadedAccesses(reads.into()))
        };
        script.readers = readers.into_iter().map(source).collect();
        script
    }
}

/// Returns a script with the files that are read, in the order of the trace, but without readers.
/// Also returns the index in the script of each open file of the trace; `None` if it is not read.
fn script_of_files(
    files: &[TraceFile],
    open_files: &[TraceOpenFile],
    is_read: impl Fn(u32) -> bool,
) -> (ReplayScript, Vec<Option<u32>>) {
    let mut script = ReplayScript::default();
    let mut known = HashMap::new();
    let mut numbers = Vec::with_capacity(open_files.len());
    for (at, open) in (0..).zip(open_files) {
        let number = is_read(at).then(|| {
            let file = *known.entry(open.file).or_insert_with(|| {
                script.file_sizes.push(files[open.file as usize].size);
                script.file_sizes.len() as u32 - 1
            });
            script.open_files.push(TraceOpenFile { file, ..*open });
            script.open_files.len() as u32 - 1
        });
        numbers.push(number);
    }
    (script, numbers)
}

/// Returns the earliest start of a request that was recorded at `time`, if the previous request of
/// its thread returned at `before`.
fn not_before(pace: ReplayPace, time: Nanos, before: Option<Nanos>) -> Nanos {
    match pace {
        ReplayPace::Asap => Nanos::ZERO,
        ReplayPace::Recorded => time,
        ReplayPace::Think => time.saturating_sub(before.unwrap_or(time)),
    }
}

/// Finds the requests that belong to a stream: those that start at the end of an earlier request on
/// the same open file, and that earlier request.
struct Runs {
    /// The most recent ends on each open file, each with the position of its request.
    ends: Vec<Vec<(Bytes, (usize, usize))>>,
}

/// Maximum number of streams that are distinguished on one open file.
const STREAMS_TOLD_APART: usize = 16;

impl Runs {
    fn new(open_files: usize) -> Self {
        Self { ends: vec![Vec::new(); open_files] }
    }

    /// Returns the class of a request, and the position of the request that it continues.
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

/// Assigns each thread to the first reader whose earlier threads have all made their last request.
fn lanes(trace: &Trace) -> Lanes {
    let mut spans: Vec<Option<(u64, u64)>> = vec![None; trace.threads.len()];
    for (at, record) in (0..).zip(&trace.records) {
        if record.kind.is_replayed() {
            let span = spans[record.process as usize].get_or_insert((at, at));
            span.1 = at;
        }
    }
    share_lanes(&spans)
}

/// Assigns lanes to threads from the positions of their first and last records.
fn share_lanes(spans: &[Option<(u64, u64)>]) -> Lanes {
    let mut order: Vec<usize> = (0..spans.len()).filter(|at| spans[*at].is_some()).collect();
    order.sort_by_key(|at| spans[*at]);
    let mut busy: Vec<u64> = Vec::new();
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

/// The requests of a block, by reader.
type BlockRequests = Arc<Vec<Arc<[Access]>>>;

/// The requests of a trace that is read block by block, shared by all readers.
#[derive(Debug)]
struct StreamedScript {
    stream: Arc<TraceStream>,
    pace: ReplayPace,
    /// Reader of each thread. `open_files` maps the trace's open files to those of the script.
    lanes: Vec<usize>,
    open_files: Vec<Option<u32>>,
    /// The most recently decoded blocks.
    decoded: Mutex<VecDeque<(usize, BlockRequests)>>,
    /// The first unreadable block.
    damage: OnceLock<TraceDamage>,
}

/// Number of decoded blocks that are cached for readers at different positions.
const DECODED_BLOCKS: usize = 8;

impl StreamedScript {
    fn block(&self, at: usize) -> BlockRequests {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = decoded.iter().find(|(number, _)| *number == at) {
            return Arc::clone(block);
        }
        let block = Arc::new(self.decode(at));
        if decoded.len() >= DECODED_BLOCKS {
            decoded.pop_front();
        }
        decoded.push_back((at, Arc::clone(&block)));
        block
    }

    /// Returns the requests of a block by reader. Runs and think times do not cross block borders.
    fn decode(&self, at: usize) -> Vec<Arc<[Access]>> {
        let records = self.stream.block(at).unwrap_or_else(|damage| {
            self.damage.get_or_init(|| damage);
            Vec::new()
        });
        let mut readers: Vec<Vec<Access>> = Vec::new();
        let mut runs = HashMap::new();
        let mut returned = HashMap::new();
        for record in records.iter().filter(|record| record.kind.is_replayed()) {
            let Some(file) = self.open_files[record.open_file as usize] else { continue };
            let lane = self.lanes[record.process as usize];
            if readers.len() <= lane {
                readers.resize(lane + 1, Vec::new());
            }
            let before = returned.insert(record.process, record.time + record.took);
            let advice = record.kind.advice();
            let runs = runs.entry(file).or_insert_with(|| Runs::new(1));
            let (class, first) = match advice {
                None => {
                    let single = TraceRecord { open_file: 0, ..*record };
                    runs.class(&single, (lane, readers[lane].len()))
                }
                Some(_) => (AccessClass::Stream, None),
            };
            readers[lane].push(Access {
                file,
                offset: record.offset,
                length: record.length,
                class,
                not_before: not_before(self.pace, record.time, before),
                advice,
            });
            if let Some((reader, at)) = first {
                readers[reader][at].class = AccessClass::Stream;
            }
        }
        readers.into_iter().map(Into::into).collect()
    }
}

/// One reader of a trace that is read block by block.
#[derive(Debug)]
struct StreamedReader {
    script: Arc<StreamedScript>,
    lane: usize,
}

impl AccessSource for StreamedReader {
    fn piece(&self, number: usize) -> Option<Arc<[Access]>> {
        if number >= self.script.stream.blocks() {
            return None;
        }
        let block = self.script.block(number);
        Some(block.get(self.lane).cloned().unwrap_or_else(|| Arc::from([])))
    }

    fn failure(&self) -> Option<String> {
        self.script.damage.get().map(ToString::to_string)
    }
}

impl TraceStream {
    /// Converts the reads of the trace to a workload that reads them from the file on demand, so
    /// that memory does not grow with their number. Think times and runs do not cross block
    /// borders. [`TraceReplay::failure`] says afterwards whether a block was unreadable.
    ///
    /// # Errors
    ///
    /// If the trace has no reads, or its sizes exceed the limits of workloads.
    pub fn to_workload(
        self: &Arc<Self>,
        name: impl Into<String>,
        source: impl Into<String>,
        pace: ReplayPace,
    ) -> Result<Workload, WorkloadError> {
        let span = |thread: &ThreadUse| (thread.count > 0).then_some((thread.first, thread.last));
        let mut spans: Vec<Option<(u64, u64)>> = self.thread_use().iter().map(span).collect();
        spans.resize(self.threads().len(), None);
        let lanes = share_lanes(&spans);
        let (mut script, open_files) =
            script_of_files(self.files(), self.open_files(), |open_file| self.is_read(open_file));
        script.largest = self.largest_read();
        script.is_streamed = true;
        let digest = self.digest();
        let (stream, decoded) = (Arc::clone(self), Mutex::default());
        let damage = OnceLock::new();
        let count = if script.open_files.is_empty() { 0 } else { lanes.count };
        let shared =
            Arc::new(StreamedScript { stream, pace, lanes: lanes.of, open_files, decoded, damage });
        script.readers = (0..count)
            .map(|lane| -> Arc<dyn AccessSource> {
                Arc::new(StreamedReader { script: Arc::clone(&shared), lane })
            })
            .collect();
        let replay = TraceReplay::new(source.into(), digest, pace, false, script);
        Workload::from_replay(name, replay)
    }
}

/// Runs of kept pieces as start, end, and start among the kept pieces. These are runs because one
/// request may cover any number of pieces.
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
        run.map_or(0, |run| run.2 + (piece.min(run.1) - run.0))
    }
}

impl Trace {
    /// Returns the trace on smaller files: drops each piece of `granule` bytes that no read
    /// touches, and keeps the order of the others. Also drops all records except reads and advice.
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
        let is_kept =
            |record: &TraceRecord| record.kind.is_replayed() && !kept[file_of(record)].0.is_empty();
        trace.records.retain(is_kept);
        for record in &mut trace.records {
            let pieces = &kept[file_of(record)];
            let moved = |place: u64| pieces.place_of(place / granule) * granule + place % granule;
            let end = record.end().get();
            record.offset = Bytes::new(moved(record.offset.get()));
            if record.kind != TraceRecordKind::Read && !record.length.is_zero() {
                // A range of advice may start or end in a dropped piece.
                record.length = Bytes::new(moved(end)).saturating_sub(record.offset);
            }
        }
        for file in &mut trace.files {
            file.size = Bytes::ZERO;
        }
        for record in trace.records.iter().filter(|it| it.kind == TraceRecordKind::Read) {
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

    /// Builds a trace of 4096-byte reads from times, processes, open files and offsets.
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
        // Too large to be read by any program: rejected before it is attempted.
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
