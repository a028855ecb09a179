//! The model of a trace.

use std::collections::BTreeSet;

use units::{Bytes, Nanos};
use workload::{RangeAdvice, TraceOpenFile};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceRecordKind {
    /// A read by a system call or, if the open file is mapped, by a page fault.
    Read,
    Write,
    /// Advice for the range; a length of 0 extends to the end of the file.
    Advise(RangeAdvice),
    /// The file was truncated or extended to [`TraceRecord::offset`].
    Truncate,
    /// The file was deleted.
    Delete,
    /// A fault mapped the range around its own page. Later reads of it leave no record.
    FaultAround,
}

impl From<RangeAdvice> for TraceRecordKind {
    fn from(advice: RangeAdvice) -> Self {
        Self::Advise(advice)
    }
}

impl TraceRecordKind {
    /// Returns whether the request transfers the bytes of its range.
    pub fn transfers(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Returns whether a replay executes the request. Writes and mere descriptions are skipped.
    pub(crate) fn is_replayed(self) -> bool {
        matches!(self, Self::Read | Self::Advise(_))
    }

    pub(crate) fn advice(self) -> Option<RangeAdvice> {
        match self {
            Self::Advise(advice) => Some(advice),
            _ => None,
        }
    }
}

/// A thread that made requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceThread {
    /// Thread id at the time of recording.
    pub thread: u64,
    /// Process id; the thread id if the recorder did not know the process.
    pub process: u64,
}

impl From<u64> for TraceThread {
    /// Returns the only thread of a process, or one whose process is unknown.
    fn from(number: u64) -> Self {
        Self { thread: number, process: number }
    }
}

/// A file or device in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Name, as the recorder printed it.
    pub name: String,
    /// Minimum size: the end of the largest known request.
    pub size: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Time since the first request of the trace.
    pub time: Nanos,
    /// Index of the open file in [`Trace::open_files`].
    pub open_file: u32,
    /// Index of the thread in [`Trace::threads`].
    pub process: u32,
    pub kind: TraceRecordKind,
    pub offset: Bytes,
    /// Length of the range; never 0 for a read or write.
    pub length: Bytes,
    /// Time that the program waited for the request; 0 if not recorded.
    pub took: Nanos,
}

impl TraceRecord {
    pub fn end(&self) -> Bytes {
        self.offset + self.length
    }
}

/// Recorded I/O of programs. A [`TraceBuilder`] builds it and checks every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub(crate) timed: bool,
    pub(crate) files: Vec<TraceFile>,
    pub(crate) open_files: Vec<TraceOpenFile>,
    /// Flags of `open(2)` of each open file; 0 where unknown.
    pub(crate) open_flags: Vec<u32>,
    pub(crate) threads: Vec<TraceThread>,
    pub(crate) records: Vec<TraceRecord>,
}

impl Trace {
    /// Returns whether the recorded times are meaningful; a list of page numbers has none.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    pub fn files(&self) -> &[TraceFile] {
        &self.files
    }

    pub fn open_files(&self) -> &[TraceOpenFile] {
        &self.open_files
    }

    /// Returns the flags with which an open file was opened (`open(2)`); 0 if unknown.
    pub fn open_flags(&self, open_file: u32) -> u32 {
        self.open_flags.get(open_file as usize).copied().unwrap_or(0)
    }

    pub fn threads(&self) -> &[TraceThread] {
        &self.threads
    }

    /// Returns the number of processes. A thread whose process was not recorded counts as one.
    pub fn process_count(&self) -> usize {
        self.threads.iter().map(|thread| thread.process).collect::<BTreeSet<_>>().len()
    }

    /// Returns the requests in order of time.
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// Returns the time of the last request since the first one.
    pub fn span(&self) -> Nanos {
        self.records.last().map_or(Nanos::ZERO, |record| record.time)
    }

    /// Replaces file names and sizes. For a file's name, `describe` returns a new name and, if
    /// known, the size. Records are cut at a known size, and transfers beyond it are dropped.
    #[must_use]
    pub fn described(mut self, describe: impl Fn(&str) -> Option<(String, Option<Bytes>)>) -> Self {
        let mut sizes = vec![None; self.files.len()];
        for (file, size) in self.files.iter_mut().zip(&mut sizes) {
            if let Some((name, known)) = describe(&file.name) {
                file.name = name;
                *size = known;
                file.size = known.unwrap_or(file.size);
            }
        }
        let open_files = &self.open_files;
        self.records.retain_mut(|record| {
            let size = sizes[open_files[record.open_file as usize].file as usize];
            let end = size.map_or(record.end(), |size| record.end().min(size));
            record.length = end.saturating_sub(record.offset);
            !record.length.is_zero() || !record.kind.transfers()
        });
        self
    }

    pub fn reads(&self) -> impl Iterator<Item = &TraceRecord> {
        self.records.iter().filter(|record| record.kind == TraceRecordKind::Read)
    }
}
