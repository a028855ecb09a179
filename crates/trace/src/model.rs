//! The model of a trace.

use units::{Bytes, Nanos};
use workload::{RangeAdvice, TraceOpenFile};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceRecordKind {
    /// Got data, by a call or, if its open file is mapped, by touching a page.
    Read,
    Write,
    /// Advice for the range; a length of 0 means to the end of the file.
    Advise(RangeAdvice),
    /// The file was cut or extended to [`TraceRecord::offset`].
    Truncate,
    /// The file was deleted.
    Delete,
    /// A fault mapped the range along with its own page: what was read there later left no record.
    FaultAround,
}

impl From<RangeAdvice> for TraceRecordKind {
    fn from(advice: RangeAdvice) -> Self {
        Self::Advise(advice)
    }
}

impl TraceRecordKind {
    /// Whether it transfers the bytes of its range.
    pub fn transfers(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Whether a replay does it: writes are left out, and so is what only describes.
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
    /// Its number when it was recorded.
    pub thread: u64,
    /// The number of its process; its own number if the recorder did not know.
    pub process: u64,
}

/// A file or device that a trace speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Its name, as the recorder had it.
    pub name: String,
    /// How large it is at least: the end of the last request to it.
    pub size: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it was made, after the first of the trace.
    pub time: Nanos,
    /// Through which open file, counted in [`Trace::open_files`].
    pub open_file: u32,
    /// By which thread, counted in [`Trace::processes`] and [`Trace::threads`].
    pub process: u32,
    pub kind: TraceRecordKind,
    pub offset: Bytes,
    /// How much; of a read or write never nothing.
    pub length: Bytes,
    /// How long the program waited for it; zero if that was not recorded.
    pub took: Nanos,
}

impl TraceRecord {
    pub fn end(&self) -> Bytes {
        self.offset + self.length
    }
}

/// What programs asked for. Made by a [`TraceBuilder`], which checks every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub(crate) timed: bool,
    pub(crate) files: Vec<TraceFile>,
    pub(crate) open_files: Vec<TraceOpenFile>,
    /// The flags of `open(2)` of each open file, zero where unknown.
    pub(crate) open_flags: Vec<u32>,
    pub(crate) processes: Vec<u64>,
    /// The process of each thread in `processes`.
    pub(crate) owners: Vec<u64>,
    pub(crate) records: Vec<TraceRecord>,
}

impl Trace {
    /// Whether its times mean something; a list of page numbers has none.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    pub fn files(&self) -> &[TraceFile] {
        &self.files
    }

    pub fn open_files(&self) -> &[TraceOpenFile] {
        &self.open_files
    }

    /// The flags with which an open file was opened (`open(2)`); zero where unknown.
    pub fn open_flags(&self, open_file: u32) -> u32 {
        self.open_flags.get(open_file as usize).copied().unwrap_or(0)
    }

    /// The numbers that the threads had when it was recorded; of a process with one thread, that
    /// of the process.
    pub fn processes(&self) -> &[u64] {
        &self.processes
    }

    /// The threads with their processes, in the order of [`Trace::processes`].
    pub fn threads(&self) -> impl Iterator<Item = TraceThread> {
        let pairs = self.processes.iter().zip(&self.owners);
        pairs.map(|(&thread, &process)| TraceThread { thread, process })
    }

    /// The requests in order of time.
    pub fn records(&self) -> &[TraceRecord] {
        &self.records
    }

    /// The time of the last request, counted from the first.
    pub fn span(&self) -> Nanos {
        self.records.last().map_or(Nanos::ZERO, |record| record.time)
    }

    /// The same trace with what `describe` knows of its files by their names: another name, and
    /// the size, behind which there was nothing to be got.
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
