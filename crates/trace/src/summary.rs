//! Characterises a trace.

use std::collections::{BTreeMap, HashMap};

use units::{Bytes, Nanos, PageSize};
use workload::AccessMethod;

use crate::model::{Trace, TraceRecord, TraceRecordKind};

/// Minimum size of a stream. Shorter runs are reads that are neighbours by chance.
const STREAM_LEAST: Bytes = Bytes::from_kib(128);
/// Maximum number of runs that are distinguished on one open file.
const RUNS_TOLD_APART: usize = 32;
const HOT_FILES: usize = 10;
const LISTED_SIZES: usize = 8;

/// A request size with the number of requests of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeCount {
    pub size: Bytes,
    pub requests: u64,
}

/// A file with its share of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotFile {
    pub name: String,
    /// Number of reads and writes of the file.
    pub requests: u64,
    pub bytes: Bytes,
    /// Known size of the file.
    pub size: Bytes,
}

/// Characteristics of a trace. Sequentiality, streams and sizes refer to reads only.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    pub timed: bool,
    /// Time from the first request to the last.
    pub span: Nanos,
    pub reads: u64,
    pub read_bytes: Bytes,
    pub writes: u64,
    pub write_bytes: Bytes,
    /// Page faults on mappings, which also count as [`Self::reads`].
    pub faults: u64,
    /// Number of calls that gave the kernel advice on a range.
    pub advice: u64,
    /// Number of processes with requests. A thread whose process was not recorded counts as one.
    pub processes: usize,
    /// Number of threads with requests.
    pub threads: usize,
    pub files: usize,
    pub open_files: usize,
    /// Total size of the distinct pages that were read.
    pub footprint: Bytes,
    /// Fraction of page references to the page after the previously referenced one.
    pub next_page_share: f64,
    /// Fraction of reads that start where the previous read on the same open file ended.
    pub sequential_share: f64,
    /// The same fraction, with up to 32 streams distinguished on each open file.
    pub stream_share: f64,
    /// Number of runs of neighbouring reads with 128 KiB or more in total.
    pub streams: u64,
    /// Maximum number of concurrent streams.
    pub streams_at_once: u64,
    /// The most frequent read sizes, at most 8.
    pub sizes: Vec<SizeCount>,
    /// Median read size.
    pub size_p50: Bytes,
    pub size_max: Bytes,
    /// The files with the most transferred bytes, at most 10.
    pub hot_files: Vec<HotFile>,
}

#[derive(Clone, Copy)]
struct Run {
    end: Bytes,
    bytes: Bytes,
    first: usize,
    last: usize,
}

/// Finds runs in the reads of all open files.
#[derive(Default)]
struct Runs {
    of: HashMap<u32, Vec<Run>>,
    ended: Vec<Run>,
    sequential: u64,
    continued: u64,
}

impl Runs {
    fn read(&mut self, at: usize, record: &TraceRecord) {
        let runs = self.of.entry(record.open_file).or_default();
        self.sequential += u64::from(runs.last().is_some_and(|run| run.end == record.offset));
        let (end, bytes) = (record.end(), record.length);
        let known = runs.iter().position(|run| run.end == record.offset);
        let run = match known {
            Some(place) => {
                self.continued += 1;
                let run = runs.remove(place);
                Run { end, bytes: run.bytes + bytes, last: at, ..run }
            }
            None => Run { end, bytes, first: at, last: at },
        };
        if runs.len() >= RUNS_TOLD_APART {
            self.ended.push(runs.remove(0));
        }
        runs.push(run);
    }

    /// Returns the number of streams and the maximum number of concurrent ones.
    fn streams(self) -> (u64, u64) {
        let all = self.ended.into_iter().chain(self.of.into_values().flatten());
        let streams: Vec<Run> = all.filter(|run| run.bytes >= STREAM_LEAST).collect();
        // At the same position, the end of a run sorts before the start of another.
        let mut turns: Vec<(usize, i64)> =
            streams.iter().flat_map(|run| [(run.first, 1), (run.last + 1, -1)]).collect();
        turns.sort_unstable();
        let (mut now, mut most) = (0i64, 0i64);
        for (_, turn) in turns {
            now += turn;
            most = most.max(now);
        }
        (streams.len() as u64, most.unsigned_abs())
    }
}

/// Returns the total size of the distinct pages that were read.
fn footprint(trace: &Trace) -> Bytes {
    let page = PageSize::FOUR_KIB;
    let mut ranges: Vec<(u32, u64, u64)> = trace
        .reads()
        .map(|record| {
            let file = trace.open_files[record.open_file as usize].file;
            let first = record.offset.to_pages_floor(page).get();
            (file, first, record.end().to_pages_ceil(page).get())
        })
        .collect();
    ranges.sort_unstable();
    let (mut pages, mut reached) = (0u64, (u32::MAX, 0u64));
    for (file, first, end) in ranges {
        let from = if reached.0 == file { first.max(reached.1) } else { first };
        pages += end.saturating_sub(from);
        reached = (file, if reached.0 == file { end.max(reached.1) } else { end });
    }
    Bytes::new(pages * page.bytes().get())
}

/// Returns the fraction of page references to the page after the previously referenced one.
fn next_page_share(trace: &Trace) -> f64 {
    let page = PageSize::FOUR_KIB;
    let (mut references, mut next, mut before) = (0u64, 0u64, None);
    for record in trace.reads() {
        let first = record.offset.to_pages_floor(page).get();
        let end = record.end().to_pages_ceil(page).get();
        references += end - first;
        next += end - first - 1;
        next += u64::from(before == Some((record.open_file, first)));
        before = Some((record.open_file, end));
    }
    if references == 0 { 0.0 } else { next as f64 / references as f64 }
}

fn hot_files(trace: &Trace) -> Vec<HotFile> {
    let mut files: Vec<HotFile> = trace
        .files
        .iter()
        .map(|file| HotFile {
            name: file.name.clone(),
            requests: 0,
            bytes: Bytes::ZERO,
            size: file.size,
        })
        .collect();
    for record in trace.records.iter().filter(|record| record.kind.transfers()) {
        let file = &mut files[trace.open_files[record.open_file as usize].file as usize];
        file.requests += 1;
        file.bytes = Bytes::new(file.bytes.get().saturating_add(record.length.get()));
    }
    files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    files.truncate(HOT_FILES);
    files
}

/// Returns the most frequent read sizes, the median and the maximum.
fn sizes(trace: &Trace) -> (Vec<SizeCount>, Bytes, Bytes) {
    let mut counts: BTreeMap<Bytes, u64> = BTreeMap::new();
    for record in trace.reads() {
        *counts.entry(record.length).or_default() += 1;
    }
    let reads: u64 = counts.values().sum();
    let mut seen = 0;
    let median = counts.iter().find(|(_, requests)| {
        seen += **requests;
        seen * 2 >= reads
    });
    let median = median.map_or(Bytes::ZERO, |(size, _)| *size);
    let largest = counts.keys().next_back().copied().unwrap_or_default();
    let mut sizes: Vec<SizeCount> =
        counts.into_iter().map(|(size, requests)| SizeCount { size, requests }).collect();
    sizes.sort_by_key(|count| std::cmp::Reverse((count.requests, count.size)));
    sizes.truncate(LISTED_SIZES);
    (sizes, median, largest)
}

impl Trace {
    pub fn summary(&self) -> TraceSummary {
        let mut runs = Runs::default();
        let (mut reads, mut writes) = ((0u64, 0u64), (0u64, 0u64));
        let (mut faults, mut advice) = (0, 0);
        for (at, record) in self.records.iter().enumerate() {
            let sum = match record.kind {
                TraceRecordKind::Read => &mut reads,
                TraceRecordKind::Write => &mut writes,
                _ => {
                    advice += u64::from(matches!(record.kind, TraceRecordKind::Advise(_)));
                    continue;
                }
            };
            *sum = (sum.0 + 1, sum.1.saturating_add(record.length.get()));
            if record.kind == TraceRecordKind::Read {
                let open = self.open_files[record.open_file as usize];
                faults += u64::from(open.access == AccessMethod::Mmap);
                runs.read(at, record);
            }
        }
        let share = |part: u64| if reads.0 == 0 { 0.0 } else { part as f64 / reads.0 as f64 };
        let (sequential_share, stream_share) = (share(runs.sequential), share(runs.continued));
        let (streams, streams_at_once) = runs.streams();
        let (sizes, size_p50, size_max) = sizes(self);
        TraceSummary {
            timed: self.timed,
            span: self.span(),
            reads: reads.0,
            read_bytes: Bytes::new(reads.1),
            writes: writes.0,
            write_bytes: Bytes::new(writes.1),
            faults,
            advice,
            processes: self.process_count(),
            threads: self.threads.len(),
            files: self.files.len(),
            open_files: self.open_files.len(),
            footprint: footprint(self),
            next_page_share: next_page_share(self),
            sequential_share,
            stream_share,
            streams,
            streams_at_once,
            sizes,
            size_p50,
            size_max,
            hot_files: hot_files(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::TraceBuilder;
    use crate::error::TraceLocation;
    use crate::model::TraceThread;

    /// Builds a trace of 64 KiB reads at these offsets, in units of 64 KiB.
    fn trace(offsets: &[u64]) -> Trace {
        let mut builder = TraceBuilder::new(false);
        let file = builder.file("f");
        let open_file = builder.open(file, AccessMethod::Read);
        let process = builder.process(1);
        let length = Bytes::from_kib(64);
        for offset in offsets {
            let offset = Bytes::from_kib(64 * offset);
            let (time, kind) = (Nanos::ZERO, TraceRecordKind::Read);
            let took = Nanos::ZERO;
            let record = TraceRecord { time, open_file, process, kind, offset, length, took };
            builder.push(TraceLocation::Whole, record).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn two_streams_in_turn_are_two_at_once() {
        let summary = trace(&[0, 100, 1, 101, 2, 102, 3, 103]).summary();
        assert_eq!((summary.streams, summary.streams_at_once), (2, 2));
        assert_eq!(summary.sequential_share, 0.0);
        assert_eq!(summary.stream_share, 0.75);
        let one = trace(&[0, 1, 2, 3, 100, 101]).summary();
        assert_eq!((one.streams, one.streams_at_once), (2, 1));
    }

    #[test]
    fn threads_of_one_process_are_one_process() {
        let mut builder = TraceBuilder::new(false);
        let file = builder.file("f");
        let open_file = builder.open(file, AccessMethod::Read);
        for (thread, process) in [(1, 1), (2, 1), (3, 3)] {
            let process = builder.thread(TraceThread { thread, process });
            let (time, kind, took) = (Nanos::ZERO, TraceRecordKind::Read, Nanos::ZERO);
            let (offset, length) = (Bytes::ZERO, Bytes::from_kib(4));
            let record = TraceRecord { time, open_file, process, kind, offset, length, took };
            builder.push(TraceLocation::Whole, record).unwrap();
        }
        let summary = builder.finish().unwrap().summary();
        assert_eq!((summary.processes, summary.threads), (2, 3));
    }

    #[test]
    fn pages_read_twice_count_once_in_the_footprint() {
        let summary = trace(&[0, 1, 0, 5]).summary();
        assert_eq!(summary.footprint, Bytes::from_kib(3 * 64));
        assert_eq!((summary.reads, summary.size_p50), (4, Bytes::from_kib(64)));
        assert_eq!(summary.hot_files[0].bytes, Bytes::from_kib(4 * 64));
        // 15 of 16 pages within each request, and one at the border of two.
        assert_eq!(summary.next_page_share, 61.0 / 64.0);
    }
}
